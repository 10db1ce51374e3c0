package server

import "ridge/server/watch"

// What GET /ridge/status answers with.
type (
	// Status is the whole.
	Status = watch.Status
	// ModelStatus describes a loaded model.
	ModelStatus = watch.ModelStatus
	// MemoryStatus is what the memory for keys and values is used for.
	MemoryStatus = watch.MemoryStatus
	// SwapStatus is what became of preempted sequences.
	SwapStatus = watch.SwapStatus
	// PrefixStatus is what is kept of beginnings of prompts.
	PrefixStatus = watch.PrefixStatus
	// SequenceStatus describes a sequence.
	SequenceStatus = watch.SequenceStatus
)

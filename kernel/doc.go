// Package kernel holds the arithmetic that a model spends its time in: dot
// products of packed quantized weights with rows of activations, norms,
// activations, rotary embeddings, softmax and attention over key/value tiles.
//
// Every operation has a definition in plain Go and assembly for the
// instruction-set tiers of internal/cpu; the tier in use is looked up at the
// top of each operation, nowhere else. No result depends on how work is cut:
// the value for one row and one output is the same, bit for bit, for any
// number of rows and any split of rows and outputs.
package kernel

// The generators are a module of their own, so that the product does not
// depend on them. They write a file of assembly and one of declarations for
// each format, or family of operations, and tier; the tables that find a kernel
// in gemm_table_*.go and attn_table_*.go; and the functions that pick one by the
// tier in use in elem_tier_*.go and state_tier_*.go. All of these are of one architecture: what the
// others do not have they do not name.
//
//go:generate go -C _asm run ./gemm -dir ..
//go:generate go -C _asm run ./elem -dir ..
//go:generate go -C _asm run ./attn -dir ..
//go:generate go -C _asm run ./state -dir ..
//go:generate go -C _asm run ./fit -dir ../../weights/tensor -package tensor
//go:generate go -C _asm run ./neon -dir ..

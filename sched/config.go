package sched

import (
	"fmt"
	"time"
)

// Order says whose rows come first in a step.
type Order uint8

const (
	DecodeFirst  Order = iota // answers go on, prompts get what is left
	PrefillFirst              // prompts first: short time to the first token, answers stall
	ByRank                    // as the policy says, whatever they do
)

// Admission says which sequences may enter a memory that might become too
// small for all.
type Admission uint8

const (
	Optimistic   Admission = iota // those whose next tokens fit; who is too much is preempted
	PeakMax                       // those with which all fit even at their longest: nobody is preempted
	PeakExpected                  // the same with the lengths that are expected
)

// Recovery says how a preempted sequence gets its keys and values back.
type Recovery uint8

const (
	Recompute Recovery = iota // they are computed again, as part of the prompt
	Swap                      // they are written out, if there is a place
	Cheaper                   // whichever should take less time
)

// Config says how a step is filled. The zero value of a field means the default
// that is given.
type Config struct {
	Policy Policy // FCFS

	MaxSeqs   int // sequences in a step: 32
	MaxTokens int // tokens in a step: 512, or more if MaxSeqs asks for it
	MaxQueue  int // sequences that may wait; 0 for any number

	Order      Order
	Apart      bool // a step has prompts or answers, not both
	Split      bool // prompts may be computed in pieces
	Chunk      int  // tokens of one prompt in a step, at most; 0 for no limit
	Quantum    int  // a piece that is not a prompt's last has a multiple of this many tokens; 0 for any
	Preemptive bool // a waiting sequence displaces a running one that ranks below it

	Static    bool          // a batch stays together until all are finished
	BatchWait time.Duration // how long a static batch waits to be full

	Admission Admission
	Watermark int // thousandths of the pages that admission leaves free
	Recovery  Recovery

	// ITLTarget is the time between tokens that running answers should have:
	// prompts get as many tokens of a step as the cost model allows, and no
	// sequence is admitted that would make the answers alone too slow. Prompts
	// have a floor: the first of them gets some tokens of every step, and the
	// target gives way by and by, up to four times, to a prompt that has taken
	// more than twice what it would take alone, and a second. It needs Split. 0
	// means that only MaxTokens counts.
	ITLTarget time.Duration

	// StepTime bounds, by the cost model, the steps that compute prompts while
	// answers run; it becomes twice the time of the answers alone where that is
	// more, and unlike ITLTarget, which goes before it, keeps nobody out. It
	// needs Split. 0 for no bound.
	StepTime time.Duration

	// ClassSlowdown bounds steps in which answers of a class run and sequences of a
	// worse one, guests, too: to so many times what the best class alone would take, by
	// the cost model and what such steps took beyond it, or to what the longest steps of
	// that class take without guests. Where that leaves nothing, guests get a token of an
	// answer or some of a prompt in as many steps as ClassSlowdown of all steps pays for;
	// and nothing of a step with prompts of the best class where these are rare. It needs
	// Split. 0 for no bound.
	ClassSlowdown float64

	Shed bool // drop waiting sequences that cannot meet their deadline

	Cost    *CostModel   // a new one
	Lengths *LengthModel // a new one
}

// complete checks c and fills in defaults.
func (c *Config) complete() error {
	if c.Policy == nil {
		c.Policy = FCFS()
	}
	if c.MaxSeqs == 0 {
		c.MaxSeqs = 32
	}
	if c.MaxTokens == 0 {
		c.MaxTokens = max(512, 2*c.MaxSeqs)
	}
	if c.Cost == nil {
		c.Cost = NewCostModel()
	}
	if c.Lengths == nil {
		c.Lengths = NewLengthModel()
	}
	switch {
	case c.MaxSeqs < 1 || c.MaxSeqs > 1<<16:
		return fmt.Errorf("sched: sequences in a step: expected 1 to %d, found %d", 1<<16, c.MaxSeqs)
	case c.MaxTokens < c.MaxSeqs:
		return fmt.Errorf("sched: tokens in a step: expected at least one for each of %d sequences, found %d", c.MaxSeqs, c.MaxTokens)
	case c.Watermark < 0 || c.Watermark > 500:
		return fmt.Errorf("sched: watermark: expected 0 to 500 thousandths, found %d", c.Watermark)
	case c.StepTime < 0 || c.StepTime > 0 && !c.Split:
		return fmt.Errorf("sched: time of a step: a bound of %v needs prompts that may be split", c.StepTime)
	case c.ITLTarget < 0 || c.ITLTarget > 0 && !c.Split:
		return fmt.Errorf("sched: time between tokens: a target of %v needs prompts that may be split", c.ITLTarget)
	case c.ClassSlowdown != 0 && !c.Split:
		return fmt.Errorf("sched: slowdown by other classes: a bound of %g needs prompts that may be split", c.ClassSlowdown)
	case c.ClassSlowdown != 0 && !(c.ClassSlowdown >= 1 && c.ClassSlowdown <= 100):
		return fmt.Errorf("sched: slowdown by other classes: expected 1 to 100, or 0 for any, found %g", c.ClassSlowdown)
	case c.Chunk < 0 || c.Quantum < 0 || c.MaxQueue < 0 || c.BatchWait < 0:
		return fmt.Errorf("sched: expected no negative limits, found chunk %d, quantum %d, queue %d, wait %v", c.Chunk, c.Quantum, c.MaxQueue, c.BatchWait)
	case c.Apart && c.Order == ByRank:
		return fmt.Errorf("sched: prompts and answers in steps of their own: expected an order that says which come first")
	case c.Chunk > 0 && !c.Split:
		return fmt.Errorf("sched: chunk: %d tokens of prompts that may not be split", c.Chunk)
	}
	return nil
}

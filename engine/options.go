package engine

import (
	"fmt"
	"time"

	"ridge/kvcache"
	"ridge/sched"
	"ridge/spec"
)

// SlowReader says what happens to a request whose events are not read.
type SlowReader uint8

// The policies.
const (
	// PauseReader stops computing for the request until its stream has been
	// read. Its place, and when it is needed its memory, serves others.
	PauseReader SlowReader = iota
	DropReader             // the request ends with ErrSlowReader
)

// Options are the choices at starting an engine. The zero value suits most
// uses.
type Options struct {
	// Sched says how steps are filled; nil means the preset "ridge". Its MaxQueue
	// counts requests here. The policy and models in it must belong to this
	// engine alone.
	Sched *sched.Config

	// Contiguous reserves memory for the longest answer of each sequence, as
	// systems before paging did: the baseline of the presets "static" and "orca".
	// Nothing is shared then, neither between choices nor by prefix.
	Contiguous bool
	// Reserve is how many tokens a sequence reserves at least under Contiguous.
	Reserve int
	// NoPrefixCache turns the sharing of prefixes between requests off.
	NoPrefixCache bool
	// PinShare is the part of the pages, 0 to 1, that prefixes which breakpoints of
	// requests name take at most and that is evicted last; 0 for none.
	PinShare float64
	// Prefixes is where such prefixes are kept beyond the engine's life; nil for
	// nowhere.
	Prefixes PrefixStore
	// Swap is where preempted sequences are written to; nil for nowhere.
	Swap sched.Store

	// Calibrate measures some steps before the first request, so that the
	// scheduler can predict the times of others. It is done in any case if Sched
	// has a target for the time between tokens.
	Calibrate bool

	// Draft says who guesses next tokens, to be verified together; nil for nobody.
	Draft *spec.Drafting

	Events     int           // events that a stream holds per choice; 0 means 256
	SlowReader SlowReader    // what happens when they are not read
	DropAfter  time.Duration // a paused request ends after it; 0 means ten minutes

	// StepLimit is how long a step may take before the engine counts as
	// unhealthy; 0 means two minutes.
	StepLimit time.Duration
}

// complete fills in defaults.
func (o *Options) complete() error {
	if o.Sched == nil {
		cfg, err := sched.Preset("ridge")
		if err != nil {
			return err
		}
		o.Sched = &cfg
	}
	if o.Events < 0 || o.DropAfter < 0 || o.StepLimit < 0 || o.Reserve < 0 {
		return fmt.Errorf("engine: options: expected no negative limits, found %d events, %v, %v and %d tokens", o.Events, o.DropAfter, o.StepLimit, o.Reserve)
	}
	if !(o.PinShare >= 0 && o.PinShare <= 1) {
		return fmt.Errorf("engine: options: expected a part of the pages from 0 to 1, found %g", o.PinShare)
	}
	o.NoPrefixCache = o.NoPrefixCache || o.Contiguous
	for _, d := range []struct {
		v *time.Duration
		d time.Duration
	}{{&o.DropAfter, 10 * time.Minute}, {&o.StepLimit, 2 * time.Minute}} {
		if *d.v == 0 {
			*d.v = d.d
		}
	}
	if o.Events == 0 {
		o.Events = 256
	}
	return nil
}

// noPrefix is a salt under which nothing is published. Salts of requests begin
// with a number.
const noPrefix = "none"

// newMemory returns the page pool as the scheduler sees it. Of sequences all of
// whose prompt must be computed nothing is found in the prefix tree; of others what
// need not be computed.
// length is model.RopeLength.
func newMemory(pool *kvcache.Pool, tree *kvcache.Tree, o *Options, find func(*sched.Seq) *sequence, length func(prompt, tokens int) int) (sched.Memory, *sched.Paged) {
	paged := sched.Paged{Pool: pool, Tree: tree, Store: o.Swap}
	paged.Tokens = func(s *sched.Seq) (string, []int32) {
		q := find(s)
		if s.KV != nil { // asked for what to publish, not for what is known
			return q.salt(), q.tokens
		}
		q.rope = length(s.Prompt, s.Wanted)
		if q.g.whole() && q.g.scored == 0 {
			return noPrefix, q.tokens
		}
		return q.salt(), q.findable()
	}
	if !o.Contiguous {
		return &paged, &paged
	}
	reserve := o.Reserve
	c := &sched.Contiguous{
		Paged:  paged,
		Space:  kvcache.NewContiguous(pool.Sure() * pool.PageTokens()),
		Length: func(*sched.Seq) int { return reserve },
	}
	return c, &c.Paged
}

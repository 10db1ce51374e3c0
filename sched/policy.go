package sched

import (
	"fmt"
	"time"
)

// Policy says which sequence comes first. Waiting sequences are in lanes; of
// each lane the one with the lowest Rank competes, and among those the one with
// the lowest Level, then Rank, wins. Running sequences are ordered by the same
// two. Whoever is last loses its memory first.
//
// What a policy must remember of a sequence it keeps in Seq.State, which is its
// own from Arrive to Leave: a field of Seq is for what the scheduler itself
// needs. A policy is one file and a row of policies.
type Policy interface {
	Lane(q *Seq) int // a small number, fixed while q waits
	// Rank is fixed while q waits.
	Rank(q *Seq) int64
	// Level may change with time, but may not change who is first in a lane.
	Level(q *Seq, now time.Duration) int64

	Arrive(q *Seq, now time.Duration) // q is new; a fork arrives beside its parent
	Enqueue(q *Seq)                   // q enters the queue, new or preempted
	Admit(q *Seq, now time.Duration)  // q leaves the queue and runs, for the first time or again
	Serve(q *Seq, r *Run, elapsed, now time.Duration)
	Leave(q *Seq, now time.Duration) // q is finished or removed
}

// oneLane is what policies have in common that order by a fixed number.
type oneLane struct{}

func (oneLane) Lane(*Seq) int                                  { return 0 }
func (oneLane) Level(*Seq, time.Duration) int64                { return 0 }
func (oneLane) Arrive(*Seq, time.Duration)                     {}
func (oneLane) Enqueue(*Seq)                                   {}
func (oneLane) Admit(*Seq, time.Duration)                      {}
func (oneLane) Serve(*Seq, *Run, time.Duration, time.Duration) {}
func (oneLane) Leave(*Seq, time.Duration)                      {}

// policies are the policies that have names: how they are made with their
// defaults for a configuration that is complete, and whether they are meant for
// Config.Preemptive.
var policies = []struct {
	name       string
	preemptive bool
	make       func(c *Config) Policy
}{
	{"fcfs", false, func(*Config) Policy { return FCFS() }},
	{"priority", true, func(*Config) Policy { return Priority(0) }},
	{"deadline", false, func(c *Config) Policy { return Deadline(0, c.Cost, c.MaxTokens) }},
	{"shortest", true, func(c *Config) Policy { return ShortestFirst(c.Lengths.Expect, 0, 0) }},
	{"mlfq", true, func(c *Config) Policy { return MLFQ(0, 0, c.Cost, c.MaxTokens) }},
	{"vtc", false, func(*Config) Policy { return VTC(0, 0) }},
}

// Policies are the names that UsePolicy knows.
func Policies() []string {
	names := make([]string, len(policies))
	for i := range policies {
		names[i] = policies[i].name
	}
	return names
}

// UsePolicy sets the policy with the given name, with its defaults and what it
// needs: the models of times and lengths that c has or gets now, and whether it
// is preemptive. Call it after MaxTokens is set.
func (c *Config) UsePolicy(name string) error {
	if err := c.complete(); err != nil {
		return err
	}
	for i := range policies {
		if p := &policies[i]; p.name == name {
			c.Policy, c.Preemptive = p.make(c), p.preemptive
			return nil
		}
	}
	return fmt.Errorf("sched: policy: expected one of %v, found %q", Policies(), name)
}

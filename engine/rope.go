package engine

import (
	"math"
	"strconv"
)

// Rotation by length: LongRoPE and dynamic NTK scaling rotate the keys of long
// sequences by other frequencies than those of short ones. Prefixes are shared
// between sequences that are rotated alike, and a sequence that an answer takes
// past the border of LongRoPE is computed again, as one that was preempted: what
// follows from tokens is the same as if they had come at once.

// salt is what the prefixes of q are shared under.
func (q *sequence) salt() string { return saltOf(q.g.salt, q.rope) }

// saltOf tells prefixes that are rotated for different lengths apart.
func saltOf(salt string, rope int) string {
	if rope == 0 {
		return salt
	}
	return "rope" + strconv.Itoa(rope) + ":" + salt
}

// rotateAnew makes running sequences begin again that have become too long for
// the rotation of what they have computed.
func (e *Engine) rotateAnew() {
	if e.m.RopeLength(math.MaxInt, math.MaxInt) == 0 {
		return // no length matters to this model
	}
	for _, s := range e.sched.RunningSeqs() {
		q := e.seqs[s]
		length := e.m.RopeLength(s.Prompt, s.Wanted)
		if length == q.rope {
			continue
		}
		e.pool.Free(s.KV)
		q.rope, s.Computed, q.published = length, 0, 0
		if e.tree != nil {
			s.KV = e.tree.Match(q.salt(), q.tokens[:s.Wanted-1])
			s.Computed = s.KV.Len()
			q.published = s.Computed
		}
	}
}

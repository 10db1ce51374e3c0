package engine

import (
	"testing"
	"time"

	"ridge/engine/trace"
	"ridge/sched"
)

// The steps that are remembered add up to what the counters say.
func TestSteps(t *testing.T) {
	e := start(t, openTiny(t, "llama", 64), Options{Sched: &sched.Config{Split: true, MaxTokens: 32, MaxSeqs: 8}})
	release := hold(t, e)
	var streams []*Stream
	for i := range 4 {
		r := long(12)
		for len(r.Tokens) < 20+10*i {
			r.Tokens = append(r.Tokens, int32((7*len(r.Tokens)+i)%50))
		}
		r.ID, r.Tenant, r.N = string(rune('a'+i)), "who", 1+i%2
		streams = append(streams, submit(t, e, r))
	}
	release()
	for i, s := range streams {
		read(t, s, 1+i%2)
	}
	st := e.Stats()
	steps := e.Trace().Steps(0, 1000)
	if len(steps) == 0 || int64(len(steps)) != st.Steps {
		t.Fatalf("%d steps, want %d", len(steps), st.Steps)
	}
	var prompt, next int64
	var took, kernels time.Duration
	admitted, finished := map[string]int{}, map[string]int{}
	for i, s := range steps {
		if s.N != int64(i+1) || s.Budget != 32 || s.Kernels <= 0 || s.Kernels > s.Took {
			t.Errorf("step %d: %+v", i, s)
		}
		took, kernels = took+s.Took, kernels+s.Kernels
		rows := int32(0)
		for _, r := range s.Rows {
			rows += r.Tokens
			switch r.Kind {
			case trace.Prefill:
				prompt += int64(r.Tokens)
			case trace.Decode:
				next += int64(r.Tokens)
			default:
				t.Errorf("step %d: %+v", i, r)
			}
			if r.Tenant != "who" || r.Context < r.Tokens {
				t.Errorf("step %d: %+v", i, r)
			}
		}
		if rows > 32 {
			t.Errorf("step %d has %d rows", i, rows)
		}
		for _, r := range s.Admitted {
			admitted[r.ID]++
		}
		for _, r := range s.Finished {
			finished[r.ID]++
		}
	}
	// The first token of each of the 6 choices came with a prompt.
	if prompt != st.Sched.PromptTokens || next != st.Tokens-6 || took != st.Busy || kernels != st.Kernels {
		t.Errorf("rows of prompts %d, of answers %d, %v, %v; counters %+v", prompt, next, took, kernels, st)
	}
	for id := range finished {
		if finished[id] != 1 || admitted[id] == 0 {
			t.Errorf("%s was admitted %d times and ended %d times", id, admitted[id], finished[id])
		}
	}
	if d := e.Trace().Decode(); len(finished) != 4 || d.Rows == 0 || d.Rows > next || d.Took <= 0 || d.Took > took || d.Keys < d.Rows*20 {
		t.Errorf("%d requests ended; %+v", len(finished), d)
	}
	if got := e.Trace().Steps(st.Steps-3, 2); len(got) != 2 || got[1].N != st.Steps {
		t.Errorf("the last two: %+v", got)
	}
}

package load

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Kind is a shape of work.
type Kind string

// The kinds of work.
const (
	ShareGPT Kind = "sharegpt" // lengths like those of recorded conversations
	Fixed    Kind = "fixed"    // all prompts and all answers of one length
	Bimodal  Kind = "bimodal"  // short answers, and some long ones
	Prefix   Kind = "prefix"   // groups of prompts with a common beginning
	Turns    Kind = "turns"    // conversations: each prompt has all that was said before
	Intruder Kind = "intruder" // a long prompt comes while short ones are being answered
	Agents   Kind = "agents"   // conversations of coding agents come while short prompts are being answered
	Trace    Kind = "trace"    // recorded requests
)

// Kinds are the kinds of work, in the order of their description.
func Kinds() []Kind { return []Kind{ShareGPT, Fixed, Bimodal, Prefix, Turns, Intruder, Agents, Trace} }

// Workload says what is asked. It is deterministic: session i of a workload is
// always the same.
type Workload struct {
	Kind Kind
	Seed uint64
	Text *Words

	Input, Output int           // tokens; for ShareGPT the medians. 0 means the kind's default
	MaxInput      int           // longest prompt of ShareGPT and Trace; 0 for the default of the first, any for the second
	MaxOutput     int           // the same for answers; of Bimodal, the long ones
	Sigma         float64       // spread of ShareGPT's answers: the standard deviation of their logarithm; 0 means 1
	Share         float64       // part of a prompt that its group has in common, 0 to 1
	Groups        int           // of Prefix
	Turns         int           // of a conversation
	Pause         time.Duration // between the turns

	Trace []TraceRow
	Speed float64 // of a trace's clock; 0 means 1
	Scale float64 // of a trace's lengths; 0 means 1
	Block int     // tokens of a trace's blocks; 0 means 512

	Streams   int           // of Intruder and Agents: answers under way
	Long      int           // tokens of the intruder's prompt, or of what all agents begin with
	After     time.Duration // from when all streams run, or the last intruder ended
	Intruders int           // how many come, one after the other, or how many agents at once
	Priority  int           // class of their requests; 0 is not sent
}

// Turn is one request.
type Turn struct {
	Text   string // what the prompt has beyond what was said before
	Tokens int    // that Text should be
	Max    int    // tokens of the answer
	Pause  time.Duration

	Priority int // class of the request; 0 is not sent
}

// Session is a number of requests that follow each other.
type Session struct {
	ID    int
	Group int           // with a common beginning, -1 for none
	At    time.Duration // when it comes, if the workload says so
	Turns []Turn
}

// bimodalEvery is how many answers of Bimodal there are for each long one.
const bimodalEvery = 8

// Complete fills in defaults and checks.
func (w *Workload) Complete() error {
	set := func(v *int, def int) {
		if *v == 0 {
			*v = def
		}
	}
	switch w.Kind {
	case ShareGPT:
		// Medians and spreads of a log-normal fit to recorded conversations, as in
		// the scheduler's simulations.
		set(&w.Input, 120)
		set(&w.Output, 170)
		set(&w.MaxInput, 1024)
		set(&w.MaxOutput, 1024)
		if w.Sigma == 0 {
			w.Sigma = 1
		}
	case Bimodal:
		set(&w.Input, 32)
		set(&w.Output, 16)
		set(&w.MaxOutput, 400)
	case Fixed:
		set(&w.Input, 128)
		set(&w.Output, 64)
	case Prefix:
		set(&w.Input, 512)
		set(&w.Output, 32)
		set(&w.Groups, 1)
		if w.Share == 0 {
			w.Share = 0.8
		}
	case Turns:
		set(&w.Input, 64)
		set(&w.Output, 64)
		set(&w.Turns, 4)
	case Intruder:
		set(&w.Input, 32)
		set(&w.Output, 512)
		set(&w.Streams, 8)
		set(&w.Long, 8000)
		set(&w.Intruders, 1)
		if w.After == 0 {
			w.After = 5 * time.Second
		}
	case Agents:
		set(&w.Input, 32)
		set(&w.Output, 64)
		set(&w.Streams, 4)
		set(&w.Long, 8000)
		set(&w.Intruders, 10)
		set(&w.Turns, 4)
		if w.After == 0 {
			w.After = 5 * time.Second
		}
		if w.Pause == 0 {
			w.Pause = 2 * time.Second
		}
	case Trace:
		set(&w.Block, 512)
		if len(w.Trace) == 0 {
			return fmt.Errorf("load: workload trace: expected requests, found none")
		}
	default:
		return fmt.Errorf("load: workload: expected one of %v, found %q", Kinds(), w.Kind)
	}
	if w.Speed == 0 {
		w.Speed = 1
	}
	if w.Scale == 0 {
		w.Scale = 1
	}
	if w.Text == nil {
		w.Text = NewWords(nil)
	}
	return w.check()
}

func (w *Workload) check() error {
	for _, n := range []struct {
		name string
		n    int
	}{
		{"input", w.Input}, {"output", w.Output}, {"longest input", w.MaxInput}, {"longest output", w.MaxOutput}, {"groups", w.Groups},
		{"turns", w.Turns}, {"block", w.Block}, {"streams", w.Streams}, {"long prompt", w.Long}, {"intruders", w.Intruders},
	} {
		if n.n < 0 || n.n > maxTraceSize {
			return fmt.Errorf("load: workload %s: %s: expected 0 to %d, found %d", w.Kind, n.name, maxTraceSize, n.n)
		}
	}
	if !(w.Share >= 0 && w.Share <= 1) {
		return fmt.Errorf("load: workload %s: share: expected 0 to 1, found %v", w.Kind, w.Share)
	}
	if !(w.Sigma >= 0 && w.Sigma <= 5) {
		return fmt.Errorf("load: workload %s: spread: expected 0 to 5, found %v", w.Kind, w.Sigma)
	}
	if !(w.Speed > 0 && w.Scale > 0) || w.Pause < 0 || w.After < 0 {
		return fmt.Errorf("load: workload %s: expected positive times and factors, found speed %v, scale %v, pause %v, after %v", w.Kind, w.Speed, w.Scale, w.Pause, w.After)
	}
	return nil
}

// Len is the number of sessions that there are, 0 for any number.
func (w *Workload) Len() int { return len(w.Trace) }

// Session returns session i. Text beyond the shared parts is new in each.
func (w *Workload) Session(i int) Session {
	rng := rand.New(rand.NewPCG(w.Seed, uint64(i)<<8|1))
	s := Session{ID: i, Group: -1}
	turn := func(in, out int) Turn { return Turn{Text: w.Text.Text(rng, in, false), Tokens: in, Max: out} }
	switch w.Kind {
	case ShareGPT:
		s.Turns = []Turn{turn(lognormal(rng, w.Input, 1.2, w.MaxInput), lognormal(rng, w.Output, w.Sigma, w.MaxOutput))}
	case Bimodal:
		out := w.Output
		if rng.IntN(bimodalEvery) == 0 {
			out = w.MaxOutput
		}
		s.Turns = []Turn{turn(w.Input, out)}
	case Prefix:
		s.Group = i % w.Groups
		head := int(math.Round(float64(w.Input) * w.Share))
		t := Turn{Tokens: w.Input, Max: w.Output}
		if head > 0 {
			t.Text = w.Text.Text(rand.New(rand.NewPCG(w.Seed, uint64(s.Group)<<8|2)), head, false)
		}
		if head < w.Input {
			t.Text += w.Text.Text(rng, w.Input-head, head > 0)
		}
		s.Turns = []Turn{t}
	case Turns:
		for k := range w.Turns {
			t := turn(w.Input, w.Output)
			if k > 0 {
				t.Pause = w.Pause
			}
			s.Turns = append(s.Turns, t)
		}
	case Trace:
		s = w.traced(rng, i)
	default:
		s.Turns = []Turn{turn(w.Input, w.Output)}
	}
	return s
}

// long is the prompt of an intruder.
func (w *Workload) long(i int) Session {
	rng := rand.New(rand.NewPCG(w.Seed, uint64(i)<<8|3))
	return Session{ID: i, Group: -1, Turns: []Turn{{Text: w.Text.Text(rng, w.Long, false), Tokens: w.Long, Max: 8, Priority: w.Priority}}}
}

// agent is the session of agent i: instructions and tools that all have in common, a
// task, and results of tools of very different lengths, with pauses in which they run.
func (w *Workload) agent(i int) Session {
	rng := rand.New(rand.NewPCG(w.Seed, uint64(i)<<8|5))
	s := Session{ID: i, Group: 0}
	for k := range w.Turns {
		t := Turn{Tokens: lognormal(rng, agentResult, 1, agentLongest), Max: lognormal(rng, agentAnswer, 0.5, 4*agentAnswer), Priority: w.Priority}
		if k == 0 {
			t.Text = w.Text.Text(rand.New(rand.NewPCG(w.Seed, 6)), w.Long, false)
		} else {
			t.Pause = time.Duration(rng.ExpFloat64() * float64(w.Pause))
		}
		t.Text += w.Text.Text(rng, t.Tokens, k == 0)
		if k == 0 {
			t.Tokens += w.Long
		}
		s.Turns = append(s.Turns, t)
	}
	return s
}

// fit shortens what agents have in common so that the longest session has room in a
// context of so many tokens, 0 for any. Texts may have a few tokens more than they should.
func (w *Workload) fit(context int) error {
	if context == 0 {
		return nil
	}
	most := 0
	for i := range w.Intruders {
		n := -w.Long
		for _, t := range w.agent(i).Turns {
			n += t.Tokens + t.Max
		}
		most = max(most, n)
	}
	const slack, least = 32, 64 // tokens of a context to one that is left free
	room := context - context/slack - most
	if room < least {
		return fmt.Errorf("load: workload agents: %d turns need up to %d tokens beside what agents have in common, of a context of %d", w.Turns, most, context)
	}
	w.Long = min(w.Long, room)
	return nil
}

const (
	agentResult, agentLongest = 200, 2000 // tokens of a tool's result: the median, and most
	agentAnswer               = 40        // of a call: the median
)

// traced is the session of row i of the trace.
func (w *Workload) traced(rng *rand.Rand, i int) Session {
	row := &w.Trace[i%len(w.Trace)]
	s := Session{ID: i, Group: -1, At: time.Duration(float64(row.At) / w.Speed)}
	scale := func(n, limit int) int {
		n = max(1, int(math.Round(float64(n)*w.Scale)))
		if limit > 0 {
			n = min(n, limit)
		}
		return n
	}
	t := Turn{Text: row.Prompt, Tokens: scale(row.Input, w.MaxInput), Max: scale(row.Output, w.MaxOutput)}
	if t.Text == "" {
		left, block := t.Tokens, scale(w.Block, 0)
		for _, h := range row.Hashes {
			n := min(left, block)
			if n == 0 {
				break
			}
			t.Text += w.Text.Text(rand.New(rand.NewPCG(w.Seed, h<<8|4)), n, t.Text != "")
			left -= n
		}
		if left > 0 {
			t.Text += w.Text.Text(rng, left, t.Text != "")
		}
	}
	if len(row.Hashes) > 0 {
		s.Group = int(row.Hashes[0] & math.MaxInt32)
	}
	s.Turns = []Turn{t}
	return s
}

func lognormal(rng *rand.Rand, median int, sigma float64, limit int) int {
	n := max(1, int(math.Round(float64(median)*math.Exp(sigma*rng.NormFloat64()))))
	if limit > 0 {
		n = min(n, limit)
	}
	return n
}

// String describes the workload in a line.
func (w *Workload) String() string {
	switch w.Kind {
	case ShareGPT:
		return fmt.Sprintf("sharegpt: prompts of about %d tokens, answers of about %d (log-normal, σ %g, up to %d and %d)", w.Input, w.Output, w.Sigma, w.MaxInput, w.MaxOutput)
	case Bimodal:
		return fmt.Sprintf("bimodal: prompts of %d tokens, answers of %d, one in %d of %d", w.Input, w.Output, bimodalEvery, w.MaxOutput)
	case Prefix:
		return fmt.Sprintf("prefix: %d + %d tokens, %.0f%% of a prompt common to a group, %d groups", w.Input, w.Output, 100*w.Share, w.Groups)
	case Turns:
		return fmt.Sprintf("turns: conversations of %d turns of %d + %d tokens", w.Turns, w.Input, w.Output)
	case Intruder:
		return fmt.Sprintf("intruder: %d streams of %d + %d tokens; a prompt of %d tokens enters after %v, %d times", w.Streams, w.Input, w.Output, w.Long, w.After, w.Intruders)
	case Agents:
		return fmt.Sprintf("agents: %d streams of %d + %d tokens; after %v %d agents of %d turns on %d tokens that they have in common, pauses of about %v", w.Streams, w.Input, w.Output, w.After, w.Intruders, w.Turns, w.Long, w.Pause)
	case Trace:
		return fmt.Sprintf("trace: %d requests, time ×%g, lengths ×%g", len(w.Trace), w.Speed, w.Scale)
	}
	return fmt.Sprintf("fixed: %d + %d tokens", w.Input, w.Output)
}

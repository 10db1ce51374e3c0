package run

import (
	"context"
	"errors"
	"strings"
	"time"

	"ridge/engine"
	"ridge/sample"
	"ridge/server/adapters"
	"ridge/server/fault"
	"ridge/text/chat"
	"ridge/text/grammar"
)

// Plan is a request to a model, ready to be run: what the engine gets, and how
// its tokens become text.
type Plan struct {
	Model   *Model
	Request engine.Request
	// Unenforced is what of the request's schemas the answer is not held to.
	Unenforced []grammar.Unenforced
	Truncated  int      // tokens of the prompt that were cut off, since the client said so
	text       string   // the prompt's text, "" if it came as tokens
	omitted    []string // patterns of lines that were left out of it
	opening    string   // of a chat: the end of the prompt, see chat.Prompt.Opening
	// Left is what of the request the model does not get.
	Left []fault.Left
	// Ignored names the fields that ask for what others take the place of.
	Ignored []string
	// Sampling is how tokens are chosen: what the request says, with all defaults.
	Sampling Sampling

	slot int // whose last sequence this is

	adapters []adapters.Use // of the request; nil: those of the model

	stops       []string
	includeStop bool // the stop string stays in the text
	special     bool // write out control tokens

	parse   *chat.ParseOptions // look for reasoning and calls; nil: all is text
	oneCall bool               // the answer ends after one call
	held    bool               // to a grammar from the first token on: no reasoning comes before

	Probs bool // report log-probabilities, see Request.Sampling.Drawn
	top   int  // and so many most probable tokens

	// limit is the time that an answer of more than one line may take, counted
	// from its first token: waiting and the prompt are not in it, and no request
	// fails by it. 0 for any time. This is what llama-server documents of
	// t_max_predict_ms, which is made for completions in editors.
	limit time.Duration
	// deadline is when the first token is due after the request's arrival; nil: as
	// the server has it.
	deadline *time.Duration
}

// Token is a token of an answer with its log-probabilities.
type Token struct {
	ID   int32
	Prob float32
	Top  []sample.TokenProb
	// Trace is what it was drawn from, nil if that was not asked for; Seen are the most
	// probable tokens that it is about.
	Trace   *sample.Trace
	Seen    []sample.TokenProb
	Forced  bool // it was not drawn
	Drafted bool // it was guessed before it was drawn
}

// Reasons for the end of an answer, as OpenAI names them.
const (
	FinishStop      = "stop"
	FinishLength    = "length"
	FinishToolCalls = "tool_calls"
)

// LoopText is Delta.StopText of an answer that was ended since it only repeated
// itself. APIs have no reason of this kind: its Finish is FinishLength.
const LoopText = "loop"

// Delta is what an event of the engine means for one choice.
type Delta struct {
	Choice int
	Parts  []chat.Part
	Tokens []Token            // at most one
	Prompt *engine.PromptInfo // in the first delta of a generation, those with Progress not counted
	// Progress, in deltas of its own, says how far the prompt is, if the plan's
	// request asks for it.
	Progress *engine.Progress
	Finish   string // in the last delta of a choice, else ""
	// StopText or StopToken (else -1) is what ended the choice with FinishStop;
	// with FinishLength StopText is LoopText or "".
	StopText  string
	StopToken int32
	Ender     *Token // the stop token with its log-probabilities
	embedding []float32
}

func (d *Delta) empty() bool {
	return len(d.Parts) == 0 && len(d.Tokens) == 0 && d.Finish == "" && d.Prompt == nil && d.Progress == nil
}

// Text is the text for the user in a delta.
func (d *Delta) Text() (s string) {
	for _, p := range d.Parts {
		if p.Kind == chat.PartText {
			s += p.Text
		}
	}
	return s
}

// choice is one answer.
type choice struct {
	*chat.Answer
	tokens int
	first  time.Time // when the first token came
	lines  bool      // there is an end of a line in the text
	ended  bool
}

// guesses are tokens that were guessed and computed, and those of them that were
// right.
type guesses struct{ all, right int }

// generation is a plan that runs.
type generation struct {
	p       *Plan
	stream  Stream
	ctx     context.Context
	cancel  context.CancelFunc
	choices []choice
	live    int
	answer  []int32 // tokens of the first choice

	prompt    engine.PromptInfo
	tokens    int       // of all answers, what a client pays for
	reasoning int       // of these, in reasoning
	forced    int       // of all, those that were not drawn
	guessed   []guesses // of each choice, so far
	submitted time.Time
	first     time.Time // first token
	last      time.Time // latest token
	lastSeen  []time.Time
	itl       func(time.Duration)

	waits    context.Context // ends after a patience; one serves for many tokens
	stopWait context.CancelFunc
}

// start submits a plan. The generation must be closed.
func (p *Plan) start(ctx context.Context) (*generation, error) {
	g := &generation{p: p, submitted: time.Now()}
	g.ctx, g.cancel = context.WithCancel(ctx)
	s, err := p.Model.backend.Submit(g.ctx, p.Request)
	if err != nil {
		g.cancel()
		return nil, err
	}
	g.stream = s
	g.choices = make([]choice, max(1, p.Request.N))
	g.live = len(g.choices)
	g.lastSeen, g.guessed = make([]time.Time, len(g.choices)), make([]guesses, len(g.choices))
	for i := range g.choices {
		g.choices[i].Answer = chat.NewAnswer(p.Model.tok, chat.AnswerOptions{
			Syntax: p.Model.syntax, Parse: p.parse, Marks: p.Model.marks, Special: p.special,
			Stops: p.stops, IncludeStop: p.includeStop, MinTokens: p.Request.MinTokens, OneCall: p.oneCall,
		})
	}
	return g, nil
}

// close ends the generation, whether or not it is complete.
func (g *generation) close() {
	g.stream.Close()
	g.cancel()
	for i := range g.choices {
		g.choices[i].Close()
	}
}

// errWait is returned by next when nothing has come in the time given.
var errWait = errors.New("nothing yet")

// next returns the next delta that says something; ok is false after the last
// one. With a patience it returns errWait when that is over.
func (g *generation) next(patience time.Duration) (d Delta, ok bool, err error) {
	began := time.Now()
	for g.live > 0 {
		ctx := g.ctx
		if patience > 0 {
			ctx = g.waiting(patience - time.Since(began))
		}
		ev, ok := g.stream.Next(ctx)
		if !ok {
			switch {
			case g.ctx.Err() != nil:
				return Delta{}, false, context.Cause(g.ctx)
			case ctx.Err() != nil && time.Since(began) < patience:
				continue // it was made for a token before this one
			case ctx.Err() != nil:
				return Delta{}, false, errWait
			}
			return Delta{}, false, engine.ErrClosed
		}
		if ev.Err != nil {
			return Delta{}, false, ev.Err
		}
		if ev.Finish == engine.FinishAbort {
			if g.ctx.Err() != nil {
				return Delta{}, false, context.Cause(g.ctx)
			}
			return Delta{}, false, engine.ErrClosed
		}
		if d := g.event(&ev); !d.empty() {
			return d, true, nil
		}
	}
	return Delta{}, false, nil
}

// waiting returns a context that ends after the time given, or earlier, if it was
// made for a wait before this one.
func (g *generation) waiting(rest time.Duration) context.Context {
	if g.waits == nil || g.waits.Err() != nil {
		if g.stopWait != nil {
			g.stopWait()
		}
		g.waits, g.stopWait = context.WithTimeout(g.ctx, rest)
	}
	return g.waits
}

// event turns an event into a delta.
func (g *generation) event(ev *engine.Event) Delta {
	d := Delta{Choice: ev.Choice, StopToken: -1, embedding: ev.Embedding, Progress: ev.Progress}
	if ev.Prompt != nil {
		g.prompt = *ev.Prompt
		d.Prompt = ev.Prompt
	}
	if ev.Choice < 0 || ev.Choice >= len(g.choices) {
		return d
	}
	c := &g.choices[ev.Choice]
	if c.ended {
		return d // tokens that came while a stop was on its way
	}
	g.guessed[ev.Choice] = guesses{ev.Guessed, ev.Right}
	if ev.Token >= 0 {
		g.token(c, ev, &d)
	}
	if ev.Finish != "" && !c.ended {
		g.finish(c, ev, &d)
	}
	return d
}

func (g *generation) token(c *choice, ev *engine.Event, d *Delta) {
	now := time.Now()
	if g.tokens++; g.tokens == 1 {
		g.first = now
	}
	if c.tokens++; c.tokens == 1 {
		c.first = now
	} else if g.itl != nil {
		g.itl(now.Sub(g.lastSeen[ev.Choice]))
	}
	g.lastSeen[ev.Choice], g.last = now, now
	if c.Thinking() {
		g.reasoning++
	}
	if ev.Forced {
		g.forced++
	}
	if ev.Choice == 0 {
		g.answer = append(g.answer, ev.Token)
	}
	d.Tokens = append(d.Tokens, g.tokenInfo(ev))
	parts, ended := c.Add(ev.Token)
	d.Parts = parts
	c.lines = c.lines || strings.Contains(c.Added(), "\n")
	switch {
	case ended:
		d.StopText = c.Stopped()
		c.end(g, d, FinishStop)
	case g.p.limit > 0 && c.lines && now.Sub(c.first) > g.p.limit:
		g.finish(c, &engine.Event{StopToken: -1, Finish: engine.FinishLength}, d)
	default:
		return
	}
	g.stream.Stop(ev.Choice)
}

// tokenInfo takes an event's log-probabilities. The number of the token that
// was drawn is the very same in both places.
func (g *generation) tokenInfo(ev *engine.Event) Token {
	t := Token{ID: ev.Token, Prob: ev.LogProb, Top: ev.Top, Trace: ev.Trace, Forced: ev.Forced, Drafted: ev.Drafted}
	if t.Trace != nil {
		t.Seen = t.Top[:min(len(t.Top), traceTop)]
	}
	for _, p := range ev.Top {
		if p.Token == ev.Token {
			t.Prob = p.LogProb
		}
	}
	t.Top = t.Top[:min(len(t.Top), g.p.top)]
	return t
}

// finish takes the engine's word that a choice is over.
func (g *generation) finish(c *choice, ev *engine.Event, d *Delta) {
	why := FinishStop
	switch ev.Finish {
	case engine.FinishLength:
		why = FinishLength
		d.Parts = append(d.Parts, c.Cut()...)
	case engine.FinishLoop:
		why, d.StopText = FinishLength, LoopText
		d.Parts = append(d.Parts, c.Cut()...)
	}
	d.Parts = append(d.Parts, c.End()...)
	if d.StopToken = ev.StopToken; ev.StopToken >= 0 {
		t := g.tokenInfo(&engine.Event{Token: ev.StopToken, LogProb: ev.LogProb, Top: ev.Top, Trace: ev.Trace})
		d.Ender = &t
	}
	c.end(g, d, why)
}

// end ends a choice.
func (c *choice) end(g *generation, d *Delta, why string) {
	if c.Calls() > 0 && why == FinishStop {
		why = FinishToolCalls
	}
	d.Finish = why
	c.ended = true
	g.live--
}

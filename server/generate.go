package server

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"ridge/engine"
	"ridge/sample"
	"ridge/text/chat"
	"ridge/text/tokenizer"
)

// plan is a request to a model, ready to be run: what the engine gets, and how
// its tokens become text.
type plan struct {
	m    *Model
	req  engine.Request
	text string // the prompt's text, "" if it came as tokens

	stops       []string
	includeStop bool // the stop string stays in the text
	special     bool // write out control tokens

	parse   *chat.ParseOptions // look for reasoning and calls; nil: all is text
	oneCall bool               // the answer ends after one call

	probs bool // report log-probabilities
	top   int  // and so many most probable tokens

	// limit is the time that an answer of more than one line may take, counted
	// from its first token: waiting and the prompt are not in it, and no request
	// fails by it. 0 for any time. This is what llama-server documents of
	// t_max_predict_ms, which is made for completions in editors.
	limit time.Duration
}

// tokenInfo is a token of an answer with its log-probabilities.
type tokenInfo struct {
	id   int32
	prob float32
	top  []sample.TokenProb
}

// Reasons for the end of an answer, as OpenAI names them.
const (
	finishStop      = "stop"
	finishLength    = "length"
	finishToolCalls = "tool_calls"
)

// delta is what an event of the engine means for one choice.
type delta struct {
	choice int
	parts  []chat.Part
	tokens []tokenInfo        // at most one
	prompt *engine.PromptInfo // in the first delta of a generation
	finish string             // in the last delta of a choice, else ""
	// stopText or stopToken (else -1) is what ended the choice with finishStop.
	stopText  string
	stopToken int32
	ender     *tokenInfo // the stop token with its log-probabilities
	embedding []float32
}

func (d *delta) empty() bool {
	return len(d.parts) == 0 && len(d.tokens) == 0 && d.finish == "" && d.prompt == nil
}

// text is the text for the user in a delta.
func (d *delta) text() (s string) {
	for _, p := range d.parts {
		if p.Kind == chat.PartText {
			s += p.Text
		}
	}
	return s
}

// choice turns the tokens of one answer into text.
type choice struct {
	dec    *tokenizer.Decoder
	stop   *chat.StopMatcher
	parser *chat.Parser // nil: all is text
	tokens int
	calls  int
	first  time.Time // when the first token came
	lines  bool      // there is an end of a line in the text
	ended  bool
}

// generation is a plan that runs.
type generation struct {
	p       *plan
	stream  stream
	ctx     context.Context
	cancel  context.CancelFunc
	choices []choice
	live    int

	prompt    engine.PromptInfo
	tokens    int // of all answers, what a client pays for
	reasoning int // of these, in reasoning
	forced    int // of all, those that were not drawn
	submitted time.Time
	first     time.Time // first token
	last      time.Time // latest token
	lastSeen  []time.Time
	itl       func(time.Duration)

	waits    context.Context // ends after a patience; one serves for many tokens
	stopWait context.CancelFunc
}

// start submits a plan. The generation must be closed.
func (p *plan) start(ctx context.Context) (*generation, error) {
	g := &generation{p: p, submitted: time.Now()}
	g.ctx, g.cancel = context.WithCancel(ctx)
	s, err := p.m.backend.Submit(g.ctx, p.req)
	if err != nil {
		g.cancel()
		return nil, err
	}
	g.stream = s
	g.choices = make([]choice, max(1, p.req.N))
	g.live = len(g.choices)
	g.lastSeen = make([]time.Time, len(g.choices))
	for i := range g.choices {
		c := &g.choices[i]
		c.dec, c.stop = p.m.tok.NewDecoder(), chat.NewStopMatcher(p.stops)
		if p.parse != nil {
			c.parser = chat.NewParser(p.m.syntax, *p.parse)
		}
	}
	return g, nil
}

// close ends the generation, whether or not it is complete.
func (g *generation) close() {
	g.stream.Close()
	g.cancel()
	for i := range g.choices {
		if p := g.choices[i].parser; p != nil {
			p.Close()
		}
	}
}

// errWait is returned by next when nothing has come in the time given.
var errWait = errors.New("nothing yet")

// next returns the next delta that says something; ok is false after the last
// one. With a patience it returns errWait when that is over.
func (g *generation) next(patience time.Duration) (d delta, ok bool, err error) {
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
				return delta{}, false, context.Cause(g.ctx)
			case ctx.Err() != nil && time.Since(began) < patience:
				continue // it was made for a token before this one
			case ctx.Err() != nil:
				return delta{}, false, errWait
			}
			return delta{}, false, engine.ErrClosed
		}
		if ev.Err != nil {
			return delta{}, false, ev.Err
		}
		if ev.Finish == engine.FinishAbort {
			if g.ctx.Err() != nil {
				return delta{}, false, context.Cause(g.ctx)
			}
			return delta{}, false, engine.ErrClosed
		}
		if d := g.event(&ev); !d.empty() {
			return d, true, nil
		}
	}
	return delta{}, false, nil
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
func (g *generation) event(ev *engine.Event) delta {
	d := delta{choice: ev.Choice, stopToken: -1, embedding: ev.Embedding}
	if ev.Prompt != nil {
		g.prompt = *ev.Prompt
		d.prompt = ev.Prompt
	}
	if ev.Choice < 0 || ev.Choice >= len(g.choices) {
		return d
	}
	c := &g.choices[ev.Choice]
	if c.ended {
		return d // tokens that came while a stop was on its way
	}
	if ev.Token >= 0 {
		g.token(c, ev, &d)
	}
	if ev.Finish != "" && !c.ended {
		g.finish(c, ev, &d)
	}
	return d
}

func (g *generation) token(c *choice, ev *engine.Event, d *delta) {
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
	if c.parser != nil && c.parser.Thinking() {
		g.reasoning++
	}
	if ev.Forced {
		g.forced++
	}
	d.tokens = append(d.tokens, g.tokenInfo(ev))
	c.dec.Special = g.p.special || c.parser != nil && g.p.m.marks[ev.Token]
	text, stopped := c.dec.Add(ev.Token), false
	if c.tokens > g.p.req.MinTokens { // before, a stop string is text like any other
		text, stopped = c.stop.Add(text)
	}
	if stopped && g.p.includeStop {
		text += c.stop.Matched()
	}
	d.parts = c.add(text)
	c.lines = c.lines || strings.Contains(text, "\n")
	switch {
	case stopped:
		d.stopText = c.stop.Matched()
		c.end(g, d, finishStop)
	case g.p.oneCall && ended(d.parts):
		c.end(g, d, finishStop)
	case g.p.limit > 0 && c.lines && now.Sub(c.first) > g.p.limit:
		g.finish(c, &engine.Event{StopToken: -1, Finish: engine.FinishLength}, d)
	default:
		return
	}
	g.stream.Stop(ev.Choice)
}

// ended reports whether a call ends in parts.
func ended(parts []chat.Part) bool {
	for _, p := range parts {
		if p.Kind == chat.PartCallEnd {
			return true
		}
	}
	return false
}

// tokenInfo takes an event's log-probabilities. The number of the token that
// was drawn is the very same in both places.
func (g *generation) tokenInfo(ev *engine.Event) tokenInfo {
	t := tokenInfo{id: ev.Token, prob: ev.LogProb, top: ev.Top}
	for _, p := range ev.Top {
		if p.Token == ev.Token {
			t.prob = p.LogProb
		}
	}
	t.top = t.top[:min(len(t.top), g.p.top)]
	return t
}

// finish takes the engine's word that a choice is over.
func (g *generation) finish(c *choice, ev *engine.Event, d *delta) {
	text, stopped := c.stop.Add(c.dec.Flush())
	if !stopped {
		text += c.stop.Flush()
	}
	d.parts = append(d.parts, c.add(text)...)
	why := finishStop
	if ev.Finish == engine.FinishLength {
		why = finishLength
	}
	if d.stopToken = ev.StopToken; ev.StopToken >= 0 {
		t := g.tokenInfo(&engine.Event{Token: ev.StopToken, LogProb: ev.LogProb, Top: ev.Top})
		d.ender = &t
	}
	c.end(g, d, why)
}

// end ends a choice.
func (c *choice) end(g *generation, d *delta, why string) {
	if c.parser != nil {
		d.parts = append(d.parts, c.count(c.parser.Flush())...)
	}
	if c.calls > 0 && why == finishStop {
		why = finishToolCalls
	}
	d.finish = why
	c.ended = true
	g.live--
}

// add takes decoded text.
func (c *choice) add(text string) []chat.Part {
	if c.parser != nil {
		return c.count(c.parser.Add(text))
	}
	if text == "" {
		return nil
	}
	return []chat.Part{{Kind: chat.PartText, Text: text}}
}

func (c *choice) count(parts []chat.Part) []chat.Part {
	for _, p := range parts {
		if p.Kind == chat.PartCall {
			c.calls++
		}
	}
	return parts
}

// tokenText is how a token is shown among log-probabilities: its text, or its
// bytes where they are no characters.
func (m *Model) tokenText(id int32) string {
	b := m.tok.Piece(id)
	if utf8.Valid(b) {
		return string(b)
	}
	s := "bytes:"
	for _, c := range b {
		s += `\x` + strconv.FormatInt(int64(c)|0x100, 16)[1:]
	}
	return s
}

package ridge

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"ridge/model"
	"ridge/sample"
	"ridge/text/chat"
	"ridge/text/tokenizer"
)

// Generation says how text is generated. The zero value generates greedily
// until the model ends its answer or the context is full.
type Generation struct {
	MaxTokens int // 0 means as many as the context holds
	Sampling  sample.Params
	Stop      []string      // texts that end the answer; they are not part of it
	IgnoreEOS bool          // go on after end-of-answer tokens
	Mask      sample.Masker // forbids tokens; nil for none
	Stats     *Stats        // filled while generating, when not nil
}

// Finish says why a generation ended.
type Finish string

// The reasons.
const (
	FinishStop   Finish = "stop"   // the model ended its answer, or a stop text came
	FinishLength Finish = "length" // MaxTokens or the context
)

// Stats are counts and times of a generation.
type Stats struct {
	PromptTokens int // tokens of the prompt
	CachedTokens int // of these, tokens whose keys and values were there already
	Tokens       int // tokens generated
	Prefill      time.Duration
	Decode       time.Duration
	Finish       Finish
}

// Token is a piece of an answer.
type Token struct {
	ID      int32
	Text    string  // complete characters only: may be empty, may hold text of earlier tokens
	LogProb float32 // natural logarithm of the probability, before temperature and cuts
	Top     []sample.TokenProb
}

// Generate continues prompt. The sequence ends after the answer or after an
// error, which is context.Canceled or the like if ctx ended.
func (m *Model) Generate(ctx context.Context, prompt string, g Generation) iter.Seq2[Token, error] {
	return m.GenerateTokens(ctx, m.Tokenize(prompt), g)
}

// Chat answers a conversation.
func (m *Model) Chat(ctx context.Context, messages []chat.Message, g Generation) iter.Seq2[Token, error] {
	ids, err := m.ChatTokens(chat.Input{Messages: messages, AddGenerationPrompt: true})
	if err != nil {
		return func(yield func(Token, error) bool) { yield(Token{}, err) }
	}
	return m.GenerateTokens(ctx, ids, g)
}

// ChatTokens renders a conversation with the model's template and returns its
// token ids.
func (m *Model) ChatTokens(in chat.Input) ([]int32, error) {
	p, err := m.tmpl.Prompt(in, m.tok)
	return p.Tokens, err
}

// GenerateTokens continues a prompt given as token ids.
func (m *Model) GenerateTokens(ctx context.Context, prompt []int32, g Generation) iter.Seq2[Token, error] {
	return func(yield func(Token, error) bool) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if g.Stats == nil {
			g.Stats = new(Stats)
		}
		*g.Stats = Stats{PromptTokens: len(prompt)}
		r := run{m: m, g: &g, yield: yield}
		if err := r.generate(ctx, prompt); err != nil {
			yield(Token{}, err)
		}
	}
}

// run is one generation under way.
type run struct {
	m       *Model
	g       *Generation
	yield   func(Token, error) bool
	sampler *sample.Sampler
	dec     *tokenizer.Decoder
	stop    *chat.StopMatcher
	one     [1]int32
	step    model.Step
}

func (r *run) generate(ctx context.Context, prompt []int32) error {
	if len(prompt) == 0 {
		return errors.New("ridge: prompt: expected at least one token, found none")
	}
	var err error
	if r.sampler, err = sample.New(r.g.Sampling, r.m.m.Config().Vocab); err != nil {
		return err
	}
	r.sampler.SetMasker(r.g.Mask)
	for _, id := range prompt {
		r.sampler.Accept(id)
	}
	r.dec, r.stop = r.m.tok.NewDecoder(), chat.NewStopMatcher(r.g.Stop)
	start := time.Now()
	if err := r.prefill(ctx, prompt); err != nil {
		return err
	}
	r.g.Stats.Prefill = time.Since(start)
	start = time.Now()
	err = r.decode(ctx)
	r.g.Stats.Decode = time.Since(start)
	return err
}

// prefill computes the part of the prompt whose keys and values are not held
// from the generation before. One token is always left to compute: its logits
// choose the first token of the answer.
func (r *run) prefill(ctx context.Context, prompt []int32) error {
	m := r.m
	if len(prompt) > m.m.Context() {
		return &ContextError{Tokens: len(prompt), Context: m.m.Context()}
	}
	same := 0
	for same < min(len(prompt)-1, len(m.held)) && prompt[same] == m.held[same] {
		same++
	}
	m.m.Pool().Truncate(m.seq, same)
	m.held = m.held[:same]
	r.g.Stats.CachedTokens = same
	for rest := prompt[same:]; len(rest) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, outputs := min(len(rest), m.chunk), 0
		if n == len(rest) {
			outputs = 1
		}
		if err := r.forward(rest[:n], outputs); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

func (r *run) forward(tokens []int32, outputs int) error {
	r.step.Runs = append(r.step.Runs[:0], model.Run{Seq: r.m.seq, Tokens: tokens, Outputs: outputs})
	if err := r.m.m.Forward(&r.step); err != nil {
		return err
	}
	r.m.held = append(r.m.held, tokens...)
	return nil
}

// decode samples token after token until the answer ends.
func (r *run) decode(ctx context.Context) error {
	m, st := r.m, r.g.Stats
	for {
		res := r.sampler.Sample(m.m.Logits(0))
		if res.Token < 0 {
			return errors.New("ridge: sampling: expected a token that may come next, found that all are forbidden")
		}
		r.sampler.Accept(res.Token)
		if m.tok.IsEOG(res.Token) && !r.g.IgnoreEOS {
			return r.end(FinishStop)
		}
		st.Tokens++
		text, stopped := r.stop.Add(r.dec.Add(res.Token))
		if !r.yield(Token{ID: res.Token, Text: text, LogProb: res.LogProb, Top: res.Top}, nil) {
			return nil
		}
		switch {
		case stopped:
			st.Finish = FinishStop
			return nil
		case r.g.MaxTokens > 0 && st.Tokens >= r.g.MaxTokens, m.seq.Len() >= m.m.Context():
			return r.end(FinishLength)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		r.one[0] = res.Token
		if err := r.forward(r.one[:], 1); err != nil {
			return err
		}
	}
}

// end gives out the text that was held back.
func (r *run) end(why Finish) error {
	r.g.Stats.Finish = why
	text, stopped := r.stop.Add(r.dec.Flush())
	if !stopped {
		text += r.stop.Flush()
	}
	if text != "" {
		r.yield(Token{ID: -1, Text: text}, nil)
	}
	return nil
}

// ContextError says that a prompt does not fit. It is never cut silently.
type ContextError struct{ Tokens, Context int }

func (e *ContextError) Error() string {
	return fmt.Sprintf("ridge: prompt: expected at most %d tokens, the context, found %d", e.Context, e.Tokens)
}

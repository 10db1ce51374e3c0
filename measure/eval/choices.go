package eval

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"ridge/model"
	"ridge/text/tokenizer"
)

// Question is a text and the texts that may follow it, of which Gold (from 0)
// is right.
type Question struct {
	Query   string   `json:"query"`
	Choices []string `json:"choices"`
	Gold    int      `json:"gold"`
}

// Limits of a file of questions.
const (
	maxQuestions = 1 << 20
	maxLine      = 1 << 20
	maxChoices   = 256
)

// ReadQuestions reads questions, one JSON object a line. Empty lines are left
// out. name is that of the file, for errors.
func ReadQuestions(r io.Reader, name string) ([]Question, error) {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 64<<10), maxLine)
	var out []Question
	n := 0
	for in.Scan() {
		n++
		line := bytes.TrimSpace(in.Bytes())
		if len(line) == 0 {
			continue
		}
		q := Question{Gold: -1}
		if err := json.Unmarshal(line, &q); err != nil {
			return nil, fmt.Errorf("eval: %s: line %d: %w", name, n, err)
		}
		if err := q.check(); err != nil {
			return nil, fmt.Errorf("eval: %s: line %d: %w", name, n, err)
		}
		if len(out) == maxQuestions {
			return nil, fmt.Errorf("eval: %s: expected at most %d questions, found more", name, maxQuestions)
		}
		out = append(out, q)
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("eval: %s: line %d: %w", name, n+1, err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("eval: %s: expected at least one question, found none", name)
	}
	return out, nil
}

func (q *Question) check() error {
	switch {
	case len(q.Choices) < 1 || len(q.Choices) > maxChoices:
		return fmt.Errorf("choices: expected 1 to %d, found %d", maxChoices, len(q.Choices))
	case q.Gold < 0 || q.Gold >= len(q.Choices):
		return fmt.Errorf("gold: expected 0 to %d, found %d", len(q.Choices)-1, q.Gold)
	}
	for _, c := range q.Choices {
		if c == "" {
			return errors.New("choices: expected texts that are not empty")
		}
	}
	return nil
}

// ChoiceOptions say how questions are put to a model.
type ChoiceOptions struct {
	// Delimiter stands between a query and a choice; lm-eval has a space.
	Delimiter string
	// BOS puts the token that begins texts before each query, if the tokenizer
	// wants it there. lm-eval does so over HTTP only with add_bos_token.
	BOS bool
	// Progress, when not nil, is told how many questions are done.
	Progress func(done, total int)
}

// Rate is the part of the questions that were answered rightly.
type Rate struct {
	Value  float64 `json:"value"`
	StdErr float64 `json:"std_err"` // 0 for a single question
}

// Choices is how well a model chooses.
type Choices struct {
	// Acc takes the most probable choice; AccNorm the one with the highest
	// log-probability per character, AccBytes per byte of UTF-8. They are what
	// lm-eval calls acc, acc_norm and acc_bytes for tasks of multiple choice; of
	// equals the first counts.
	Acc      Rate `json:"acc"`
	AccNorm  Rate `json:"acc_norm"`
	AccBytes Rate `json:"acc_bytes"`

	Questions int `json:"questions"`
	// LogProbs are those of every choice of every question, in nats.
	LogProbs [][]float64 `json:"log_probs"`
}

// Choose scores every choice of every question under m, which must have a
// tokenizer. Texts are cut into tokens as lm-eval cuts them: white space at the
// end of a query belongs to the choice, and a choice's tokens are those that
// the query and it have together beyond the query's own number.
func Choose(ctx context.Context, m *model.Model, questions []Question, o ChoiceOptions) (Choices, error) {
	r := Choices{Questions: len(questions)}
	if m.Tokenizer() == nil {
		return r, errors.New("eval: tokenizer: the model has none")
	}
	if len(questions) == 0 {
		return r, errors.New("eval: questions: expected at least one, found none")
	}
	var right [3]int
	for i := range questions {
		q := &questions[i]
		if err := q.check(); err != nil {
			return r, fmt.Errorf("eval: question %d: %w", i, err)
		}
		lls, err := q.score(ctx, m, o)
		if err != nil {
			return r, fmt.Errorf("eval: question %d: %w", i, err)
		}
		r.LogProbs = append(r.LogProbs, lls)
		for j, size := range []func(string) int{func(string) int { return 1 }, utf8.RuneCountInString, func(s string) int { return len(s) }} {
			if q.best(lls, size) == q.Gold {
				right[j]++
			}
		}
		if o.Progress != nil {
			o.Progress(i+1, len(questions))
		}
	}
	for j, rate := range []*Rate{&r.Acc, &r.AccNorm, &r.AccBytes} {
		n := float64(len(questions))
		rate.Value = float64(right[j]) / n
		if n > 1 {
			rate.StdErr = math.Sqrt(rate.Value * (1 - rate.Value) / (n - 1))
		}
	}
	return r, nil
}

// best is the choice with the highest log-probability per size.
func (q *Question) best(lls []float64, size func(string) int) int {
	best, at := math.Inf(-1), 0
	for i, ll := range lls {
		if v := ll / float64(size(q.Choices[i])); v > best {
			best, at = v, i
		}
	}
	return at
}

// encode returns the tokens of the query and of a choice after it.
func (q *Question) encode(t *tokenizer.Tokenizer, choice string, o ChoiceOptions) (query, after []int32) {
	enc := func(s string) []int32 { return t.Encode(nil, s, tokenizer.EncodeOptions{}) }
	trimmed := strings.TrimRightFunc(q.Query, unicode.IsSpace)
	after = enc(q.Query + choice)
	if q.Query != "" && trimmed != "" {
		query = enc(trimmed)
		after = after[min(len(query), len(after)):]
	}
	if bos := t.BOS(); bos >= 0 && (o.BOS && t.AddsBOS() || len(query) == 0) {
		query = append([]int32{bos}, query...)
	} else if eos := t.EOS(); len(query) == 0 && eos >= 0 {
		query = []int32{eos} // something has to come before
	}
	return query, after
}

// score returns the log-probability of each choice. The query is computed
// once: a sequence of the choice begins with what the query's has.
func (q *Question) score(ctx context.Context, m *model.Model, o ChoiceOptions) ([]float64, error) {
	out := make([]float64, len(q.Choices))
	pool := m.Pool()
	base := pool.NewSeq()
	defer pool.Free(base)
	var last int32
	for i, c := range q.Choices {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		query, after := q.encode(m.Tokenizer(), o.Delimiter+c, o)
		switch {
		case len(query) == 0:
			return nil, errors.New("query: expected a text, or a tokenizer with a token that begins texts")
		case len(after) == 0:
			return nil, fmt.Errorf("choice %d: %q adds no token to the query", i, c)
		case len(query)+len(after) > m.Context():
			return nil, fmt.Errorf("choice %d: expected at most %d tokens, the context, found %d", i, m.Context(), len(query)+len(after))
		}
		last = query[len(query)-1]
		if i == 0 {
			if err := prefill(ctx, m, model.Run{Seq: base, Tokens: query[:len(query)-1]}); err != nil {
				return nil, err
			}
		}
		seq, err := pool.Fork(base)
		if err != nil {
			return nil, err
		}
		err = follow(m, model.Run{Seq: seq}, last, after, func(next int32, logits []float32) { out[i] += logProb(logits, next) })
		pool.Free(seq)
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// prefill computes tokens whose logits nobody wants, a part at a time.
func prefill(ctx context.Context, m *model.Model, s model.Run) error {
	for tokens := s.Tokens; len(tokens) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(512, len(tokens))
		if err := m.Forward(&model.Step{Runs: []model.Run{{Seq: s.Seq, Tokens: tokens[:n]}}}); err != nil {
			return err
		}
		tokens = tokens[n:]
	}
	return nil
}

// follow computes last and the tokens after it in the sequence of s, and calls
// each with every one of those and the logits that predict it.
func follow(m *model.Model, s model.Run, last int32, after []int32, each func(next int32, logits []float32)) error {
	in := append([]int32{last}, after[:len(after)-1]...)
	for lo := 0; lo < len(in); lo += scanRows {
		hi := min(lo+scanRows, len(in))
		if err := m.Forward(&model.Step{Runs: []model.Run{{Seq: s.Seq, Tokens: in[lo:hi], Outputs: hi - lo}}}); err != nil {
			return err
		}
		for i := range hi - lo {
			each(after[lo+i], m.Logits(i))
		}
	}
	return nil
}

package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ridge/engine"
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
	var out []Question
	err := readLines(r, name, func(line []byte) error {
		q := Question{Gold: -1}
		if err := json.Unmarshal(line, &q); err != nil {
			return err
		}
		if err := q.check(); err != nil {
			return err
		}
		out = append(out, q)
		return nil
	})
	if err != nil {
		return nil, err
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

// Choose scores every choice of every question under the model of e, which must
// have a tokenizer. Texts are cut into tokens as lm-eval cuts them: white space
// at the end of a query belongs to the choice, and a choice's tokens are those
// that the query and it have together beyond the query's own number.
func Choose(ctx context.Context, e *engine.Engine, questions []Question, o ChoiceOptions) (Choices, error) {
	r := Choices{Questions: len(questions), LogProbs: make([][]float64, len(questions))}
	if e.Model().Tokenizer() == nil {
		return r, errors.New("eval: tokenizer: the model has none")
	}
	if len(questions) == 0 {
		return r, errors.New("eval: questions: expected at least one, found none")
	}
	var right [3]int
	err := inOrder(ctx, len(questions), atOnce, func(ctx context.Context, i int) (err error) {
		q := &questions[i]
		if err = q.check(); err == nil {
			r.LogProbs[i], err = q.score(ctx, e, o)
		}
		if err != nil {
			return fmt.Errorf("eval: question %d: %w", i, err)
		}
		return nil
	}, func(i int) {
		q := &questions[i]
		for j, ok := range q.right(r.LogProbs[i]) {
			if ok {
				right[j]++
			}
		}
		if o.Progress != nil {
			o.Progress(i+1, len(questions))
		}
	})
	if err != nil {
		return r, err
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

// right reports whether the most probable choice is right, and the one with the highest
// log-probability per character and per byte.
func (q *Question) right(lls []float64) (r [3]bool) {
	for j, size := range []func(string) int{func(string) int { return 1 }, utf8.RuneCountInString, func(s string) int { return len(s) }} {
		r[j] = q.best(lls, size) == q.Gold
	}
	return r
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

// score returns the log-probability of each choice. The query is computed once,
// with the first choice: the others find it in the prefix tree.
func (q *Question) score(ctx context.Context, e *engine.Engine, o ChoiceOptions) ([]float64, error) {
	out := make([]float64, len(q.Choices))
	one := func(ctx context.Context, i int) error {
		query, after := q.encode(e.Model().Tokenizer(), o.Delimiter+q.Choices[i], o)
		switch {
		case len(query) == 0:
			return errors.New("query: expected a text, or a tokenizer with a token that begins texts")
		case len(after) == 0:
			return fmt.Errorf("choice %d: %q adds no token to the query", i, q.Choices[i])
		}
		probs, err := logProbs(ctx, e, slices.Concat(query, after), len(query))
		if err != nil {
			return fmt.Errorf("choice %d: %w", i, err)
		}
		for _, p := range probs {
			out[i] += p
		}
		return nil
	}
	if err := one(ctx, 0); err != nil {
		return nil, err
	}
	return out, inOrder(ctx, len(q.Choices)-1, atOnce, func(ctx context.Context, i int) error { return one(ctx, i+1) }, func(int) {})
}

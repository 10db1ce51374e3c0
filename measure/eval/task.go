package eval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"

	"ridge/engine"
)

// Item is one of a task, in one of lm-eval's three forms.
type Item struct {
	// Multiple choice.
	Query   string   `json:"query,omitempty"`
	Choices []string `json:"choices,omitempty"`
	Gold    int      `json:"gold,omitempty"`
	// What comes after a context (loglikelihood). Text is a context with its last word,
	// as LAMBADA has it.
	Context      string `json:"context,omitempty"`
	Continuation string `json:"continuation,omitempty"`
	Text         string `json:"text,omitempty"`
	// A problem whose solution is written (generate_until), and a solution that ends in
	// "#### 18", as GSM8K has it, or is the answer alone.
	Question string `json:"question,omitempty"`
	Answer   string `json:"answer,omitempty"`

	// Group is a part of the task that is also scored alone.
	Group string `json:"group,omitempty"`
}

// The forms of items, as lm-eval calls them.
const (
	FormChoice   = "multiple_choice"
	FormLikely   = "loglikelihood"
	FormGenerate = "generate_until"
)

// Form returns the form of an item, "" if it has none.
func (t *Item) Form() string {
	switch {
	case len(t.Choices) > 0:
		return FormChoice
	case t.Continuation != "" || t.Text != "":
		return FormLikely
	case t.Question != "" && t.Answer != "":
		return FormGenerate
	}
	return ""
}

// ReadItems reads a task, one JSON object a line, all of one form. name is that of the
// file, for errors.
func ReadItems(r io.Reader, name string) ([]Item, error) {
	var out []Item
	err := readLines(r, name, func(line []byte) error {
		t := Item{Gold: -1}
		if err := json.Unmarshal(line, &t); err != nil {
			return err
		}
		form := t.Form()
		switch {
		case form == "":
			return errors.New("expected query and choices, context and continuation, text, or question and answer")
		case len(out) > 0 && form != out[0].Form():
			return fmt.Errorf("expected %s as in the first line, found %s", out[0].Form(), form)
		case form == FormChoice:
			if err := t.choice().check(); err != nil {
				return err
			}
		case t.Text != "":
			at := strings.LastIndexByte(t.Text, ' ')
			if at <= 0 || at == len(t.Text)-1 {
				return errors.New("text: expected a last word behind a space")
			}
			t.Context, t.Continuation, t.Text = t.Text[:at], t.Text[at:], ""
		}
		if form != FormChoice {
			t.Gold = 0
		}
		out = append(out, t)
		return nil
	})
	return out, err
}

func (t *Item) choice() *Question {
	return &Question{Query: t.Query, Choices: t.Choices, Gold: t.Gold}
}

// Outcome is what a model made of an item.
type Outcome struct {
	// LogProbs are those of the choices, or of the continuation, in nats.
	LogProbs []float64 `json:"log_probs,omitempty"`
	// Greedy says that the continuation is what the most probable tokens spell.
	Greedy bool `json:"greedy,omitempty"`
	// Output is what was written.
	Output string `json:"output,omitempty"`
}

// TaskOptions say how items are put to a model.
type TaskOptions struct {
	ChoiceOptions
	// Examples stand before each problem, with their solutions.
	Examples []Item
	// Write returns what the model writes behind a prompt; for problems.
	Write func(ctx context.Context, prompt string) (string, error)
	// Done are the outcomes of the first items that are known already, and Each, when not
	// nil, is given every further one, in order.
	Done []Outcome
	Each func(Outcome) error
}

// RunTask puts all items to the model of e, several at once, and returns the outcomes.
func RunTask(ctx context.Context, e *engine.Engine, items []Item, o TaskOptions) ([]Outcome, error) {
	if len(items) == 0 || e.Model().Tokenizer() == nil {
		return nil, errors.New("eval: task: expected items, and a model with a tokenizer")
	}
	done := min(len(o.Done), len(items))
	out := append(slices.Clone(o.Done[:done]), make([]Outcome, len(items)-done)...)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := inOrder(ctx, len(items)-done, atOnce, func(ctx context.Context, i int) (err error) {
		i += done
		if out[i], err = items[i].put(ctx, e, &o); err != nil {
			err = fmt.Errorf("eval: item %d: %w", i+1, err)
		}
		return err
	}, func(i int) {
		i += done
		if o.Each != nil {
			if err := o.Each(out[i]); err != nil {
				cancel(err)
			}
		}
		if o.Progress != nil {
			o.Progress(i+1, len(items))
		}
	})
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
		err = cause
	}
	return out, err
}

// put puts an item to the model.
func (t *Item) put(ctx context.Context, e *engine.Engine, o *TaskOptions) (out Outcome, err error) {
	switch t.Form() {
	case FormChoice:
		out.LogProbs, err = t.choice().score(ctx, e, o.ChoiceOptions)
	case FormLikely:
		out, err = t.likely(ctx, e, o.ChoiceOptions)
	default:
		if o.Write == nil {
			return out, errors.New("a problem: expected a way to write, found none")
		}
		out.Output, err = o.Write(ctx, t.prompt(o.Examples))
	}
	return out, err
}

// likely scores the continuation.
func (t *Item) likely(ctx context.Context, e *engine.Engine, o ChoiceOptions) (Outcome, error) {
	q := Question{Query: t.Context, Choices: []string{t.Continuation}}
	before, after := q.encode(e.Model().Tokenizer(), t.Continuation, o)
	if len(before) == 0 || len(after) == 0 {
		return Outcome{}, fmt.Errorf("continuation: %q: expected a token at least, behind one", t.Continuation)
	}
	all := slices.Concat(before, after)
	probs, top := make([]float64, len(after)), make([]bool, len(after))
	err := scan(ctx, e, all, len(before), func(at int, logits []float32) {
		i := at - len(before)
		probs[i] = logProb(logits, all[at])
		best := 0
		for k, v := range logits {
			if v > logits[best] {
				best = k
			}
		}
		top[i] = int32(best) == all[at]
	})
	sum := 0.0
	for _, p := range probs {
		sum += p
	}
	return Outcome{LogProbs: []float64{sum}, Greedy: !slices.Contains(top, false)}, err
}

// prompt is the problem behind solved ones, as lm-eval's gsm8k has it.
func (t *Item) prompt(examples []Item) string {
	var b strings.Builder
	for _, x := range examples {
		fmt.Fprintf(&b, "Question: %s\nAnswer: %s\n\n", x.Question, x.Answer)
	}
	fmt.Fprintf(&b, "Question: %s\nAnswer:", t.Question)
	return b.String()
}

// Expressions of lm-eval's gsm8k: what is taken from an output and what does not count
// when it is compared.
var (
	strictAnswer   = regexp.MustCompile(`#### (-?[0-9.,]+)`)
	flexibleAnswer = regexp.MustCompile(`(-?[$0-9.,]{2,})|(-?[0-9]+)`)
	notCounted     = []*regexp.Regexp{regexp.MustCompile(`,`), regexp.MustCompile(`\$`), regexp.MustCompile(`(?s).*#### `), regexp.MustCompile(`\.$`)}
)

// sameAnswer compares as lm-eval's exact_match of gsm8k.
func sameAnswer(a, b string) bool {
	for _, re := range notCounted {
		a, b = re.ReplaceAllString(a, ""), re.ReplaceAllString(b, "")
	}
	return strings.EqualFold(a, b)
}

// solved reports whether the answer behind "####", and the last number, is right.
func (t *Item) solved(output string) (strict, flexible bool) {
	if m := strictAnswer.FindStringSubmatch(output); m != nil {
		strict = sameAnswer(strings.TrimSpace(m[1]), t.Answer)
	}
	if all := flexibleAnswer.FindAllString(output, -1); len(all) > 0 {
		flexible = sameAnswer(strings.TrimSpace(all[len(all)-1]), t.Answer)
	}
	return strict, flexible
}

// Metric is a mean over items, under the name that lm-eval gives it.
type Metric struct {
	Name string `json:"name"`
	Rate
}

// ScoreItems returns the metrics of a form: acc, acc_norm and acc_bytes of choices; acc and
// perplexity of continuations; exact_match of problems, strict and flexible. Standard
// errors are those of means with n-1; that of the perplexity follows from that of
// the mean, where lm-eval draws samples.
func ScoreItems(items []Item, outcomes []Outcome) []Metric {
	var names []string
	var sums [][]float64
	add := func(name string, v float64) {
		i := slices.Index(names, name)
		if i < 0 {
			i, names, sums = len(names), append(names, name), append(sums, nil)
		}
		sums[i] = append(sums[i], v)
	}
	for i, t := range items {
		o := outcomes[i]
		switch t.Form() {
		case FormChoice:
			q := t.choice()
			for k, right := range q.right(o.LogProbs) {
				add([...]string{"acc", "acc_norm", "acc_bytes"}[k], one(right))
			}
		case FormLikely:
			add("acc", one(o.Greedy))
			add("perplexity", -o.LogProbs[0])
		default:
			strict, flexible := t.solved(o.Output)
			add("exact_match,strict-match", one(strict))
			add("exact_match,flexible-extract", one(flexible))
		}
	}
	var out []Metric
	for i, name := range names {
		r := meanOf(sums[i])
		if name == "perplexity" {
			r.Value = math.Exp(r.Value)
			r.StdErr *= r.Value
		}
		out = append(out, Metric{name, r})
	}
	return out
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// meanOf returns the mean and its standard error.
func meanOf(x []float64) Rate {
	n, sum, squares := float64(len(x)), 0.0, 0.0
	for _, v := range x {
		sum += v / n
	}
	for _, v := range x {
		squares += (v - sum) * (v - sum)
	}
	r := Rate{Value: sum}
	if n > 1 {
		r.StdErr = math.Sqrt(squares / (n - 1) / n)
	}
	return r
}

// ReadOutcomes reads what was kept of a task with a key: a line with it, then one for
// each item. A last line that was cut off is left out; whole is how many bytes the others
// have. Nothing is a task that has not begun.
func ReadOutcomes(b []byte, key string) (done []Outcome, whole int, err error) {
	for line := range bytes.Lines(b) {
		if line[len(line)-1] != '\n' {
			break
		}
		if whole == 0 {
			var head struct{ Key string }
			if err := json.Unmarshal(line, &head); err != nil || head.Key != key {
				return nil, 0, fmt.Errorf("eval: kept outcomes: expected those of the same model, items and options (%s), found %q", key, head.Key)
			}
		} else {
			var o Outcome
			if err := json.Unmarshal(line, &o); err != nil {
				return nil, 0, fmt.Errorf("eval: kept outcomes: line %d: %w", len(done)+2, err)
			}
			done = append(done, o)
		}
		whole += len(line)
	}
	return done, whole, nil
}

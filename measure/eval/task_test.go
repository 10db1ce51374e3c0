package eval_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ridge"
	"ridge/internal/cpu"
	"ridge/internal/testdata"
	"ridge/measure/eval"
	"ridge/model"
	"ridge/sample"
)

func readItems(t *testing.T, path string) []eval.Item {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	items, err := eval.ReadItems(f, path)
	if err != nil {
		t.Fatal(err)
	}
	return items
}

func openTiny(t *testing.T) *ridge.Model {
	t.Helper()
	m, err := ridge.OpenFile(testdata.Tiny, ridge.Options{Act: model.ActInt16})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// Values are those of gen_tasks.py, which scores the same model over HTTP by lm-eval's
// definitions; outcomes that are known are not computed again.
func TestTasksOverHTTP(t *testing.T) {
	if cpu.Current() < cpu.AVX2 {
		t.Skip("skipped: the golden is of the vector kernels; others round otherwise")
	}
	type mean struct {
		Value  float64 `json:"value"`
		StdErr float64 `json:"std_err"`
	}
	var want struct {
		Likely struct {
			LogProbs   []float64 `json:"log_probs"`
			Greedy     []bool
			Acc        mean
			Perplexity float64
		}
		Written struct {
			Outputs          []string
			Strict, Flexible mean
		}
	}
	b, err := os.ReadFile("testdata/tasks.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	m, ctx := openTiny(t), context.Background()
	near := func(what string, got, want, most float64) {
		if math.Abs(got-want) > most {
			t.Errorf("%s: expected %v, found %v", what, want, got)
		}
	}

	items := readItems(t, "testdata/tasks.jsonl")
	out, err := eval.RunTask(ctx, m.Engine(), items, eval.TaskOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range out {
		near(fmt.Sprintf("item %d", i+1), o.LogProbs[0], want.Likely.LogProbs[i], 0.01)
		if o.Greedy != want.Likely.Greedy[i] {
			t.Errorf("item %d: greedy: expected %v, found %v", i+1, want.Likely.Greedy[i], o.Greedy)
		}
	}
	metrics := eval.ScoreItems(items, out)
	near("acc", metrics[0].Value, want.Likely.Acc.Value, 1e-9)
	near("acc's standard error", metrics[0].StdErr, want.Likely.Acc.StdErr, 1e-9)
	near("perplexity", metrics[1].Value/want.Likely.Perplexity, 1, 0.01)

	problems := readItems(t, "testdata/problems.jsonl")
	written := 0
	o := eval.TaskOptions{Examples: problems[:1], Write: func(ctx context.Context, prompt string) (string, error) {
		written++
		var b strings.Builder
		for tok, err := range m.Generate(ctx, prompt, ridge.Generation{MaxTokens: 24, Stop: []string{"Question:"}, Exact: true, Sampling: sample.Params{TopK: 1}}) {
			if err != nil {
				return "", err
			}
			b.WriteString(tok.Text)
		}
		return b.String(), nil
	}}
	o.Done = []eval.Outcome{{Output: want.Written.Outputs[0]}, {Output: want.Written.Outputs[1]}}
	if out, err = eval.RunTask(ctx, m.Engine(), problems, o); err != nil {
		t.Fatal(err)
	}
	for i, o := range out {
		if o.Output != want.Written.Outputs[i] {
			t.Errorf("problem %d: expected %q, found %q", i+1, want.Written.Outputs[i], o.Output)
		}
	}
	if written != 1 {
		t.Errorf("expected one problem to be written, as two are known, found %d", written)
	}
	metrics = eval.ScoreItems(problems, out)
	near("strict", metrics[0].Value, want.Written.Strict.Value, 1e-9)
	near("flexible", metrics[1].Value, want.Written.Flexible.Value, 1e-9)

	// The solutions themselves are right, and what is like them.
	for i, p := range problems {
		text := p.Answer
		m := eval.ScoreItems(problems[i:i+1], []eval.Outcome{{Output: p.Answer}})
		if m[0].Value != 1 || m[1].Value != 1 {
			t.Errorf("problem %d: expected its solution to be right, found %v", i+1, m)
		}
		if wrong := eval.ScoreItems(problems[i:i+1], []eval.Outcome{{Output: strings.NewReplacer("42", "43", "1250", "1251", "1,250", "1,251", "4", "5").Replace(text)}}); wrong[0].Value != 0 || wrong[1].Value != 0 {
			t.Errorf("problem %d: expected another answer to be wrong, found %v", i+1, wrong)
		}
	}
}

// Choices of a task are those of Choose; an error while outcomes are kept ends it.
func TestTaskOfChoices(t *testing.T) {
	m, ctx := openTiny(t), context.Background()
	items := readItems(t, "testdata/facts.jsonl")[:6]
	var questions []eval.Question
	for _, i := range items {
		questions = append(questions, eval.Question{Query: i.Query, Choices: i.Choices, Gold: i.Gold})
	}
	o := eval.TaskOptions{ChoiceOptions: eval.ChoiceOptions{Delimiter: " "}}
	r, err := eval.Choose(ctx, m.Engine(), questions, o.ChoiceOptions)
	if err != nil {
		t.Fatal(err)
	}
	out, err := eval.RunTask(ctx, m.Engine(), items, o)
	if err != nil {
		t.Fatal(err)
	}
	metrics := eval.ScoreItems(items, out)
	for i, want := range []eval.Rate{r.Acc, r.AccNorm, r.AccBytes} {
		if math.Abs(metrics[i].Value-want.Value) > 1e-12 || math.Abs(metrics[i].StdErr-want.StdErr) > 1e-12 {
			t.Errorf("%s: expected %v, found %v", metrics[i].Name, want, metrics[i].Rate)
		}
	}
	full := errors.New("disk full")
	o.Each = func(eval.Outcome) error { return full }
	if _, err := eval.RunTask(ctx, m.Engine(), items, o); !errors.Is(err, full) {
		t.Errorf("expected %v, found %v", full, err)
	}
}

// The same seed makes the same items, the needle stands where it should in a text that is
// not too long, and what is asked for is in it once.
func TestSyntheticTasks(t *testing.T) {
	count := func(s string) int { return len(strings.Fields(s)) }
	make := func(seed uint64) [][]eval.Item {
		return [][]eval.Item{eval.Needles(count, []int{100, 400}, []float64{0, 0.5, 1}, 2, seed), eval.Copies([]int{4, 9}, 2, seed), eval.Recalls([]int{3, 8}, 2, seed)}
	}
	first := make(3)
	if !reflect.DeepEqual(first, make(3)) || reflect.DeepEqual(first, make(4)) {
		t.Error("expected items that depend on the seed alone")
	}
	for i, x := range first[0] {
		length, depth := []int{100, 400}[i/6], float64(i%6/2)/2
		at := strings.Index(x.Context, x.Continuation)
		whole := count(x.Context + x.Continuation)
		if at < 0 || strings.Contains(x.Context[at+1:], x.Continuation) || whole > length || whole < length-20 {
			t.Errorf("%s: expected the number once in %d words, found %d", x.Group, length, whole)
		}
		if got := float64(count(x.Context[:at])) / float64(length); math.Abs(got-depth) > 0.25 {
			t.Errorf("%s: found at %v", x.Group, got)
		}
	}
	for _, x := range first[1] {
		text, again, _ := strings.Cut(x.Context+x.Continuation, "\n")
		if text != again || fmt.Sprintf("%d words", count(text)) != x.Group {
			t.Errorf("copy: found %q and %q", text, again)
		}
	}
	for _, x := range first[2] {
		lines := strings.Split(x.Context, "\n")
		if !slices.Contains(lines[:len(lines)-1], lines[len(lines)-1]+x.Continuation) {
			t.Errorf("recall: expected what is asked for in the list, found %+v", x)
		}
	}
}

// Kept outcomes are those of the same task only; a line that was cut off is left out.
func TestKeptOutcomes(t *testing.T) {
	head, line := `{"key":"k"}`+"\n", `{"log_probs":[-1],"greedy":true}`+"\n"
	for text, n := range map[string]int{"": 0, head: 0, head + line: 1, head + line + line + line[:9]: 2, head[:5]: 0} {
		done, whole, err := eval.ReadOutcomes([]byte(text), "k")
		if err != nil || len(done) != n || n > 0 && whole != len(head)+n*len(line) {
			t.Errorf("%q: expected %d outcomes, found %d in %d bytes, %v", text, n, len(done), whole, err)
		}
	}
	for _, text := range []string{`{"key":"other"}` + "\n", "x\n", head + "x\n"} {
		if _, _, err := eval.ReadOutcomes([]byte(text), "k"); err == nil {
			t.Errorf("%q: expected an error", text)
		}
	}
	for in, says := range map[string]string{
		`{"context":"a"}`: "expected query and choices",
		`{"text":"word"}`: "last word",
		"{\"text\":\"a b\"}\n{\"question\":\"a\",\"answer\":\"b\"}": "expected loglikelihood",
		`{"choices":["a"],"gold":1}`:                                "gold",
	} {
		if _, err := eval.ReadItems(strings.NewReader(in), "f"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: expected %q, found %v", in, says, err)
		}
	}
}

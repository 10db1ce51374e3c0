package eval

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"ridge/internal/cpu"
	"ridge/internal/testdata"
	"ridge/model"
	"ridge/text/tokenizer"
)

func questions(t testing.TB) []Question {
	t.Helper()
	f, err := os.Open("testdata/facts.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	q, err := ReadQuestions(f, "facts.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// A model's choices are those of one step over query and choice with plain
// sums, and the rates follow from them.
func TestChooseAgainstNaive(t *testing.T) {
	m, e := open(t), start(t, open(t))
	qs := questions(t)[:12]
	for _, o := range []ChoiceOptions{{Delimiter: " "}, {Delimiter: " ", BOS: true}, {}} {
		r, err := Choose(context.Background(), e, qs, o)
		if err != nil {
			t.Fatal(err)
		}
		right := 0
		for i, q := range qs {
			best := 0
			for j, c := range q.Choices {
				query := m.Tokenizer().Encode(nil, q.Query, tokenizer.EncodeOptions{AddSpecial: o.BOS})
				all := m.Tokenizer().Encode(nil, q.Query+o.Delimiter+c, tokenizer.EncodeOptions{AddSpecial: o.BOS})
				nll, _ := naive(t, m, append(query, all[len(query):]...), []window{{0, len(all), len(query)}}, -1)
				if math.Abs(r.LogProbs[i][j]+nll) > 1e-4 {
					t.Errorf("%+v: question %d, choice %d: %v, want %v", o, i, j, r.LogProbs[i][j], -nll)
				}
				if r.LogProbs[i][j] > r.LogProbs[i][best] {
					best = j
				}
			}
			if best == q.Gold {
				right++
			}
		}
		if want := float64(right) / float64(len(qs)); r.Acc.Value != want {
			t.Errorf("%+v: accuracy %v, want %v", o, r.Acc.Value, want)
		}
	}
}

// lm-eval over HTTP and Choose give the same numbers: testdata has what lm-eval
// 0.4.13 wrote of the same file, served by ridge.
func TestChoicesAsLmEval(t *testing.T) {
	if cpu.Current() < cpu.AVX2 {
		t.Skip("skipped: the golden is of the vector kernels; others round otherwise, by up to half a nat for a whole choice")
	}
	b, err := os.ReadFile("testdata/facts.lmeval.json")
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Acc, AccNorm, AccBytes, StdErr float64
		LogProbs                       [][]float64
	}
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	o := model.DefaultOptions()
	o.MaxContext, o.KVBytes, o.Act = 512, 64<<20, model.ActInt8 // which it was written with
	m, err := model.Open(testdata.Model(t, "smollm2"), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	last := 0
	r, err := Choose(context.Background(), start(t, m), questions(t), ChoiceOptions{Delimiter: " ", Progress: func(done, total int) {
		if last++; done != last || total != 60 {
			t.Errorf("progress %d of %d", done, total)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i, lls := range r.LogProbs {
		for j, ll := range lls {
			if math.Abs(ll-want.LogProbs[i][j]) > 0.01 {
				t.Errorf("question %d, choice %d: %v, want %v", i, j, ll, want.LogProbs[i][j])
			}
		}
	}
	for name, x := range map[string][2]float64{"acc": {r.Acc.Value, want.Acc}, "acc_norm": {r.AccNorm.Value, want.AccNorm}, "acc_bytes": {r.AccBytes.Value, want.AccBytes}, "acc_stderr": {r.Acc.StdErr, want.StdErr}} {
		if math.Abs(x[0]-x[1]) > 1e-4 {
			t.Errorf("%s: %v, want %v", name, x[0], x[1])
		}
	}
}

func TestBestChoice(t *testing.T) {
	q := Question{Choices: []string{"é", "abc", "ab"}}
	one := func(string) int { return 1 }
	for _, c := range []struct {
		lls  []float64
		size func(string) int
		want int
	}{
		{[]float64{-2, -1, -1}, one, 1}, // the first of equals
		{[]float64{-2, -3, -3}, func(s string) int { return len(s) }, 0},
		{[]float64{-2, -3, -3}, func(s string) int { return len([]rune(s)) }, 1},
	} {
		if got := q.best(c.lls, c.size); got != c.want {
			t.Errorf("%v: got %d, want %d", c.lls, got, c.want)
		}
	}
}

func TestReadQuestionsRefuses(t *testing.T) {
	for in, says := range map[string]string{
		"":  "at least one",
		"x": "line 1",
		"\n{\"query\":\"a\",\"choices\":[],\"gold\":0}": "line 2: choices",
		`{"query":"a","choices":["b"],"gold":1}`:        "gold",
		`{"query":"a","choices":["b"]}`:                 "gold",
		`{"query":"a","choices":["b",""],"gold":0}`:     "empty",
		`{"query":5,"choices":["b"],"gold":0}`:          "query",
		strings.Repeat("x", maxLine+1):                  "line 1",
	} {
		if _, err := ReadQuestions(strings.NewReader(in), "f"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.50s: got %v, want %s", in, err, says)
		}
	}
	e := start(t, open(t))
	if _, err := Choose(context.Background(), e, []Question{{Query: strings.Repeat("a ", 4000), Choices: []string{"b"}}}, ChoiceOptions{}); err == nil || !strings.Contains(err.Error(), "context") {
		t.Errorf("too long: got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Choose(ctx, e, questions(t), ChoiceOptions{}); err == nil {
		t.Error("no error after the end of the context")
	}
}

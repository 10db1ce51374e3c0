package eval

import (
	"context"
	"strings"
	"testing"
)

// A model begins answers as it does itself, and the counts are those of the first
// tokens.
func TestCompareFirst(t *testing.T) {
	a, b := start(t, open(t)), start(t, open(t))
	tokens := text(60, a.Model().Config().Vocab)
	prompts := [][]int32{tokens[:5], tokens[5:30], tokens[30:]}
	told := 0
	f, err := CompareFirst(context.Background(), a, b, prompts, func(done, total int) { told = done })
	if err != nil {
		t.Fatal(err)
	}
	if f.Prompts != 3 || f.Differ != 0 || f.MeanKL != 0 || f.Low != 0 || !(f.High > 0.5 && f.High < 0.6) || told != 3 {
		t.Errorf("a model differs from itself: %+v, %d told", f, told)
	}
	if _, err := CompareFirst(context.Background(), a, b, nil, nil); err == nil {
		t.Error("no prompts: no error")
	}
}

func TestReadPrompts(t *testing.T) {
	got, err := ReadPrompts(strings.NewReader("{\"turns\": [\"a\", \"b\"]}\n\n{\"question\": \"c\"}\n"), "x")
	if err != nil || strings.Join(got, " ") != "a c" {
		t.Errorf("%q, %v", got, err)
	}
	for line, want := range map[string]string{`{"turns": []}`: "x: line 1: expected \"turns\" or \"question\"", `{"question": 3}`: "line 1"} {
		if _, err := ReadPrompts(strings.NewReader(line), "x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

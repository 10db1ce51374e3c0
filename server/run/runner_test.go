package run

import (
	"context"
	"testing"
	"time"

	"ridge/engine"
	"ridge/internal/testdata"
	"ridge/model"
	"ridge/server/fault"
	"ridge/weights/tensor"
)

// nobody watches.
type nobody struct{}

func (nobody) TokenTimes(string) func(time.Duration) { return func(time.Duration) {} }
func (nobody) Generation(*Outcome)                   {}

// tinyModel is the tiny model of random weights behind an engine, which end with
// the test.
func tinyModel(t *testing.T) *Model {
	t.Helper()
	mm, err := model.Open(testdata.Tiny, model.Options{Workers: 1, PageTokens: 16, KVBytes: 1 << 20, KV: tensor.F16})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(mm, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewModel(ModelConfig{Name: "tiny", Path: testdata.Tiny, Engine: e})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// A limit that is over before the engine has taken the request does not make it
// fail, a client that has left does.
func TestTimeLimitBeforeSubmit(t *testing.T) {
	s := &Runner{Watch: nobody{}}
	p := &Plan{Model: tinyModel(t), limit: 1, Request: engine.Request{Tokens: []int32{1, 2, 3}, MaxTokens: 4, N: 1, IgnoreEOS: true}}
	answers, err := s.Collect(t.Context(), p, &Totals{})
	if err != nil || answers[0].Finish != FinishLength || len(answers[0].Tokens) == 0 {
		t.Errorf("%v, %+v", err, answers)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Collect(gone, p, &Totals{}); fault.As(err).Status != fault.StatusClientGone {
		t.Errorf("got %v", err)
	}
}

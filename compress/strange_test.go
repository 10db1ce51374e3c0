package compress_test

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"

	"ridge"
	"ridge/compress"
	"ridge/engine"
	"ridge/model"
)

// A loss on text that a model does not know says nothing of how well a file keeps the
// model. On a page of these documents the float model's loss is above that of knowing
// nothing, ln 2048 = 7.62 nats: it is sure and wrong. Errors of weights make it less
// sure, so plain rounding, whose errors are larger, has a lower loss there than the float
// model, and GPTQ, which is nearer to that, has not. Most of what is between the two goes
// where a temperature takes the false sureness away. TestMethodsLowerDivergence
// shows that nothing of it is there on text that the model knows.
func TestLossOfStrangeText(t *testing.T) {
	if testing.Short() {
		t.Skip("computes some windows with three models")
	}
	m, err := model.Open(prose, model.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	calibration := tokens(t, m.Tokenizer(), calibrationText, 4096)
	plain, _ := written(t, prose, "Q4_0", compress.RTN{}, nil, nil)
	gptq, _ := written(t, prose, "Q4_0", compress.GPTQ{Damp: 0.01}, m, calibration)
	strange := tokens(t, m.Tokenizer(), "../docs/server.md", 4096)
	temperatures := []float64{1, 1.5, 2, 2.5, 3, 4}
	var losses [3][]float64
	for i, path := range []string{prose, plain, gptq} {
		m, err := ridge.OpenFile(path, ridge.Options{Act: model.ActInt16})
		if err != nil {
			t.Fatal(err)
		}
		losses[i] = lossesAt(t, m.Engine(), strange, temperatures)
		m.Close()
		t.Logf("%s: %.4f nats at temperatures %v", [...]string{"float", "rtn", "gptq"}[i], losses[i], temperatures)
	}
	float, plainLoss, gptqLoss := losses[0], losses[1], losses[2]
	if nothing := math.Log(2048); float[0] <= nothing {
		t.Errorf("expected a loss of the float model above %.3f nats, found %.3f", nothing, float[0])
	}
	apart, calm := gptqLoss[0]-plainLoss[0], slices.Min(gptqLoss)-slices.Min(plainLoss)
	if apart < 0.03 || calm > apart/2 {
		t.Errorf("expected a loss of GPTQ above that of plain rounding by 0.03 nats at least, and by less than half of it at the best temperature, found %.3f and %.3f", apart, calm)
	}
}

// lossesAt returns the mean loss of the second halves of windows of 256 tokens, with
// logits divided by temperatures.
func lossesAt(t *testing.T, e *engine.Engine, ids []int32, temperatures []float64) []float64 {
	t.Helper()
	sums, n := make([]float64, len(temperatures)), 0.0
	var mu sync.Mutex
	for at := 0; at+256 <= len(ids); at += 256 {
		part := ids[at : at+256]
		s, err := e.Submit(context.Background(), engine.Request{Tokens: part, MaxTokens: -1, ScoreFrom: 129, PromptLogits: func(i int, logits []float32) {
			mu.Lock()
			defer mu.Unlock()
			n++
			for k, temperature := range temperatures {
				sum := 0.0
				for _, v := range logits {
					sum += math.Exp(float64(v) / temperature)
				}
				sums[k] += math.Log(sum) - float64(logits[part[i]])/temperature
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		if ev, _ := s.Next(context.Background()); ev.Err != nil {
			t.Fatal(ev.Err)
		}
		s.Close()
	}
	for k := range sums {
		sums[k] /= n
	}
	return sums
}

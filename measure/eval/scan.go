package eval

import (
	"context"

	"ridge/engine"
)

// atOnce is how many texts the engine gets at one time.
const atOnce = 16

// scan computes tokens and calls each with the index of every one of them from
// first on, and the logits that predict it: once for each, on several threads at
// once, in no order. The logits hold during the call.
func scan(ctx context.Context, e *engine.Engine, tokens []int32, first int, each func(at int, logits []float32)) error {
	s, err := e.Submit(ctx, engine.Request{Tokens: tokens, MaxTokens: -1, ScoreFrom: first, PromptLogits: each})
	if err != nil {
		return err
	}
	defer s.Close()
	ev, ok := s.Next(ctx)
	switch {
	case ev.Err != nil:
		return ev.Err
	case ctx.Err() != nil:
		return ctx.Err()
	case !ok || ev.Finish == engine.FinishAbort:
		return engine.ErrClosed
	}
	return nil
}

// logProbs returns the log-probabilities of the tokens from first on.
func logProbs(ctx context.Context, e *engine.Engine, tokens []int32, first int) ([]float64, error) {
	out := make([]float64, len(tokens)-first)
	err := scan(ctx, e, tokens, first, func(at int, logits []float32) { out[at-first] = logProb(logits, tokens[at]) })
	return out, err
}

// inOrder calls do for 0 to n-1, several at once, and done after each, in order.
// The first error in that order ends it, once all calls have ended.
func inOrder(ctx context.Context, n, several int, do func(ctx context.Context, i int) error, done func(i int)) error {
	ctx, cancel := context.WithCancel(ctx)
	results := make(chan chan error, max(several-1, 0)) // of those that run
	go func() {
		defer close(results)
		for i := 0; i < n && ctx.Err() == nil; i++ {
			end := make(chan error, 1)
			results <- end
			go func() { end <- do(ctx, i) }()
		}
	}()
	var first error
	i := 0
	for end := range results {
		switch err := <-end; {
		case first != nil:
		case err != nil:
			first = err
			cancel()
		default:
			done(i)
			i++
		}
	}
	if first == nil && i < n {
		first = ctx.Err()
	}
	cancel()
	return first
}

// Package eval measures the quality of models on texts.
package eval

import (
	"context"
	"fmt"
	"math"
	"slices"

	"ridge/engine"
)

// Windows says how a text is cut. The zero value cuts as llama.cpp's
// perplexity tool does: windows of 512 tokens side by side, of which the second
// half counts.
type Windows struct {
	Context int // tokens of a window; 0 means 512
	// Stride, when not 0, moves windows by so many tokens and counts only
	// those that the window before did not reach.
	Stride int
	// BOS replaces the first token of each window; -1 for none.
	BOS int32
	// Progress, when not nil, is told how many windows are done.
	Progress func(done, total int)
}

// window is a run of tokens of which those from first on are predicted.
type window struct{ lo, hi, first int }

// rows returns how many tokens are predicted.
func (w *window) rows() int { return w.hi - w.lo - w.first }

func (w *Windows) cut(n int) ([]window, error) {
	size := w.Context
	if size == 0 {
		size = 512
	}
	if size < 2 || w.Stride < 0 || w.Stride >= size {
		return nil, fmt.Errorf("eval: windows: expected a context of at least 2 and a smaller stride, found %d and %d", size, w.Stride)
	}
	if n < size {
		return nil, fmt.Errorf("eval: text: expected at least one window of %d tokens, found %d", size, n)
	}
	var out []window
	if w.Stride == 0 {
		for lo := 0; lo+size <= n; lo += size {
			// The tool scores the tokens after the middle one.
			out = append(out, window{lo, lo + size, size/2 + 1})
		}
		return out, nil
	}
	done := 1 // the first token of a text is not predicted
	for lo := 0; ; lo += w.Stride {
		hi := min(lo+size, n)
		out = append(out, window{lo, hi, max(done-lo, 1)})
		if done = hi; hi == n {
			return out, nil
		}
	}
}

// Perplexity is the result of predicting a text.
type Perplexity struct {
	Perplexity float64 `json:"perplexity"`
	// StdErr is the standard error of Perplexity, from the spread of the
	// tokens' losses.
	StdErr  float64 `json:"std_err"`
	NLL     float64 `json:"nll"` // mean negative log-likelihood per token, in nats
	Tokens  int     `json:"tokens"`
	Windows int     `json:"windows"`
}

// Predict computes the perplexity of tokens under the model of e. Windows are
// computed beside each other; the result does not depend on that.
func Predict(ctx context.Context, e *engine.Engine, tokens []int32, w Windows) (Perplexity, error) {
	wins, err := w.cut(len(tokens))
	if err != nil {
		return Perplexity{}, err
	}
	var sum, squares float64
	r := Perplexity{Windows: len(wins)}
	probs := make([][]float64, len(wins))
	err = inOrder(ctx, len(wins), atOnce, func(ctx context.Context, i int) (err error) {
		probs[i], err = logProbs(ctx, e, w.tokens(tokens, wins[i]), wins[i].first)
		return err
	}, func(i int) {
		for _, p := range probs[i] {
			sum, squares = sum-p, squares+p*p
		}
		r.Tokens += len(probs[i])
		probs[i] = nil
		if w.Progress != nil {
			w.Progress(i+1, len(wins))
		}
	})
	if err != nil {
		return r, err
	}
	n := float64(r.Tokens)
	r.NLL = sum / n
	r.Perplexity = math.Exp(r.NLL)
	if n > 1 {
		r.StdErr = r.Perplexity * math.Sqrt(max(squares/n-r.NLL*r.NLL, 0)/(n-1))
	}
	return r, nil
}

// tokens returns a window's tokens, with its first one replaced.
func (w *Windows) tokens(all []int32, win window) []int32 {
	t := slices.Clone(all[win.lo:win.hi])
	if w.BOS >= 0 {
		t[0] = w.BOS
	}
	return t
}

// logProb returns the natural logarithm of the probability of a token.
func logProb(logits []float32, token int32) float64 {
	return float64(logits[token]) - logSumExp(logits)
}

func logSumExp(logits []float32) float64 {
	top := float64(slices.Max(logits))
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - top)
	}
	return top + math.Log(sum)
}

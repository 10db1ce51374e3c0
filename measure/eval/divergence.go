package eval

import (
	"context"
	"fmt"
	"math"
	"slices"

	"ridge/model"
)

// Divergence says how far a model's predictions are from those of a base
// model, over the tokens of a text.
type Divergence struct {
	Mean    float64 `json:"mean_kl"` // mean of KL(base || model), in nats
	StdErr  float64 `json:"std_err"` // its standard error
	Median  float64 `json:"median_kl"`
	P99     float64 `json:"p99_kl"`
	Max     float64 `json:"max_kl"`
	SameTop float64 `json:"same_top"` // fraction of tokens with the same most probable token

	Base  Perplexity `json:"base"`
	Model Perplexity `json:"model"`

	Tokens  int `json:"tokens"`
	Windows int `json:"windows"`
}

// Compare computes the divergence of m from base on tokens. The models must
// have the same vocabulary.
func Compare(ctx context.Context, base, m *model.Model, tokens []int32, w Windows) (Divergence, error) {
	if a, b := base.Config().Vocab, m.Config().Vocab; a != b {
		return Divergence{}, fmt.Errorf("eval: vocabulary: expected %d tokens as in the base model, found %d", a, b)
	}
	wins, err := w.cut(len(tokens))
	if err != nil {
		return Divergence{}, err
	}
	var c comparison
	for i, win := range wins {
		if err := c.window(ctx, base, m, w.tokens(tokens, win), win.first); err != nil {
			return Divergence{}, err
		}
		if w.Progress != nil {
			w.Progress(i+1, len(wins))
		}
	}
	return c.result(len(wins)), nil
}

// comparison gathers the divergences of single tokens.
type comparison struct {
	kl      []float64
	same    int
	losses  [2]float64 // sums of negative log-likelihoods: base, model
	squares [2]float64
}

// window runs both models over a window, a few rows at a time in turn, so that
// few rows of logits are held.
func (c *comparison) window(ctx context.Context, base, m *model.Model, tokens []int32, first int) error {
	var rows [][]float32
	if err := scan(ctx, base, tokens, first, func(_ int32, logits []float32) {
		rows = append(rows, slices.Clone(logits))
	}); err != nil {
		return err
	}
	i := 0
	return scan(ctx, m, tokens, first, func(next int32, logits []float32) {
		c.token(rows[i], logits, next)
		rows[i] = nil
		i++
	})
}

func (c *comparison) token(p, q []float32, next int32) {
	zp, zq := logSumExp(p), logSumExp(q)
	kl, topP, topQ := 0.0, 0, 0
	for i := range p {
		lp := float64(p[i]) - zp
		if e := math.Exp(lp); e > 0 {
			kl += e * (lp - (float64(q[i]) - zq))
		}
		if p[i] > p[topP] {
			topP = i
		}
		if q[i] > q[topQ] {
			topQ = i
		}
	}
	c.kl = append(c.kl, max(kl, 0)) // rounding may leave it just below
	if topP == topQ {
		c.same++
	}
	for i, nll := range [2]float64{zp - float64(p[next]), zq - float64(q[next])} {
		c.losses[i] += nll
		c.squares[i] += nll * nll
	}
}

func (c *comparison) result(windows int) Divergence {
	n := float64(len(c.kl))
	d := Divergence{Tokens: len(c.kl), Windows: windows, SameTop: float64(c.same) / n}
	var sum, squares float64
	for _, v := range c.kl {
		sum, squares = sum+v, squares+v*v
	}
	d.Mean = sum / n
	if n > 1 {
		d.StdErr = math.Sqrt(max(squares/n-d.Mean*d.Mean, 0) / (n - 1))
	}
	slices.Sort(c.kl)
	d.Median, d.P99, d.Max = c.kl[len(c.kl)/2], c.kl[int(0.99*(n-1))], c.kl[len(c.kl)-1]
	for i, p := range [2]*Perplexity{&d.Base, &d.Model} {
		p.NLL, p.Tokens, p.Windows = c.losses[i]/n, len(c.kl), windows
		p.Perplexity = math.Exp(p.NLL)
		if n > 1 {
			p.StdErr = p.Perplexity * math.Sqrt(max(c.squares[i]/n-p.NLL*p.NLL, 0)/(n-1))
		}
	}
	return d
}

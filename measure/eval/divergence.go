package eval

import (
	"context"
	"fmt"
	"math"
	"slices"

	"ridge/engine"
)

// Divergence says how far a model's predictions are from those of a base
// model, over the tokens of a text.
type Divergence struct {
	Mean   float64 `json:"mean_kl"` // mean of KL(base || model), in nats
	StdErr float64 `json:"std_err"` // its standard error
	// KL is the same with windows as observations; of two windows or more.
	KL      Difference `json:"kl"`
	Median  float64    `json:"median_kl"`
	P99     float64    `json:"p99_kl"`
	Max     float64    `json:"max_kl"`
	SameTop float64    `json:"same_top"` // fraction of tokens with the same most probable token

	Base  Perplexity `json:"base"`
	Model Perplexity `json:"model"`

	// NLL is the model's negative log-likelihoods minus the base's, token by token;
	// of two windows or more. The ratio of the perplexities is exp(NLL.Mean).
	NLL Difference `json:"nll"`

	Tokens  int `json:"tokens"`
	Windows int `json:"windows"`
}

// Compare computes the divergence of the model of e from that of base on tokens.
// They must have the same vocabulary.
func Compare(ctx context.Context, base, e *engine.Engine, tokens []int32, w Windows) (Divergence, error) {
	d, _, err := CompareAll(ctx, base, []*engine.Engine{e}, tokens, w)
	if err != nil {
		return Divergence{}, err
	}
	return d[0], nil
}

// CompareAll computes the divergence of each of several models from that of base on
// the same tokens, and how those after the first differ from the first, token by
// token: pairs[i] is of models i+1 and 0. The base model runs once. All must have the
// same vocabulary, and several models need two windows at least.
func CompareAll(ctx context.Context, base *engine.Engine, models []*engine.Engine, tokens []int32, w Windows) (each []Divergence, pairs []Paired, err error) {
	vocab := base.Model().Config().Vocab
	for _, e := range models {
		if n := e.Model().Config().Vocab; n != vocab {
			return nil, nil, fmt.Errorf("eval: vocabulary: expected %d tokens as in the base model, found %d", vocab, n)
		}
	}
	wins, err := w.cut(len(tokens))
	if err != nil {
		return nil, nil, err
	}
	if len(models) > 1 && len(wins) < 2 {
		return nil, nil, fmt.Errorf("eval: models on the same tokens: expected at least two windows, whose spread says how sure a difference is, found %d", len(wins))
	}
	c := make([]comparison, len(models))
	for lo := 0; lo < len(wins); {
		hi, held := lo, 0
		for hi < len(wins) && (hi == lo || held+wins[hi].rows()*vocab <= maxHeld) {
			held += wins[hi].rows() * vocab
			hi++
		}
		if err := compareWindows(ctx, base, models, c, tokens, &w, wins[lo:hi]); err != nil {
			return nil, nil, err
		}
		if w.Progress != nil {
			w.Progress(hi, len(wins))
		}
		lo = hi
	}
	for i := range c {
		if i > 0 {
			pairs = append(pairs, pair(&c[i], &c[0], wins))
		}
	}
	for i := range c {
		each = append(each, c[i].result(wins))
	}
	return each, pairs, nil
}

// maxHeld bounds the logits of the base model that are held at a time, 64 MB of
// them. They are at least those of a window.
const maxHeld = 16 << 20

// comparison gathers the divergences of single tokens.
type comparison struct {
	kl      []float64
	nll     []float64 // of the model
	base    []float64 // the same of the base model
	same    int
	losses  [2]float64 // sums of negative log-likelihoods: base, model
	squares [2]float64
}

// compareWindows runs the base model over some windows and then the others, whose
// differences it adds to c.
func compareWindows(ctx context.Context, base *engine.Engine, models []*engine.Engine, c []comparison, tokens []int32, w *Windows, wins []window) error {
	rows := make([][][]float32, len(wins))
	err := inOrder(ctx, len(wins), atOnce, func(ctx context.Context, i int) error {
		first := wins[i].first
		rows[i] = make([][]float32, wins[i].rows())
		return scan(ctx, base, w.tokens(tokens, wins[i]), first, func(at int, logits []float32) { rows[i][at-first] = slices.Clone(logits) })
	}, func(int) {})
	for k := 0; k < len(models) && err == nil; k++ {
		diffs := make([][]difference, len(wins))
		err = inOrder(ctx, len(wins), atOnce, func(ctx context.Context, i int) error {
			first, part := wins[i].first, w.tokens(tokens, wins[i])
			diffs[i] = make([]difference, wins[i].rows())
			return scan(ctx, models[k], part, first, func(at int, logits []float32) {
				diffs[i][at-first] = differ(rows[i][at-first], logits, part[at])
			})
		}, func(i int) {
			for _, d := range diffs[i] {
				c[k].add(d)
			}
		})
	}
	return err
}

// difference is how far two predictions of a token are apart.
type difference struct {
	kl     float64
	same   bool       // the most probable token is
	losses [2]float64 // negative log-likelihoods of the token that came: base, model
}

// differ compares the logits of a model, q, with those of the base model.
func differ(p, q []float32, next int32) difference {
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
	return difference{max(kl, 0), topP == topQ, [2]float64{zp - float64(p[next]), zq - float64(q[next])}} // rounding may leave it just below 0
}

func (c *comparison) add(d difference) {
	c.kl, c.base, c.nll = append(c.kl, d.kl), append(c.base, d.losses[0]), append(c.nll, d.losses[1])
	if d.same {
		c.same++
	}
	for i, nll := range d.losses {
		c.losses[i] += nll
		c.squares[i] += nll * nll
	}
}

func (c *comparison) result(wins []window) Divergence {
	n, windows := float64(len(c.kl)), len(wins)
	d := Divergence{Tokens: len(c.kl), Windows: windows, SameTop: float64(c.same) / n}
	var sum, squares float64
	for _, v := range c.kl {
		sum, squares = sum+v, squares+v*v
	}
	d.Mean = sum / n
	if n > 1 {
		d.StdErr = math.Sqrt(max(squares/n-d.Mean*d.Mean, 0) / (n - 1))
	}
	if windows > 1 {
		d.NLL = differences(c.nll, c.base, wins)
		d.KL = differences(c.kl, make([]float64, len(c.kl)), wins)
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

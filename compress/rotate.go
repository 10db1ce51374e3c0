package compress

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"

	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// Rotate writes a float model at dst whose residual stream is turned by a random
// Hadamard matrix, so that no column of what layers read is much larger than others;
// weights of normalizations go into the matrices behind them, and the model computes the
// same (Ashkboos et al., QuaRot, 2024, and SliceGPT before it). Rows are signed at random,
// shuffled, and turned in blocks of the largest power of two that divides their
// length. What a head or the down projection reads is not turned: that takes a
// Hadamard product while the model runs. An output matrix that was the embedding becomes
// one of its own. Models are Llama, Qwen 2 and Qwen 3 without experts.
func Rotate(f *gguf.File, seed uint64, dst string) error {
	r, err := newRotation(f, seed)
	if err != nil {
		return fmt.Errorf("compress: %s: rotation: %w", f.Name(), err)
	}
	b := f.Builder()
	for _, t := range inOrder(f) {
		b.RemoveTensor(t.Name)
	}
	add := func(t gguf.TensorInfo, from string) error {
		return b.AddTensor(gguf.TensorInfo{Name: t.Name, Type: tensor.F32, Dims: t.Dims}, &rotated{r, t.Name, from})
	}
	for _, t := range inOrder(f) {
		if err := add(t, t.Name); err != nil {
			return err
		}
	}
	if embed, _ := f.Tensor("token_embd.weight"); r.tied {
		if err := add(gguf.TensorInfo{Name: "output.weight", Dims: embed.Dims}, embed.Name); err != nil {
			return err
		}
	}
	if err := b.Set("ridge.rotation.seed", seed); err != nil {
		return err
	}
	if err := b.Set("general.file_type", uint32(0)); err != nil {
		return err
	}
	return b.Save(dst)
}

// rotation is an orthogonal matrix: signs, an order and a Hadamard matrix for each block.
type rotation struct {
	f     *gguf.File
	n     int
	block int
	sign  []float32
	order []int
	tied  bool
}

// turned says what becomes of a tensor: the name of the normalization whose weights its
// columns take, and whether its columns or its rows are turned.
type turned struct {
	norm       string
	cols, rows bool
}

// rotatedParts are the tensors of a layer.
var rotatedParts = map[string]turned{
	"attn_q.weight": {"attn_norm.weight", true, false}, "attn_k.weight": {"attn_norm.weight", true, false}, "attn_v.weight": {"attn_norm.weight", true, false},
	"ffn_gate.weight": {"ffn_norm.weight", true, false}, "ffn_up.weight": {"ffn_norm.weight", true, false},
	"attn_output.weight": {"", false, true}, "ffn_down.weight": {"", false, true},
	"attn_q.bias": {}, "attn_k.bias": {}, "attn_v.bias": {}, "attn_q_norm.weight": {}, "attn_k_norm.weight": {},
}

func newRotation(f *gguf.File, seed uint64) (*rotation, error) {
	if err := f.Err(); err != nil {
		return nil, err
	}
	arch := f.String("general.architecture", "")
	if !slices.Contains(folding, arch) {
		return nil, fmt.Errorf("expected one of %s, found %q", strings.Join(folding, ", "), arch)
	}
	embed, ok := f.Tensor("token_embd.weight")
	if !ok || len(embed.Dims) != 2 {
		return nil, fmt.Errorf("expected a matrix token_embd.weight, found none")
	}
	r := &rotation{f: f, n: int(embed.Dims[0])}
	_, own := f.Tensor("output.weight")
	r.tied = !own
	for _, t := range f.Tensors() {
		if t.Type.BlockSize() > 1 {
			return nil, fmt.Errorf("tensor %q: expected floats, found %s", t.Name, t.Type)
		}
		if _, _, err := r.of(t.Name); err != nil {
			return nil, err
		}
	}
	random := randomRotation(r.n, rand.New(rand.NewPCG(seed, 14)))
	r.sign, r.order, r.block = random.sign, random.order, random.block
	return r, nil
}

// randomRotation returns signs, an order and Hadamard matrices for n values.
func randomRotation(n int, rng *rand.Rand) *rotation {
	r := &rotation{n: n, order: rng.Perm(n), sign: make([]float32, n), block: 1 << bits.TrailingZeros(uint(n))}
	for i := range r.sign {
		r.sign[i] = float32(1 - 2*rng.IntN(2))
	}
	return r
}

// of returns what becomes of a tensor, and whether it becomes ones.
func (r *rotation) of(name string) (t turned, ones bool, err error) {
	switch name {
	case "token_embd.weight":
		return turned{cols: true}, false, nil
	case "output.weight":
		return turned{norm: "output_norm.weight", cols: true}, false, nil
	case "output_norm.weight":
		return t, true, nil
	case "rope_freqs.weight":
		return t, false, nil
	}
	layer, part := layerOf(name), name
	if layer >= 0 {
		part = strings.TrimPrefix(name, fmt.Sprintf("blk.%d.", layer))
	}
	if part == "attn_norm.weight" || part == "ffn_norm.weight" {
		return t, true, nil
	}
	t, ok := rotatedParts[part]
	if !ok || layer < 0 {
		return t, false, fmt.Errorf("tensor %q: not one of those of a Llama", name)
	}
	if t.norm != "" {
		t.norm = fmt.Sprintf("blk.%d.%s", layer, t.norm)
	}
	return t, false, nil
}

// apply turns x, of n values; y is scratch of as many. The sums are in float64.
func (r *rotation) apply(x []float32, y []float64) {
	for i, from := range r.order {
		y[i] = float64(x[from] * r.sign[from])
	}
	r.hadamard(y)
	for i, v := range y {
		x[i] = float32(v)
	}
}

// turn is apply in float64.
func (r *rotation) turn(x, y []float64) {
	for i, from := range r.order {
		y[i] = x[from] * float64(r.sign[from])
	}
	r.hadamard(y)
	copy(x, y)
}

// unturn undoes turn.
func (r *rotation) unturn(x, y []float64) {
	r.hadamard(x)
	for i, from := range r.order {
		y[from] = x[i] * float64(r.sign[from])
	}
	copy(x, y)
}

// hadamard multiplies each block by a Hadamard matrix whose columns have length 1.
func (r *rotation) hadamard(y []float64) {
	for at := 0; at < r.n; at += r.block {
		part := y[at : at+r.block]
		for half := 1; half < r.block; half *= 2 {
			for i := 0; i < r.block; i += 2 * half {
				for j := i; j < i+half; j++ {
					part[j], part[j+half] = part[j]+part[j+half], part[j]-part[j+half]
				}
			}
		}
	}
	scale := 1 / math.Sqrt(float64(r.block))
	for i := range y {
		y[i] *= scale
	}
}

// rotated writes a tensor from another one.
type rotated struct {
	r          *rotation
	name, from string
}

// WriteTo implements io.WriterTo.
func (t *rotated) WriteTo(w io.Writer) (int64, error) {
	x, err := t.values()
	if err != nil {
		return 0, fmt.Errorf("compress: %s: rotation: %w", t.r.f.Name(), err)
	}
	return int64(4 * len(x)), binary.Write(w, binary.LittleEndian, x)
}

func (t *rotated) values() ([]float32, error) {
	r := t.r
	x, cols, err := r.floats(t.from)
	if err != nil {
		return nil, err
	}
	to, ones, err := r.of(t.name)
	switch {
	case err != nil:
		return nil, err
	case ones:
		for i := range x {
			x[i] = 1
		}
		return x, nil
	}
	rows, y := len(x)/cols, make([]float64, r.n)
	if to.norm != "" {
		norm, _, err := r.floats(to.norm)
		if err != nil || len(norm) != cols {
			return nil, fmt.Errorf("tensor %q: expected %d values in %s, found %d (%w)", t.name, cols, to.norm, len(norm), err)
		}
		for i := range x {
			x[i] *= norm[i%cols]
		}
	}
	switch {
	case to.cols && cols == r.n:
		for i := range rows {
			r.apply(x[i*cols:(i+1)*cols], y)
		}
	case to.rows && rows == r.n:
		column := make([]float32, rows)
		for c := range cols {
			for i := range column {
				column[i] = x[i*cols+c]
			}
			r.apply(column, y)
			for i, v := range column {
				x[i*cols+c] = v
			}
		}
	case to.cols || to.rows:
		return nil, fmt.Errorf("tensor %q: expected %d values beside the residual stream, found %d rows of %d", t.name, r.n, rows, cols)
	}
	return x, nil
}

// floats decodes a tensor; cols is the length of its rows.
func (r *rotation) floats(name string) (x []float32, cols int, err error) {
	m, err := r.f.Mat(name)
	if err != nil {
		return nil, 0, err
	}
	defer r.f.Release(m.Data)
	x = make([]float32, m.Rows*m.Cols)
	m.Type.Decode(x, m.Data)
	return x, m.Cols, nil
}

package compress

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// ladder is the types that a matrix of so many columns can get, smallest first.
func ladder(cols int) []tensor.DType {
	if cols%256 == 0 {
		return []tensor.DType{tensor.Q2_K, tensor.Q3_K, tensor.Q4_K, tensor.Q5_K, tensor.Q6_K, tensor.Q8_0}
	}
	return []tensor.DType{tensor.Q4_0, tensor.Q5_0, tensor.Q8_0}
}

// Sensitive is a matrix and what each type that it can get costs.
type Sensitive struct {
	Name  string
	Types []tensor.DType
	// Bytes are the sizes, Loss the divergences that come of that type in this matrix
	// alone: measured for the first, for the others by their squared errors.
	Bytes []uint64
	Loss  []float64
}

// Scan measures how much each matrix of f matters that may be quantized, but for
// stacks of experts: one after the other gets the smallest type while all others stay
// as they are. measure returns the divergence of the model in a file from that of f;
// dir is for these files.
func Scan(ctx context.Context, f *gguf.File, o Options, dir string, measure func(path string) (float64, error)) ([]Sensitive, error) {
	var all []Sensitive
	var matrices []gguf.TensorInfo
	for _, t := range inOrder(f) {
		if quantizable(t) && len(t.Dims) == 2 && t.Type.BlockSize() <= 1 {
			matrices = append(matrices, t)
		}
	}
	for i, t := range matrices {
		s, err := rungs(f, t)
		if err != nil {
			return nil, err
		}
		if len(s.Types) == 0 {
			continue
		}
		path := filepath.Join(dir, "probe.gguf")
		if _, err := onlyOne(f, o, t.Name, s.Types[0]).Write(ctx, path); err != nil {
			return nil, err
		}
		loss, err := measure(path)
		if err != nil {
			return nil, err
		}
		for k, e := range slices.Backward(s.Loss) {
			s.Loss[k] = max(loss, 0) * e / s.Loss[0]
		}
		all = append(all, s)
		if o.Progress != nil {
			o.Progress(int64(i+1), int64(len(matrices)))
		}
	}
	return all, nil
}

// onlyOne is the plan that quantizes one matrix and leaves all others.
func onlyOne(f *gguf.File, o Options, name string, to tensor.DType) *Plan {
	p := &Plan{f: f, o: o}
	p.o.Progress, p.o.Method, p.o.Split = nil, nil, 0
	for _, t := range inOrder(f) {
		r := Row{Name: t.Name, Dims: t.Dims, From: t.Type, To: t.Type, Bytes: t.Size, NewBytes: t.Size}
		if t.Name == name {
			r.To, r.NewBytes = to, t.Elements()/uint64(to.BlockSize())*uint64(to.BlockBytes())
		}
		p.Rows = append(p.Rows, r)
	}
	return p
}

// rungs returns the types that a matrix can have, with its squared errors for losses,
// from at most 64 rows.
func rungs(f *gguf.File, t gguf.TensorInfo) (Sensitive, error) {
	s := Sensitive{Name: t.Name}
	m, err := f.Mat(t.Name)
	if err != nil {
		return s, err
	}
	defer f.Release(m.Data)
	rows, size := min(m.Rows, 64), m.Type.RowBytes(m.Cols)
	x, y := make([]float32, m.Cols), make([]float32, m.Cols)
	for _, typ := range ladder(m.Cols) {
		if m.Cols%typ.BlockSize() != 0 {
			continue
		}
		out, sum := make([]byte, typ.RowBytes(m.Cols)), 0.0
		for i := range rows {
			at := i * m.Rows / rows
			m.Type.Decode(x, m.Data[at*size:(at+1)*size])
			if err := typ.Encode(out, x); err != nil {
				return s, fmt.Errorf("compress: %s: tensor %q, row %d: %w", f.Name(), t.Name, at, err)
			}
			typ.Decode(y, out)
			for c, v := range x {
				d := float64(v - y[c])
				sum += d * d
			}
		}
		s.Types, s.Loss = append(s.Types, typ), append(s.Loss, sum+math.SmallestNonzeroFloat64)
		s.Bytes = append(s.Bytes, uint64(m.Rows*typ.RowBytes(m.Cols)))
	}
	return s, nil
}

// Choose gives each matrix the type, as an index of its Types, such that the losses
// together are small and the bytes at most budget: every matrix begins with its
// smallest type, and the step that lowers the losses most for its bytes comes next, as
// long as there is room. Steps over several types count as one, so that each matrix
// goes along the convex hull of its sizes and losses: what is left over is less than a
// step.
func Choose(all []Sensitive, budget uint64) ([]int, error) {
	chosen := make([]int, len(all))
	var used uint64
	for _, s := range all {
		used += s.Bytes[0]
	}
	if used > budget {
		return nil, fmt.Errorf("compress: a budget of %d bytes for matrices: expected at least %d, which is the smallest types'", budget, used)
	}
	for {
		best, to, most := -1, 0, 0.0
		for i, s := range all {
			from := chosen[i]
			for k := from + 1; k < len(s.Types); k++ {
				more := s.Bytes[k] - s.Bytes[from]
				if gain := (s.Loss[from] - s.Loss[k]) / float64(more); used+more <= budget && gain > most {
					best, to, most = i, k, gain
				}
			}
		}
		if best < 0 {
			return chosen, nil
		}
		used += all[best].Bytes[to] - all[best].Bytes[chosen[best]]
		chosen[best] = to
	}
}

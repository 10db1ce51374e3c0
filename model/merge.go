package model

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ridge/kernel"
	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

// Merge writes a model whose weights have the changes of adapters in them.
type Merge struct {
	Adapters []string  // paths, see ReadAdapter
	Scales   []float32 // times what each adds
	// Type is that of matrices of floats, and of quantized ones that are changed: f32,
	// f16, bf16, or keep for what they are, which refuses changed matrices that are
	// quantized.
	Type       string
	Requantize bool   // changed matrices that are quantized stay so
	SplitBytes uint64 // of a GGUF file's tensors at most, 0 for one file
	Progress   func(done, total int64)

	Changed int // matrices, after Write
	// Lost says what rounding to the types that were written does to the changes: the
	// length of its errors as a part of the length of the changes of a matrix, the
	// largest of all. 0: nothing was rounded.
	Lost float64
}

// weightChange is what adapters change of a weight.
type weightChange struct {
	parts []changePart
	row   []float32 // scratch

	planned       bool    // it is written with a tensor
	turned        bool    // the weight's file has it [in][out]
	moved, missed float64 // squared lengths of the change, and of what rounding did to it
}

// changePart is what one adapter changes of it.
type changePart struct {
	up, down []float32 // [rows][rank], [rank][cols]
	rank     int
	scale    float32
	size     []float32 // of each row, see rowNorms; nil for none
}

// Write merges into the model at src, a checkpoint folder or a GGUF file, and writes
// dst as Convert does.
func (g *Merge) Write(src, dst string) (files []string, err error) {
	m := &Model{path: src}
	defer m.Close()
	if err := m.openSource(); err != nil {
		return nil, err
	}
	folder := strings.HasSuffix(dst, "/")
	changes, err := g.changes(m, folder && m.gg == nil)
	if err != nil {
		return nil, err
	}
	o := convertOptions{SplitBytes: g.SplitBytes, Progress: g.Progress}
	if err := o.parse(g.Type); err != nil {
		return nil, err
	}
	c := &conversion{o: o, changes: changes, requantize: g.Requantize}
	switch {
	case folder && m.gg == nil:
		files, err = c.copyCheckpoint(m, filepath.Clean(dst))
	case folder:
		files, err = []string{filepath.Join(dst, "model.safetensors")}, c.toCheckpoint(m, filepath.Clean(dst))
	default:
		files, err = c.toGGUF(m, dst)
	}
	if err != nil {
		return nil, err
	}
	for _, x := range changes {
		if g.Changed++; x.moved > 0 {
			g.Lost = max(g.Lost, math.Sqrt(x.missed/x.moved))
		}
	}
	return files, nil
}

// changes reads the adapters, and returns what they change: by the names that GGUF has
// and in its order, or as the checkpoint has them.
func (g *Merge) changes(m *Model, asFile bool) (map[string]*weightChange, error) {
	_, b, err := m.shapes()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range slices.Compact(slices.Sorted(slices.Values(b.found))) {
		if name, ok := strings.CutSuffix(name, ".weight"); ok {
			names = append(names, name)
		}
	}
	out := map[string]*weightChange{}
	for i, path := range g.Adapters {
		f, err := m.openAdapter(path)
		if err != nil {
			return nil, err
		}
		if asFile && !f.hf {
			f.close()
			return nil, f.fault("expected an adapter of PEFT to write a checkpoint again, found a GGUF file: write a .gguf, which ridge convert makes a checkpoint of")
		}
		done := map[string]bool{}
		err = m.eachTarget(f, names, func(name string, t *adapterTarget, p *lowRank, up tensor.Mat) error {
			w, _, err := m.src.mat(t.weight)
			if err != nil {
				return err
			}
			if err := f.fits(name, p, up, w.Rows, w.Cols); err != nil {
				return err
			}
			x := &weightChange{}
			key, from := t.weight, *t
			if asFile {
				if key = m.src.names(key)[0]; done[key] { // a weight that is used in parts
					return nil
				}
				done[key] = true
				x.turned = t.fix != nil && t.turns(p.up.Rows)
				up, from.fix = p.up, nil
			}
			part := changePart{decodeAll(up), decodeAll(p.down), p.down.Rows, p.scale * g.Scales[i], nil}
			if p.sizeName != "" {
				if part.size, err = from.sizes(f, p); err != nil {
					return err
				}
			}
			if out[key] == nil {
				out[key] = x
			}
			out[key].parts = append(out[key].parts, part)
			return nil
		})
		f.close()
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// apply changes rows of a weight, of which the first is number first.
func (x *weightChange) apply(rows []float32, first, cols int) {
	if x == nil {
		return
	}
	if x.row == nil {
		x.row = make([]float32, 2*cols)
	}
	base, delta := x.row[:cols], x.row[cols:]
	for r := 0; r*cols < len(rows); r++ {
		row := rows[r*cols : (r+1)*cols]
		copy(base, row)
		for i := range x.parts {
			p := &x.parts[i]
			clear(delta)
			for k := range p.rank {
				kernel.AddScaled(delta, p.down[k*cols:(k+1)*cols], p.scale*p.up[(first+r)*p.rank+k])
			}
			if p.size != nil && p.scale != 0 {
				norm := 0.0
				for c, v := range base {
					norm += float64(v+delta[c]) * float64(v+delta[c])
				}
				gain := float32(float64(p.size[first+r]) / math.Sqrt(norm))
				for c, v := range base {
					delta[c] = gain*(v+delta[c]) - v
				}
			}
			kernel.Add(row, delta)
		}
		for c, v := range base {
			d := float64(row[c]) - float64(v)
			x.moved += d * d
		}
	}
}

// rounded notes what became of changed rows.
func (x *weightChange) rounded(want []float32, typ tensor.DType, data []byte) {
	if x == nil || typ == tensor.F32 {
		return
	}
	got := make([]float32, len(want))
	typ.Decode(got, data)
	for i, v := range want {
		d := float64(got[i]) - float64(v)
		x.missed += d * d
	}
}

// changed returns a whole matrix of the weight with the changes in it, to be written
// as a type.
func (x *weightChange) changed(m tensor.Mat, typ tensor.DType) tensor.Mat {
	all := decodeAll(m)
	x.apply(all, 0, m.Cols)
	out := tensor.Mat{Type: tensor.F32, Rows: m.Rows, Cols: m.Cols, Data: make([]byte, 4*len(all))}
	_ = tensor.F32.Encode(out.Data, all) // no number is refused
	data := make([]byte, m.Rows*typ.RowBytes(m.Cols))
	if typ.Encode(data, all) == nil { // else writing it tells
		x.rounded(all, typ, data)
	}
	return out
}

// change returns what changes a weight, nil for nothing, and the type that it is
// written in: want, or another one if it is quantized.
func (c *conversion) change(m *Model, name string, typ, want tensor.DType) (*weightChange, tensor.DType, error) {
	x := c.changes[name]
	if x == nil {
		return nil, want, nil
	}
	x.planned = true
	switch {
	case isFloat(typ), c.requantize:
		return x, want, nil
	case c.o.Keep:
		return nil, want, fmt.Errorf("model: merge: %s: tensor %q: expected a type of plain numbers, found %v, whose rounding would take away much of the change: ask for a type (--type f16), or for that loss (--requantize)", m.path, name, typ)
	}
	return x, c.o.Type, nil
}

// allPlanned refuses a merge that would leave a change out.
func (c *conversion) allPlanned(m *Model) error {
	for _, name := range slices.Sorted(maps.Keys(c.changes)) {
		if !c.changes[name].planned {
			return fmt.Errorf("model: merge: %s: tensor %q: expected a matrix that is written whole, found one that is written in parts", m.path, name)
		}
	}
	return nil
}

// copyCheckpoint writes a checkpoint again with changed weights.
func (c *conversion) copyCheckpoint(m *Model, dst string) ([]string, error) {
	st, ok := m.src.(*hfSource).st.(*safetensors.File)
	if !ok {
		return nil, fmt.Errorf("model: merge: %s: expected a checkpoint of plain numbers, found a quantized one: a GGUF file can have them", m.path)
	}
	err := makeFolder(dst, func(made string) error { return c.copyFiles(m, st, made) })
	if err != nil {
		return nil, fmt.Errorf("model: merge: %s: %w", m.path, err)
	}
	return []string{filepath.Join(dst, "model.safetensors")}, nil
}

// copyFiles writes the files of a checkpoint again, its tensors into one.
func (c *conversion) copyFiles(m *Model, st *safetensors.File, made string) error {
	entries, err := os.ReadDir(m.path)
	if err != nil {
		return err
	}
	for _, e := range entries { // description, tokenizer, templates
		switch name := e.Name(); {
		case e.IsDir(), strings.Contains(name, ".safetensors"), !slices.Contains([]string{".json", ".txt", ".model", ".jinja"}, filepath.Ext(name)):
		default:
			b, err := os.ReadFile(filepath.Join(m.path, name))
			if err == nil {
				err = os.WriteFile(filepath.Join(made, name), b, 0o666)
			}
			if err != nil {
				return err
			}
		}
	}
	if err := c.copyTensors(m, st, filepath.Join(made, "model.safetensors")); err != nil {
		return err
	}
	return c.compare(m, made)
}

// copyTensors writes the tensors of a checkpoint into one file.
func (c *conversion) copyTensors(m *Model, st *safetensors.File, path string) error {
	kinds := map[tensor.DType]string{tensor.F32: "F32", tensor.F16: "F16", tensor.BF16: "BF16"}
	c.total = m.src.size()
	var out []safetensors.Tensor
	for _, t := range st.Tensors() {
		typ, ok := t.DType()
		one := safetensors.Tensor{Name: t.Name, Type: t.Type, Shape: t.Shape, Data: safetensors.Bytes(st.Data(t.Name))}
		x := c.changes[t.Name]
		if want := c.o.Type; ok && isFloat(typ) && (x != nil || !c.o.Keep && len(t.Shape) > 1) {
			if c.o.Keep {
				want = typ
			}
			one.Type, one.Data = kinds[want], c.copied(st, t.Name, want, x)
		} else if x != nil {
			return fmt.Errorf("tensor %q: expected plain numbers, found %s", t.Name, t.Type)
		}
		out = append(out, one)
	}
	return safetensors.Write(path, out, map[string]string{"format": "pt"})
}

// copied writes a tensor of a checkpoint with a change, nil for none.
func (c *conversion) copied(st *safetensors.File, name string, typ tensor.DType, x *weightChange) *tensorWriter {
	w := &tensorWriter{c: c, typ: typ, change: x}
	if x != nil && x.turned {
		w.change = nil
	}
	w.rows = func(yield func(tensor.Mat) error) error {
		m, err := st.Mat(name)
		if err != nil {
			return err
		}
		defer st.Release(m.Data)
		if x != nil && x.turned {
			if m, err = transpose(m); err == nil {
				m, err = transpose(x.changed(m, typ))
			}
		}
		if err != nil {
			return err
		}
		return yield(m)
	}
	return w
}

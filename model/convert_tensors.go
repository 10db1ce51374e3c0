package model

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// rowsOf gives matrices whose rows make a tensor, one after the other.
type rowsOf func(yield func(tensor.Mat) error) error

// tensorWriter writes the rows of a tensor in its type.
type tensorWriter struct {
	c    *conversion
	typ  tensor.DType
	rows rowsOf

	change *weightChange // of the rows, nil for none
}

// WriteTo implements io.WriterTo.
func (t *tensorWriter) WriteTo(w io.Writer) (n int64, err error) {
	first := 0 // row of the tensor
	err = t.rows(func(m tensor.Mat) error {
		b := m.Data
		var row []float32
		for i, step := 0, max(1, (1<<20)/max(m.Cols, 1)); i < m.Rows; i += step {
			part := m
			part.Rows = min(step, m.Rows-i)
			size := m.Type.RowBytes(m.Cols)
			part.Data = b[i*size : (i+part.Rows)*size]
			out := part.Data
			if m.Type != t.typ || t.change != nil {
				if row == nil {
					row = make([]float32, step*m.Cols)
				}
				x := row[:part.Rows*m.Cols]
				m.Type.Decode(x, part.Data)
				t.change.apply(x, first+i, m.Cols)
				out = make([]byte, part.Rows*t.typ.RowBytes(m.Cols))
				if err := t.typ.Encode(out, x); err != nil {
					return err
				}
				t.change.rounded(x, t.typ, out)
			}
			k, err := w.Write(out)
			if n += int64(k); err != nil {
				return err
			}
			if t.c.done += int64(k); t.c.o.Progress != nil {
				t.c.o.Progress(t.c.done, t.c.total)
			}
		}
		first += m.Rows
		return nil
	})
	return n, err
}

// stateParts are the small tensors of states.
var stateParts = []string{"ssm_a", "ssm_d", "ssm_conv1d.weight"}

// typeOf returns the type of a tensor of numbers. Those that are small and count
// in every row are float32, as llama.cpp wants them.
func (c *conversion) typeOf(name string, typ tensor.DType, vector bool) tensor.DType {
	_, part, suffix := splitName(name)
	switch {
	case vector, suffix == ".bias", strings.HasSuffix(part, "_norm"), part == "ffn_gate_inp", part == "position_embd", part == "shortconv.conv",
		part == "attn_sinks", slices.Contains(stateParts, part+suffix), strings.HasPrefix(part, "rope_"):
		return tensor.F32
	case c.o.Keep && typ == tensor.F64:
		return tensor.F32
	case c.o.Keep:
		return typ
	}
	return c.o.Type
}

// tensors adds the weights of a checkpoint, which the network asks for by the
// names that GGUF has.
func (c *conversion) tensors(m *Model, names []string, b *gguf.Builder, cfg *Config) error {
	stacks := map[string]int{} // numbered experts by the name of their stack
	seen := map[string]bool{}
	var order []string
	for _, name := range names {
		if stack, n, ok := numbered(name); ok {
			if stacks[stack] == 0 {
				order = append(order, stack)
			}
			stacks[stack] = max(stacks[stack], n+1)
		} else if !seen[name] {
			seen[name] = true
			order = append(order, name)
		}
	}
	for _, name := range order {
		if _, part, suffix := splitName(name); part == "ffn_act" { // a key has them all
			key := "xielu" + suffix
			v, _, err := m.src.mat(name)
			if err != nil {
				return err
			}
			x := make([]float32, v.Cols)
			v.DecodeRow(x, 0)
			if err := b.Set(key, append(slices.Clip(b.Floats(key)), x...)); err != nil {
				return err
			}
			continue
		}
		if err := c.tensor(m, name, stacks[name], b, cfg); err != nil {
			return err
		}
	}
	return nil
}

// numbered takes the number of an expert out of a name.
func numbered(name string) (stack string, n int, ok bool) {
	before, after, ok := strings.Cut(name, "_exps.")
	number, suffix, dot := strings.Cut(after, ".")
	n, err := strconv.Atoi(number)
	return before + "_exps." + suffix, n, ok && dot && err == nil
}

// tensor adds one weight, or a stack of n.
func (c *conversion) tensor(m *Model, name string, n int, b *gguf.Builder, cfg *Config) error {
	read := func(name string) (tensor.Mat, error) {
		if name == "output.weight" && cfg.Tied {
			name = "token_embd.weight"
		}
		mat, ok, err := m.src.mat(name)
		if err == nil && !ok {
			err = fmt.Errorf("model: convert: %s: tensor %q: expected it, found none", m.path, name)
		}
		return mat, err
	}
	first := name
	at := func(i int) string { return strings.Replace(name, "_exps.", fmt.Sprintf("_exps.%d.", i), 1) }
	if n > 0 {
		first = at(0)
	}
	mat, err := read(first)
	if err != nil {
		return err
	}
	file := name
	if g, ok := m.arch.ggufName(name); ok {
		file = g
	}
	if experts := cfg.Experts.Count; n == 0 && strings.Contains(name, "_exps.weight") && !strings.Contains(name, "norm_exps") && experts > 0 {
		return c.stack(m, name, file, mat, experts, b, read)
	}
	if l := &cfg.Latent; l.Rank > 0 && !m.arch.joinedKV && strings.HasSuffix(name, ".attn_kv_b.weight") {
		return c.keysAndValues(file, mat, cfg, b, func() (tensor.Mat, error) { return read(name) })
	}
	if n == 0 && strings.Contains(name, "ffn_up_shexp.weight") && mat.Rows == 2*cfg.Experts.SharedFFN {
		return c.halves(file, "ffn_up_shexp", "ffn_gate_shexp", mat, 1, b, func() (tensor.Mat, error) { return read(name) })
	}
	if n == 0 && m.arch == &graniteHybrid && strings.HasSuffix(name, ".ffn_up.weight") && mat.Rows == 2*cfg.FFN {
		return c.halves(file, "ffn_up", "ffn_gate", mat, 1, b, func() (tensor.Mat, error) { return read(name) })
	}
	dims := []uint64{uint64(mat.Cols)}
	if x := &cfg.State; x.Heads > 0 && !cfg.deltaRule() {
		switch splitPart(name) { // one value of a head, and norms by groups
		case "ssm_a", "ssm_d":
			dims = []uint64{1, uint64(mat.Cols)}
		case "ssm_norm.weight":
			dims = []uint64{uint64(mat.Cols / x.Groups), uint64(x.Groups)}
		}
	}
	if mat.Rows > 1 || n > 0 {
		dims = append(dims, uint64(mat.Rows))
	}
	if n > 0 {
		if dims = append(dims, uint64(n)); mat.Rows == 1 { // biases
			dims = []uint64{uint64(mat.Cols), uint64(n)}
		}
	}
	x, typ, err := c.change(m, name, mat.Type, c.typeOf(name, mat.Type, mat.Rows == 1 && n == 0))
	if err != nil {
		return err
	}
	return c.addChanged(b, file, typ, dims, x, func(yield func(tensor.Mat) error) error {
		for i := range max(n, 1) {
			from := name
			if n > 0 {
				from = at(i)
			}
			x, err := read(from)
			if err == nil {
				err = yield(x)
			}
			if err != nil {
				return err
			}
			m.src.release(x.Data)
		}
		return nil
	})
}

// stack adds the matrices of experts that lie in one tensor.
func (c *conversion) stack(m *Model, name, file string, mat tensor.Mat, experts int, b *gguf.Builder, read func(string) (tensor.Mat, error)) error {
	again := func() (tensor.Mat, error) { return read(name) }
	if strings.Contains(name, "ffn_gate_up_exps.") { // two of the same shape in GGUF
		return c.halves(file, "ffn_gate_up_exps", "ffn_gate_exps", mat, experts, b, again)
	}
	dims := []uint64{uint64(mat.Cols), uint64(mat.Rows / experts), uint64(experts)}
	return c.add(b, file, c.typeOf(name, mat.Type, false), dims, func(yield func(tensor.Mat) error) error {
		x, err := again()
		if err == nil {
			err = yield(x)
		}
		return err
	})
}

// halves adds gate and up, of which each of n matrices has one behind the other.
func (c *conversion) halves(file, both, gate string, mat tensor.Mat, n int, b *gguf.Builder, again func() (tensor.Mat, error)) error {
	half := mat.Rows / n / 2
	for i, part := range []string{gate, strings.Replace(gate, "gate", "up", 1)} {
		dims := []uint64{uint64(mat.Cols), uint64(half), uint64(n)}
		if n == 1 {
			dims = dims[:2]
		}
		name := strings.Replace(file, both, part, 1)
		err := c.add(b, name, c.typeOf(name, mat.Type, false), dims, func(yield func(tensor.Mat) error) error {
			x, err := again()
			size := x.Type.RowBytes(x.Cols)
			for e := 0; e < n && err == nil; e++ {
				at := (2*e + i) * half
				err = yield(tensor.Mat{Type: x.Type, Rows: half, Cols: x.Cols, Data: x.Data[at*size : (at+half)*size]})
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// keysAndValues adds the matrices that make keys and values of latents, which lie
// head by head in one: those of keys turned around.
func (c *conversion) keysAndValues(file string, mat tensor.Mat, cfg *Config, b *gguf.Builder, again func() (tensor.Mat, error)) error {
	l := &cfg.Latent
	for _, part := range []struct {
		name       string
		at, rows   int
		turned     bool
		cols, deep int
	}{{"attn_k_b", 0, l.PlainDim, true, l.PlainDim, l.Rank}, {"attn_v_b", l.PlainDim, l.ValueDim, false, l.Rank, l.ValueDim}} {
		name := strings.Replace(file, "attn_kv_b", part.name, 1)
		dims := []uint64{uint64(part.cols), uint64(part.deep), uint64(cfg.Heads)}
		err := c.add(b, name, c.typeOf(name, mat.Type, false), dims, func(yield func(tensor.Mat) error) error {
			x, err := again()
			if err != nil {
				return err
			}
			size := x.Type.RowBytes(x.Cols)
			for h := range cfg.Heads {
				lo := h*(l.PlainDim+l.ValueDim) + part.at
				m := tensor.Mat{Type: x.Type, Rows: part.rows, Cols: x.Cols, Data: x.Data[lo*size : (lo+part.rows)*size]}
				if part.turned {
					if m, err = transpose(m); err != nil {
						return err
					}
				}
				if err := yield(m); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ggufName returns what a GGUF file of the architecture calls a weight, if that is
// another name.
func (a *architecture) ggufName(name string) (string, bool) {
	s := ggufSource{aliases: a.aliases}
	as := s.alias(name)
	return as, as != name
}

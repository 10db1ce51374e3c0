package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ridge/text/tokenizer"
	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

// toCheckpoint writes the model of a GGUF file as a checkpoint folder at dst, which
// must not be there: config.json, model.safetensors and the tokenizer, as Hugging Face
// transformers reads them. Quantized weights have no type that a checkpoint could keep.
//
// What was written is read again before it appears at dst, and must say the same of
// the model; what ridge has no way to write is an error that names it.
func (c *conversion) toCheckpoint(m *Model, dst string) error {
	if m.gg == nil {
		return fmt.Errorf("model: convert: %s: expected a GGUF file, found a checkpoint", m.path)
	}
	if why := m.arch.readOnly; why != "" {
		return fmt.Errorf("model: convert: %s: expected an architecture that is written as a checkpoint, found %s: %s", m.path, m.arch.name, why)
	}
	return makeFolder(dst, func(made string) error { return c.checkpoint(m, made) })
}

// makeFolder has write fill a folder beside dst, which then becomes dst.
func makeFolder(dst string, write func(made string) error) error {
	dir, err := os.MkdirTemp(filepath.Dir(dst), ".convert-")
	if err != nil {
		return fmt.Errorf("model: convert: %w", err)
	}
	defer os.RemoveAll(dir)
	made := filepath.Join(dir, "model")
	if err := os.Mkdir(made, 0o777); err != nil {
		return fmt.Errorf("model: convert: %w", err)
	}
	if err := write(made); err != nil {
		return err
	}
	if err := os.Rename(made, dst); err != nil {
		return fmt.Errorf("model: convert: %w", err)
	}
	return nil
}

// checkpoint writes m to dir, as the first of the model types of its architecture
// whose config.json says what m is.
func (c *conversion) checkpoint(m *Model, dir string) error {
	_, b, err := m.shapes()
	if err != nil {
		return err
	}
	tensors, err := c.export(m, slices.Compact(slices.Clone(b.found)), b.c)
	if err != nil {
		return err
	}
	if err := c.allPlanned(m); err != nil {
		return err
	}
	if err := safetensors.Write(filepath.Join(dir, "model.safetensors"), tensors, map[string]string{"format": "pt"}); err != nil {
		return err
	}
	files, err := tokenizer.ToJSON(m.gg)
	if err != nil {
		return fmt.Errorf("model: convert: %s: %w", m.path, err)
	}
	if template := m.gg.String("tokenizer.chat_template", ""); template != "" {
		files["chat_template.jinja"] = []byte(template)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			return fmt.Errorf("model: convert: %w", err)
		}
	}
	var first error
	for _, kind := range m.arch.hf {
		if err = c.tryConfig(m, b.c, kind, dir); err == nil {
			return nil
		}
		first = cmp.Or(first, err)
	}
	return fmt.Errorf("model: convert: %s: a checkpoint of type %s does not say what this model is: %w", m.path, strings.Join(m.arch.hf, " or "), first)
}

func (c *conversion) tryConfig(m *Model, cfg *Config, kind, dir string) error {
	config, err := c.config(m, cfg, kind)
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(config, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.json"), append(data, '\n'), 0o666)
	}
	if err != nil {
		return err
	}
	return c.compare(m, dir)
}

// export returns the weights of a GGUF file as tensors of a checkpoint.
func (c *conversion) export(m *Model, names []string, cfg *Config) ([]safetensors.Tensor, error) {
	var out []safetensors.Tensor
	seen := map[string]bool{}
	for _, name := range names {
		_, part, _ := splitName(name)
		if seen[name] || strings.HasPrefix(part, "rope_") { // config.json has those
			continue
		}
		seen[name] = true
		more, err := c.exportOne(m, name, cfg)
		if err != nil {
			return nil, fmt.Errorf("model: convert: %s: tensor %q: %w", m.path, name, err)
		}
		out = append(out, more...)
	}
	return out, nil
}

func (c *conversion) exportOne(m *Model, name string, cfg *Config) ([]safetensors.Tensor, error) {
	layer, part, suffix := splitName(name)
	mat, ok, err := m.src.mat(name)
	if err != nil || !ok {
		return nil, fmt.Errorf("expected it, found none: %w", err)
	}
	n := 1
	hf, whole := m.arch.names.names[part+suffix]
	if !whole {
		if hf, ok = m.arch.names.names[part+".#"]; ok && cfg.Experts.Count > 0 {
			n = cfg.Experts.Count
		} else if hf, ok = m.arch.names.names[part]; !ok {
			return nil, fmt.Errorf("expected a weight that checkpoints have, found one whose name there is not known")
		}
		hf, _, _ = strings.Cut(hf, "|")
		hf += suffix
	} else {
		hf, _, _ = strings.Cut(hf, "|")
	}
	switch {
	case n == 1 && strings.Contains(hf, "#"):
		return nil, fmt.Errorf("expected one tensor, found one for each head in checkpoints, which are not written")
	case layer >= 0:
		layers, _, _ := strings.Cut(m.arch.names.layers, "|")
		hf = m.arch.names.base() + layers + strconv.Itoa(layer) + "." + hf
	case part != "output":
		hf = m.arch.names.base() + hf
	}
	one := mat
	one.Rows /= n
	undo, turned, err := m.arch.names.undo(cfg, layer, part, suffix == ".bias", one)
	if err != nil {
		return nil, err
	}
	var out []safetensors.Tensor
	for i := range n {
		one, err := c.exportMat(m, name, mat, undo, turned, i, n)
		if err != nil {
			return nil, err
		}
		one.Name = strings.Replace(hf, "#", strconv.Itoa(i), 1)
		for end, at := range ofOne {
			if strings.HasSuffix(one.Name, end) {
				one.Shape = slices.Insert(one.Shape, at, 1)
			}
		}
		out = append(out, one)
	}
	return out, nil
}

// ofOne are tensors of checkpoints with an extent of 1, by the end of their names: a
// matrix of one row, and convolutions of single channels.
var ofOne = map[string]int{"shared_expert_gate.weight": 0, "moe_statics.e_score_correction_bias": 0, "conv.conv.weight": 1}

// exportMat returns part i of the n equal ones of a matrix.
func (c *conversion) exportMat(m *Model, name string, mat tensor.Mat, undo func(tensor.Mat) (tensor.Mat, error), turned bool, i, n int) (safetensors.Tensor, error) {
	typ := c.o.Type
	if c.o.Keep {
		typ = mat.Type
	}
	kinds := map[tensor.DType]string{tensor.F32: "F32", tensor.F16: "F16", tensor.BF16: "BF16"}
	kind, ok := kinds[typ]
	if !ok {
		return safetensors.Tensor{}, fmt.Errorf("type: expected f32, f16 or bf16 for a checkpoint (--type), found %v", mat.Type)
	}
	shape := []uint64{uint64(mat.Rows / n), uint64(mat.Cols)}
	if mat.Rows == 1 {
		shape = shape[1:]
	}
	change := c.changes[name]
	if change != nil && n == 1 {
		change.planned = true
	}
	w := &tensorWriter{c: c, typ: typ, rows: func(yield func(tensor.Mat) error) error {
		x, _, err := m.src.mat(name)
		if err != nil {
			return err
		}
		size := x.Type.RowBytes(x.Cols)
		x.Rows /= n
		x.Data = x.Data[i*x.Rows*size : (i+1)*x.Rows*size]
		defer m.src.release(x.Data)
		if change != nil {
			x = change.changed(x, typ)
		}
		if x, err = undo(x); err != nil {
			return err
		}
		return yield(x)
	}}
	c.total += int64(mat.Rows/n) * int64(typ.RowBytes(mat.Cols))
	if turned && len(shape) == 2 {
		slices.Reverse(shape)
	}
	return safetensors.Tensor{Type: kind, Shape: shape, Data: w}, nil
}

// base returns the prefix of the language model in checkpoints that are written.
func (l *hfNames) base() string {
	return cmp.Or(l.home, hfRoots[0])
}

// undo returns what brings a weight of a GGUF file into the order of a checkpoint:
// the inverse of the architecture's fix, which is told by what that does to
// numbered rows; turned says that it turns matrices around. Those that take a part of a larger matrix have none.
func (l *hfNames) undo(c *Config, layer int, part string, bias bool, m tensor.Mat) (undo func(tensor.Mat) (tensor.Mat, error), turned bool, err error) {
	same := func(m tensor.Mat) (tensor.Mat, error) { return m, nil }
	if l.fix == nil {
		return same, false, nil
	}
	fix := l.fix(c, layer, part, bias)
	if fix == nil {
		return same, false, nil
	}
	if t, err := fix(tensor.Mat{Type: tensor.F32, Rows: 2, Cols: 3, Data: make([]byte, 24)}); err == nil && t.Rows == 3 && t.Cols == 2 {
		return transpose, true, nil
	}
	rows, probe := m.Rows, tensor.Mat{Type: tensor.F32, Rows: m.Rows, Cols: 1}
	if m.Rows == 1 {
		rows, probe.Rows, probe.Cols = m.Cols, 1, m.Cols
	}
	at := make([]float32, rows)
	for i := range at {
		at[i] = float32(i)
	}
	probe.Data = make([]byte, 4*rows)
	if err := tensor.F32.Encode(probe.Data, at); err != nil {
		return nil, false, err
	}
	out, err := fix(probe)
	if err != nil || len(out.Data) != len(probe.Data) || out.Type != tensor.F32 {
		return nil, false, fmt.Errorf("expected a weight that is a tensor of its own in checkpoints, found one that is a part of another there, which is not written")
	}
	tensor.F32.Decode(at, out.Data)
	to, more := make([]int, rows), true
	for i := range to {
		to[i] = -1
	}
	for i, v := range at {
		more = more && v == float32(i+1)
		if k := int(v); k >= 0 && k < rows && float32(k) == v {
			to[k] = i
		}
	}
	if more {
		return subtractOne, false, nil
	}
	if slices.Contains(to, -1) {
		return nil, false, fmt.Errorf("expected another order of rows in checkpoints, found other values, which are not written")
	}
	return func(m tensor.Mat) (tensor.Mat, error) {
		return reorderRows(m, func(i int) int { return to[i] }), nil
	}, false, nil
}

// subtractOne is the inverse of addOne, for values that a checkpoint had.
func subtractOne(m tensor.Mat) (tensor.Mat, error) {
	x := make([]float32, m.Cols)
	m.DecodeRow(x, 0)
	for i := range x {
		x[i]--
	}
	out := tensor.Mat{Type: tensor.F32, Rows: 1, Cols: m.Cols, Data: make([]byte, 4*m.Cols)}
	return out, tensor.F32.Encode(out.Data, x)
}

package quantized

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ridge/internal/diag"
	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

// compressed reads checkpoints of compressed-tensors (llm-compressor). For a
// matrix of out rows and in columns
//
//	weight_packed      int32 [out][in·bits/32]: codes from the lowest bits on; or
//	                   bytes [out][in/2]: 4-bit floats, the first in the low nibble
//	weight             int8 or 8-bit floats [out][in]
//	weight_scale       [out][groups], [out][1], [1] or, of blocks, [n][m]; of 4-bit
//	                   floats 8-bit floats or exponents
//	weight_zero_point  int8 as the scales, or int32 [out·bits/32][groups]
//	weight_shape       int64 [2]; weight_g_idx int32 [in]; weight_global_scale float32 [1]
//
// A value is (weight - zero)·scale in the scales' type, scales of 4-bit floats
// being divided by the global one first. It follows _dequantize of
// compressed_tensors/quantization/lifecycle/forward_helpers.py.
type compressed struct {
	bits          []int                        // of packed integers, as the groups of modules have them
	height, width int                          // of blocks, 0 if no group has them
	zeros         [9]struct{ some, none bool } // by bits: whether groups of modules have zero points
	ordered       bool                         // columns are grouped in another order than they lie
}

var compressedFormats = []string{"pack-quantized", "int-quantized", "float-quantized", "naive-quantized", "nvfp4-pack-quantized", "mxfp4-pack-quantized", "mixed-precision", "dense"}

func openCompressed(c *Config) method {
	k, m := c.keys, &compressed{}
	format := k.oneOf("format", "dense", compressedFormats...)
	if sparse := k.object("sparsity_config"); sparse.values != nil {
		sparse.oneOf("format", "dense", "dense")
	}
	if len(k.object("transform_config").object("config_groups").values) > 0 {
		k.fail("transform_config", "no transforms of weights", "some")
	}
	groups := k.object("config_groups")
	text := map[string]bool{}
	for name := range groups.values {
		g := groups.object(name)
		w := g.object("weights")
		if w.values == nil {
			continue
		}
		bits, size := w.int("num_bits", 8), w.int("group_size", -1)
		if bits < 1 || bits > 8 {
			w.fail("num_bits", "1 to 8", bits)
		}
		if !slices.Contains(m.bits, bits) {
			m.bits = append(m.bits, bits)
		}
		if bits = min(max(bits, 0), 8); w.boolean("symmetric", true) {
			m.zeros[bits].none = true
		} else {
			m.zeros[bits].some = true
		}
		kind := w.str("type", "int")
		strategy := w.str("strategy", "")
		t := fmt.Sprintf("%s of %d bits for each %s", kind, bits, strategy)
		if size > 0 {
			t += fmt.Sprintf(" of %d", size)
		}
		text[t] = true
		if list, ok := w.get("block_structure").([]any); ok && len(list) == 2 {
			h, _ := list[0].(float64)
			wd, _ := list[1].(float64)
			if m.height, m.width = int(h), int(wd); h < 1 || wd < 1 || h > 1<<20 || wd > 1<<20 {
				w.fail("block_structure", "two positive numbers", list)
			}
		}
		if order, ok := w.get("actorder").(string); ok && (order == "group" || order == "dynamic") {
			m.ordered = true
		}
		if g.object("input_activations").values != nil {
			note := "compressed-tensors: weights are read, activations stay as --act says: they are not quantized as the checkpoint's settings have it"
			if !slices.Contains(c.Notes, note) {
				c.Notes = append(c.Notes, note)
			}
		}
	}
	slices.Sort(m.bits)
	c.Text = "compressed-tensors, " + format
	for _, t := range slices.Sorted(maps.Keys(text)) {
		c.Text += ", " + t
	}
	return m
}

func (m *compressed) weight(t safetensors.TensorInfo) (string, bool) {
	if module, ok := strings.CutSuffix(t.Name, ".weight_packed"); ok {
		return module + ".weight", true
	}
	return t.Name, (t.Type == "I8" || t.Type == "F8_E4M3" || t.Type == "F8_E5M2") && strings.HasSuffix(t.Name, ".weight")
}

func (m *compressed) open(p *parts) unpacker {
	module := strings.TrimSuffix(p.name, ".weight")
	p.leave(module)
	switch p.first.Type {
	case "F8_E4M3", "F8_E5M2":
		w, scale := p.get(p.name, 2, "F8_E4M3", "F8_E5M2"), p.get(p.name+"_scale", -1, "F32", "BF16", "F16")
		typ, _ := scale.DType()
		height, width := m.height, m.width
		if n := scale.count(); n == 1 || n == w.dim(0) && len(scale.Shape) > 0 && scale.dim(0) == n {
			height, width = 0, 0
		}
		return scaled8(p, w, scale, height, width, typ, func(v, s float32) float32 { return v * s })
	case "U8":
		return m.openFloats4(p)
	case "I8":
		w := p.get(p.name, 2, "I8")
		x := m.ints(p, w.dim(0), w.dim(1), 8)
		x.codes = func(dst []int16, lo, hi int) {
			for i, q := range w.data[lo*x.ncol : hi*x.ncol] {
				dst[i] = int16(int8(q)) + 128
			}
		}
		return x
	}
	w := p.get(p.name+"_packed", 2, "I32")
	shape := p.get(p.name+"_shape", 1, "I64", "I32")
	dims := shape.ints()
	if len(dims) != 2 || dims[0] != w.dim(0) || dims[1] < 1 || dims[1] > w.dim(1)*32 {
		p.fail(shape.Name, fmt.Sprintf("%d rows and up to %d columns", w.dim(0), w.dim(1)*32), fmt.Sprint(dims))
		return nil
	}
	bits := slices.DeleteFunc(slices.Clone(m.bits), func(b int) bool { return (dims[1]*b+31)/32 != w.dim(1) })
	if len(bits) != 1 {
		p.fail(w.Name, fmt.Sprintf("codes of one of %v bits for %d columns", m.bits, dims[1]), fmt.Sprintf("%d words of 32 bits", w.dim(1)))
		return nil
	}
	x := m.ints(p, dims[0], dims[1], bits[0])
	x.codes = func(dst []int16, lo, hi int) {
		for r := lo; r < hi; r++ {
			word := func(i int) uint32 { return le32(w.data, r*w.dim(1)+i) }
			for c := range x.ncol {
				dst[(r-lo)*x.ncol+c] = int16(bitstream(c, x.bits, word))
			}
		}
	}
	return x
}

// ints opens scales and zero points of integers. Codes are counted from the least
// one on.
func (m *compressed) ints(p *parts, rows, cols, bits int) *ints {
	scale := p.get(p.name+"_scale", -1, "F32", "BF16", "F16")
	typ, _ := scale.DType()
	groups, shared := 1, scale.count() == 1
	if !shared {
		if groups = scale.count() / rows; groups < 1 || groups > cols || scale.dim(0) != rows || groups*rows != scale.count() {
			p.fail(scale.Name, fmt.Sprintf("1 scale, or some for each of %d rows", rows), diag.Shape(scale.Shape))
			groups = 1
		}
	}
	size := (cols + groups - 1) / groups
	if cols%groups != 0 {
		p.fail(scale.Name, fmt.Sprintf("a divisor of %d columns as the number of groups", cols), fmt.Sprint(groups))
	}
	x := &ints{name: p.name, nrow: rows, ncol: cols, bits: bits, groups: groups, size: size, scales: typ}
	var zeros, index part
	if name := p.name + "_zero_point"; p.has(name) {
		if zeros = p.get(name, -1, "I8", "I32"); zeros.Type == "I32" {
			zeros.expect((rows*bits+31)/32, groups)
		} else if n := zeros.count(); n != scale.count() {
			p.fail(name, fmt.Sprintf("%d zero points", scale.count()), fmt.Sprint(n))
		}
	} else if z := m.zeros[bits]; z.some && !z.none {
		p.fail(name, "it beside "+diag.Quote(p.first.Name), "no tensor of that name")
	}
	if name := p.name + "_g_idx"; p.has(name) {
		index = p.get(name, 1, "I32")
		index.expect(cols)
	} else if m.ordered && groups > 1 {
		p.fail(name, "it beside "+diag.Quote(p.first.Name), "no tensor of that name")
	}
	x.read = func() ([]float32, []int16, []int32, error) {
		group, err := groupIndex(p, index, groups)
		all, half := scale.floats(), int16(1)<<(bits-1)
		scales, zero := make([]float32, rows*groups), make([]int16, rows*groups)
		for i := range scales {
			if zero[i] = half; shared {
				scales[i] = all[0]
			} else {
				scales[i] = all[i]
			}
			switch r, g := i/groups, i%groups; {
			case zeros.p == nil:
			case zeros.Type == "I32":
				word := func(n int) uint32 { return le32(zeros.data, n*groups+g) }
				zero[i] = int16(bitstream(r, bits, word))
			case shared:
				zero[i] += int16(int8(zeros.data[0]))
			default:
				zero[i] += int16(int8(zeros.data[i]))
			}
		}
		return scales, zero, group, err
	}
	return x
}

// openFloats4 opens 4-bit floats with a scale for 16 or 32 of them.
func (m *compressed) openFloats4(p *parts) unpacker {
	w := p.get(p.name+"_packed", 2, "U8")
	scale := p.get(p.name+"_scale", 2, "F8_E4M3", "F8_E8M0", "U8")
	rows, cols := w.dim(0), 2*w.dim(1)
	if scale.Type != "F8_E4M3" {
		scale.expect(rows, cols/32)
		return mxfp4(p, w, scale, rows, cols)
	}
	global := p.get(p.name+"_global_scale", -1, "F32")
	scale.expect(rows, cols/16)
	if global.count() != 1 || cols%16 != 0 {
		p.fail(w.Name, "one global scale and groups of 16", fmt.Sprintf("%d and %d columns", global.count(), cols))
		return nil
	}
	return nvfp4(p, w, scale, tensor.BF16, func() func(float32) float32 {
		g := global.floats()[0]
		return func(s float32) float32 { return s / g }
	})
}

// ints returns the values of a vector of integers.
func (x part) ints() (out []int) {
	size := 4
	if x.Type == "I64" {
		size = 8
	}
	for i := 0; (i+1)*size <= len(x.data) && i < 8; i++ {
		v := int64(int32(le32(x.data, i*size/4)))
		if size == 8 {
			v = int64(uint64(le32(x.data, 2*i)) | uint64(le32(x.data, 2*i+1))<<32)
		}
		out = append(out, int(v))
	}
	return out
}

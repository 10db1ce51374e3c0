package quantized

import (
	"fmt"
	"strings"

	"ridge/internal/diag"
	"ridge/weights/safetensors"
)

// gptq reads checkpoints of GPTQModel, AutoGPTQ and AutoRound: for a matrix of
// out rows and in columns
//
//	qweight int32 [in·bits/32][out]       codes of a row, from the lowest bits on
//	qzeros  int32 [groups][out·bits/32]   zero points, less 1 in the first version
//	scales        [groups][out]
//	g_idx   int32 [in]                    group of each column
//
// A value is scales·(code - zero), rounded to the scales' type. It follows
// dequantize_weight of gptqmodel's linear layers.
type gptq struct {
	bits, size int
	first      bool // zero points lie less 1
	mixed      bool // bits and groups differ from module to module
	ordered    bool // columns are grouped in another order than they lie
}

func openGPTQ(c *Config) method {
	k := c.keys
	m := &gptq{bits: k.int("bits", 4), size: k.int("group_size", 128)}
	m.mixed = len(k.object("dynamic").values) > 0
	format := k.str("checkpoint_format", k.str("format", "gptq"))
	switch strings.ToLower(format) {
	case "gptq":
		m.first = true
	case "gptq_v2":
	default:
		k.fail("checkpoint_format", "gptq or gptq_v2", diag.Quote(format))
	}
	if pack := k.str("pack_dtype", "int32"); pack != "int32" {
		k.fail("pack_dtype", "int32", diag.Quote(pack))
	}
	if !gptqBits[m.bits] {
		k.fail("bits", "2, 3, 4 or 8", m.bits)
	}
	if m.size < -1 || m.size == 0 {
		k.fail("group_size", "-1 or a positive number", m.size)
	}
	c.Text = "GPTQ, " + settingsText(m.bits, m.size, k.boolean("sym", true))
	if m.ordered = k.boolean("desc_act", false); m.ordered {
		c.Text += ", columns in the order of their activations"
	}
	if m.mixed {
		c.Text += ", some modules otherwise"
	}
	return m
}

var gptqBits = map[int]bool{2: true, 3: true, 4: true, 8: true}

// settingsText describes bits, groups and zero points.
func settingsText(bits, size int, symmetric bool) string {
	s := fmt.Sprintf("%d bits, groups of %d", bits, size)
	if size < 0 {
		s = fmt.Sprintf("%d bits, a scale for each row", bits)
	}
	if !symmetric {
		s += " with zero points"
	}
	return s
}

func (m *gptq) weight(t safetensors.TensorInfo) (string, bool) {
	module, ok := strings.CutSuffix(t.Name, ".qweight")
	return module + ".weight", ok
}

func (m *gptq) open(p *parts) unpacker {
	module := strings.TrimSuffix(p.name, ".weight")
	qweight := p.get(module+".qweight", 2, "I32")
	qzeros := p.get(module+".qzeros", 2, "I32")
	scales := p.get(module+".scales", 2, "F16", "BF16", "F32")
	words, out, bits := qweight.dim(0), qweight.dim(1), m.bits
	var index part
	cols := words * 32 / bits
	if p.has(module + ".g_idx") {
		index = p.get(module+".g_idx", 1, "I32")
		cols = index.dim(0)
		if m.mixed {
			bits = words * 32 / cols
		}
	} else if m.mixed || m.ordered {
		p.fail(module+".g_idx", "it beside "+diag.Quote(qweight.Name), "no tensor of that name")
	}
	if !gptqBits[bits] || cols*bits != words*32 {
		p.fail(qweight.Name, fmt.Sprintf("codes of %d bits for %d columns", bits, cols), fmt.Sprintf("%d words of 32 bits", words))
		return nil
	}
	groups := scales.dim(0)
	size := (cols + groups - 1) / groups
	if !m.mixed {
		if size = m.size; size < 0 {
			size = cols
		}
		groups = (cols + size - 1) / size
	}
	scales.expect(groups, out)
	qzeros.expect(groups, (out*bits+31)/32)
	typ, _ := scales.DType()
	x := &ints{name: p.name, nrow: out, ncol: cols, bits: bits, groups: groups, size: size, scales: typ}
	x.codes = columnCodes(qweight.data, out, cols, bits)
	x.read = func() ([]float32, []int16, []int32, error) {
		group, err := groupIndex(p, index, groups)
		zeros := make([]int16, groups*out)
		for g := range groups {
			word := func(i int) uint32 { return le32(qzeros.data, g*qzeros.dim(1)+i) }
			for o := range out {
				z := int16(bitstream(o, bits, word))
				if m.first {
					z = (z + 1) & (1<<bits - 1)
				}
				zeros[o*groups+g] = z
			}
		}
		return transposed(scales.floats(), out, groups), zeros, group, err
	}
	return x
}

// groupIndex reads the group of each column, nil if there is no such list.
func groupIndex(p *parts, index part, groups int) ([]int32, error) {
	if index.p == nil {
		return nil, nil
	}
	group := make([]int32, index.dim(0))
	for i := range group {
		g := le32(index.data, i)
		if g >= uint32(groups) {
			return nil, fault(p.st.Name(), tensorField(index.Name), fmt.Sprintf("groups 0 to %d", groups-1), fmt.Sprintf("%d of column %d", int32(g), i))
		}
		group[i] = int32(g)
	}
	return group, nil
}

// columnCodes reads codes that lie in words along the columns: [cols·bits/32][rows].
func columnCodes(data []byte, rows, cols, bits int) func(dst []int16, lo, hi int) {
	mask := uint32(1)<<bits - 1
	return func(dst []int16, lo, hi int) {
		if 32%bits != 0 {
			for r := lo; r < hi; r++ {
				word := func(i int) uint32 { return le32(data, i*rows+r) }
				for c := range cols {
					dst[(r-lo)*cols+c] = int16(bitstream(c, bits, word))
				}
			}
			return
		}
		each := 32 / bits
		for w := range cols / each {
			for r := lo; r < hi; r++ {
				v, at := le32(data, w*rows+r), dst[(r-lo)*cols+w*each:][:each]
				for i := range at {
					at[i] = int16(v & mask)
					v >>= bits
				}
			}
		}
	}
}

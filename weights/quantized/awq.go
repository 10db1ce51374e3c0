package quantized

import (
	"fmt"
	"strings"

	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

// awq reads checkpoints of AutoAWQ and GPTQModel: 4-bit codes less a zero point,
// in one of two orders. For a matrix of out rows and in columns
//
//	gemm: qweight int32 [in][out/8], qzeros int32 [groups][out/8], scales [groups][out];
//	      the nibbles of a word, from the lowest on, are of rows 0 2 4 6 1 3 5 7
//	gemv: qweight int32 [out][in/8], qzeros int32 [out][n], scales [out][8·n];
//	      in order, n being the words for all groups, perhaps some more
//
// A value is (code - zero)·scales, rounded to the scales' type. It follows
// dequantize_gemm of awq/utils/packing_utils.py.
type awq struct {
	size int
	gemv bool
}

func openAWQ(c *Config) method {
	k := c.keys
	bits := k.int("bits", k.int("w_bit", 4))
	if bits != 4 {
		k.fail("bits", "4", bits)
	}
	m := &awq{size: k.int("group_size", k.int("q_group_size", 128))}
	if m.size < -1 || m.size == 0 {
		k.fail("group_size", "-1 or a positive number", m.size)
	}
	for _, key := range []string{"version", "checkpoint_format", "format"} {
		if k.get(key) != nil {
			m.gemv = k.oneOf(key, "", "gemm", "gemv") == "gemv"
			break
		}
	}
	c.Text = "AWQ, " + settingsText(bits, m.size, false)
	return m
}

func (m *awq) weight(t safetensors.TensorInfo) (string, bool) {
	module, ok := strings.CutSuffix(t.Name, ".qweight")
	return module + ".weight", ok
}

// awqPlace has the nibble of a word that a row has in the gemm order.
var awqPlace = [8]int{0, 4, 1, 5, 2, 6, 3, 7}

func (m *awq) open(p *parts) unpacker {
	module := strings.TrimSuffix(p.name, ".weight")
	qweight := p.get(module+".qweight", 2, "I32")
	qzeros := p.get(module+".qzeros", 2, "I32")
	scales := p.get(module+".scales", 2, "F16", "BF16", "F32")
	out, in := 8*qweight.dim(1), qweight.dim(0)
	if m.gemv {
		out, in = qweight.dim(0), 8*qweight.dim(1)
	}
	size := m.size
	if size < 0 {
		size = in
	}
	if in%size != 0 {
		p.fail(qweight.Name, fmt.Sprintf("columns in groups of %d", size), fmt.Sprint(in))
		return nil
	}
	groups := in / size
	typ, _ := scales.DType()
	x := &ints{name: p.name, nrow: out, ncol: in, bits: 4, groups: groups, size: size, scales: typ}
	if m.gemv {
		return m.openGEMV(x, p, qweight, qzeros, scales)
	}
	qzeros.expect(groups, out/8)
	scales.expect(groups, out)
	code := func(data []byte, i, row int) int16 {
		return int16(le32(data, i*out/8+row/8) >> (4 * awqPlace[row%8]) & 15)
	}
	x.codes = func(dst []int16, lo, hi int) {
		for c := range in {
			for r := lo; r < hi; r++ {
				dst[(r-lo)*in+c] = code(qweight.data, c, r)
			}
		}
	}
	x.read = func() ([]float32, []int16, []int32, error) {
		zeros := make([]int16, out*groups)
		for r := range out {
			for g := range groups {
				zeros[r*groups+g] = code(qzeros.data, g, r)
			}
		}
		return transposed(scales.floats(), out, groups), zeros, nil, nil
	}
	return x
}

// openGEMV reads rows that lie as they are multiplied.
func (m *awq) openGEMV(x *ints, p *parts, qweight, qzeros, scales part) unpacker {
	words := qzeros.dim(1)
	qzeros.expect(x.nrow, words)
	scales.expect(x.nrow, 8*words)
	if 8*words < x.groups {
		p.fail(qzeros.Name, fmt.Sprintf("zero points of %d groups", x.groups), fmt.Sprint(8*words))
	}
	x.codes = func(dst []int16, lo, hi int) {
		for i := range (hi - lo) * x.ncol {
			dst[i] = int16(qweight.data[(lo*x.ncol+i)/2] >> (4 * (i % 2)) & 15)
		}
	}
	x.read = func() ([]float32, []int16, []int32, error) {
		scale, zeros := make([]float32, x.nrow*x.groups), make([]int16, x.nrow*x.groups)
		all := tensor.Mat{Type: x.scales, Rows: x.nrow, Cols: 8 * words, Data: scales.data}
		row := make([]float32, 8*words)
		for r := range x.nrow {
			all.DecodeRow(row, r)
			copy(scale[r*x.groups:(r+1)*x.groups], row)
			for g := range x.groups {
				zeros[r*x.groups+g] = int16(qzeros.data[4*r*words+g/2] >> (4 * (g % 2)) & 15)
			}
		}
		return scale, zeros, nil, nil
	}
	return x
}

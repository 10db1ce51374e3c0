package quantized

import (
	"encoding/binary"
	"fmt"
	"strings"

	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

// ternary reads checkpoints of BitNet b1.58 as transformers has them
// (integrations/bitnet.py): weights of -1, 0 and 1 with one scale lie as
//
//	weight         bytes [out/4][in]: row r of the n rows of bytes has the rows
//	               r, r+n, r+2n and r+3n of the weight, less 1, from the lowest two bits on
//	weight_scale   [1], a number of the model's type
//
// The layers of linear_class "autobitlinear" multiply with the scale, those of
// "bitlinear" divide by it.
type ternary struct {
	dtype   tensor.DType
	divides bool
}

func openBitNet(c *Config) method {
	k := c.keys
	class := k.oneOf("linear_class", "bitlinear", "bitlinear", "autobitlinear")
	if mode := k.oneOf("quantization_mode", "offline", "offline", "online"); mode == "online" {
		k.fail("quantization_mode", "offline: packed weights", "online, whose weights are floats that each step quantizes")
	}
	if k.boolean("use_rms_norm", false) {
		k.fail("use_rms_norm", "false", true)
	}
	c.Text = "BitNet b1.58, ternary"
	c.Notes = append(c.Notes, "BitNet: weights are read, activations stay as --act says: int8 has a scale for 32 values, BitNet one for a row")
	return &ternary{c.dtype, class == "bitlinear"}
}

func (m *ternary) weight(t safetensors.TensorInfo) (string, bool) {
	return strings.CutSuffix(t.Name, "_scale")
}

func (m *ternary) open(p *parts) unpacker {
	scale, w := p.get(p.first.Name, -1, "BF16", "F16", "F32"), p.get(p.name, 2, "U8")
	if scale.count() != 1 {
		p.fail(scale.Name, "one number", fmt.Sprintf("%d", scale.count()))
	}
	return &ternaryMat{ternary: *m, scales: scale, bytes: w, nrow: 4 * w.dim(0), ncol: w.dim(1)}
}

// ternaryMat is one weight.
type ternaryMat struct {
	ternary
	scales, bytes part
	nrow, ncol    int

	typ   tensor.DType
	scale float32
	why   string
}

func (m *ternaryMat) wide() string    { return m.why }
func (m *ternaryMat) mat() tensor.Mat { return tensor.Mat{Type: m.typ, Rows: m.nrow, Cols: m.ncol} }

// plan chooses TQ2_0, or Q4_0 for rows that are not made of blocks of 256.
func (m *ternaryMat) plan() error {
	m.scale = m.scales.floats()[0]
	if m.divides { // the layer's result has the model's type
		var b [4]byte
		one := []float32{1 / m.scale}
		putFloat(b[:], m.dtype, 0, one[0])
		m.dtype.Decode(one, b[:m.dtype.BlockBytes()])
		m.scale = one[0]
	}
	m.typ = m.dtype
	switch {
	case tensor.F16ToF32(tensor.F32ToF16(m.scale)) != m.scale: // NaN too
		m.why = "their scale is no float16 number"
	case m.ncol%256 == 0:
		m.typ = tensor.TQ2_0
	case m.ncol%32 == 0:
		m.typ = tensor.Q4_0
	default:
		m.why = "their rows are no multiples of 32"
	}
	for i, b := range m.bytes.data {
		if b&(b>>1)&0x55 != 0 {
			return fault(m.bytes.p.st.Name(), tensorField(m.bytes.Name), "ternary codes 0, 1 and 2", fmt.Sprintf("3 in byte %d", i))
		}
	}
	return nil
}

func (m *ternaryMat) rows(dst []byte, lo, hi int) {
	n := m.nrow / 4
	size := m.typ.RowBytes(m.ncol)
	for row := lo; row < hi; row++ {
		src, shift := m.bytes.data[row%n*m.ncol:][:m.ncol], 2*(row/n)
		code := func(i int) byte { return src[i] >> shift & 3 }
		switch m.typ {
		case tensor.TQ2_0:
			ternaryBlocks(dst, m.ncol, m.scale, code)
		case tensor.Q4_0:
			for at := 0; at < m.ncol; at += 32 {
				b := dst[at/32*18:][:18]
				binary.LittleEndian.PutUint16(b, tensor.F32ToF16(m.scale))
				for i := range 16 {
					b[2+i] = code(at+i) + 7 | (code(at+16+i)+7)<<4
				}
			}
		default:
			for i := range m.ncol {
				putFloat(dst, m.typ, i, float32(int(code(i))-1)*m.scale)
			}
		}
		dst = dst[size:]
	}
}

// ternaryBlocks writes a row as TQ2_0 has it: code 32·n + i of 128 lies at 2·n bits
// of byte i.
func ternaryBlocks(dst []byte, cols int, scale float32, code func(i int) byte) {
	for at := 0; at < cols; at += 256 {
		b := dst[at/256*66:][:66]
		for i := range 64 {
			from := at + i/32*128 + i%32
			b[i] = code(from) | code(from+32)<<2 | code(from+64)<<4 | code(from+96)<<6
		}
		binary.LittleEndian.PutUint16(b[64:], tensor.F32ToF16(scale))
	}
}

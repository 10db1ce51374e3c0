package quantized

import (
	"fmt"
	"strings"

	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

// mxfp4Method reads gpt-oss: matrices of all experts, [experts][out][in], as
//
//	NAME_blocks  bytes [experts][out][in/32][16], the first of two values in the low nibble
//	NAME_scales  bytes [experts][out][in/32], exponents
//
// of a weight NAME that lies [experts][in][out] in checkpoints that are not
// quantized. Values are those of tensor.MXFP4. It follows
// convert_moe_packed_tensors of transformers/integrations/mxfp4.py.
type mxfp4Method struct{}

func openMXFP4(c *Config) method {
	c.Text = "MXFP4"
	return mxfp4Method{}
}

func (mxfp4Method) weight(t safetensors.TensorInfo) (string, bool) {
	return strings.CutSuffix(t.Name, "_blocks")
}

func (mxfp4Method) open(p *parts) unpacker {
	w := p.get(p.name+"_blocks", 4, "U8")
	scale := p.get(p.name+"_scales", 3, "U8")
	scale.expect(w.dim(0), w.dim(1), w.dim(2))
	w.expect(w.dim(0), w.dim(1), w.dim(2), 16)
	return mxfp4(p, w, scale, w.dim(0)*w.dim(1), 32*w.dim(2))
}

// blocks4 is a matrix of blocks of 32 4-bit floats and an exponent.
type blocks4 struct {
	nrow, ncol       int
	codes, exponents []byte
}

func mxfp4(p *parts, w, scale part, rows, cols int) unpacker {
	if cols%32 != 0 {
		p.fail(w.Name, "rows of whole blocks of 32", fmt.Sprintf("%d columns", cols))
		return nil
	}
	return &blocks4{rows, cols, w.data, scale.data}
}

func (m *blocks4) plan() error     { return nil }
func (m *blocks4) wide() string    { return "" }
func (m *blocks4) mat() tensor.Mat { return tensor.Mat{Type: tensor.MXFP4, Rows: m.nrow, Cols: m.ncol} }

func (m *blocks4) rows(dst []byte, lo, hi int) {
	n := m.ncol / 32
	for b := lo * n; b < hi*n; b++ {
		dst[0] = m.exponents[b]
		neighbours(dst[1:17], m.codes[16*b:][:16])
		dst = dst[17:]
	}
}

// neighbours turns bytes of two columns next to each other into those of ggml's
// blocks, whose high nibbles have the second half of the columns.
func neighbours(dst, src []byte) {
	for i := range 8 {
		a, b := src[i], src[8+i]
		dst[2*i], dst[2*i+1] = a&15|b<<4, a>>4|b&0xf0
	}
}

// nvfp4 returns a matrix of 4-bit floats with a scale of 8 bits for each 16. total
// returns what makes a scale of the whole matrix of it.
func nvfp4(p *parts, w, scale part, typ tensor.DType, total func() func(float32) float32) unpacker {
	rows, cols := w.dim(0), 2*w.dim(1)
	var whole func(float32) float32
	return &floats{typ: typ, nrow: rows, ncol: cols, why: "NVFP4 has no kernels here",
		prepare: func() error { whole = total(); return nil },
		row: func(dst []float32, row int) {
			codes, scales := w.data[row*cols/2:][:cols/2], scale.data[row*cols/16:][:cols/16]
			for g, e := range scales {
				s := whole(valuesE4M3[e])
				for i, q := range codes[8*g : 8*g+8] {
					dst[16*g+2*i] = valuesE2M1[q&15] * s
					dst[16*g+2*i+1] = valuesE2M1[q>>4] * s
				}
			}
		}}
}

// modelopt reads checkpoints of NVIDIA's ModelOpt: FP8 with a scale for each
// matrix, and NVFP4:
//
//	weight          bytes [out][in/2], the first of two values in the low nibble
//	weight_scale    F8_E4M3 [out][in/16]
//	weight_scale_2  float32, of the whole matrix
//
// A value of NVFP4 is code·(weight_scale·weight_scale_2), rounded to the model's
// type. It follows NVFP4QTensor.dequantize of modelopt.
type modelopt struct{ fp8 }

func openModelOpt(c *Config) method {
	k := c.keys
	if inner := k.object("quantization"); inner.values != nil {
		k = inner
	}
	algorithm := strings.ToUpper(k.str("quant_algo", k.str("quant_method", "")))
	c.Text = "ModelOpt, " + algorithm
	if algorithm != "FP8" && algorithm != "NVFP4" {
		k.fail("quant_algo", "FP8 or NVFP4", algorithm)
	}
	c.Notes = append(c.Notes, "ModelOpt: weights are read, activations, keys and values stay as --act and --kv say")
	return &modelopt{fp8{dtype: c.dtype}}
}

func (m *modelopt) weight(t safetensors.TensorInfo) (string, bool) {
	if t.Type == "U8" && strings.HasSuffix(t.Name, ".weight") {
		return t.Name, true
	}
	return m.fp8.weight(t)
}

func (m *modelopt) open(p *parts) unpacker {
	if p.first.Type != "U8" {
		return m.fp8.open(p)
	}
	p.leave(strings.TrimSuffix(p.name, ".weight"))
	w, scale := p.get(p.name, 2, "U8"), p.get(p.name+"_scale", 2, "F8_E4M3")
	second := p.get(p.name+"_scale_2", -1, "F32")
	rows, cols := w.dim(0), 2*w.dim(1)
	scale.expect(rows, cols/16)
	if second.count() != 1 || cols%16 != 0 {
		p.fail(w.Name, "one second scale and groups of 16", fmt.Sprintf("%d and %d columns", second.count(), cols))
		return nil
	}
	return nvfp4(p, w, scale, m.dtype, func() func(float32) float32 {
		g := second.floats()[0]
		return func(s float32) float32 { return s * g }
	})
}

package quantized

import (
	"fmt"
	"strings"

	"ridge/internal/diag"
	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

// fp8 reads weights of 8-bit floats: those of DeepSeek-V3, Qwen3 and transformers'
// fine-grained FP8, of FBGEMM and of ModelOpt. For a matrix of out rows and in
// columns
//
//	weight            F8_E4M3 or F8_E5M2 [out][in]
//	weight_scale_inv  float32, bfloat16 or exponents, or weight_scale: of the whole
//	                  matrix, of each row ([out] or [out][1]), or of each block
//
// A value is weight·scale in float32, rounded to the model's type. It follows
// Fp8Dequantize of transformers/integrations/finegrained_fp8.py. Scales of
// activations, keys and values are left: these are computed as they are.
type fp8 struct {
	dtype  tensor.DType
	height int // of a block, 0 if there are none
	width  int
}

func openFP8(c *Config) method {
	k, m := c.keys, &fp8{dtype: c.dtype}
	c.Text = "FP8"
	if v := k.get("weight_block_size"); v != nil {
		list, _ := v.([]any)
		if len(list) == 2 {
			h, _ := list[0].(float64)
			w, _ := list[1].(float64)
			m.height, m.width = int(h), int(w)
		}
		if m.height < 1 || m.width < 1 || m.height > 1<<20 || m.width > 1<<20 {
			k.fail("weight_block_size", "two positive numbers", v)
		}
		c.Text += fmt.Sprintf(", blocks of %d x %d", m.height, m.width)
	}
	scheme := k.str("activation_scheme", "dynamic")
	c.Notes = append(c.Notes, "FP8: weights are read, activations stay as --act says: they are not rounded to FP8 ("+scheme+") as the checkpoint's own kernels do")
	return m
}

func (m *fp8) weight(t safetensors.TensorInfo) (string, bool) {
	return t.Name, (t.Type == "F8_E4M3" || t.Type == "F8_E5M2") && strings.HasSuffix(t.Name, ".weight")
}

// besides are scales of activations, and of keys and values, that lie beside a
// weight and are not used.
var besides = []string{"input_scale", "activation_scale", "input_scale_ub", "input_global_scale", "input_zero_point", "output_scale", "k_scale", "v_scale", "q_scale"}

// leave takes what lies beside a weight and is not used.
func (p *parts) leave(module string) {
	for _, name := range besides {
		if name = module + "." + name; p.has(name) {
			p.get(name, -1, "F32", "BF16", "F16", "F8_E4M3", "I8")
		}
	}
}

func (m *fp8) open(p *parts) unpacker {
	module := strings.TrimSuffix(p.name, ".weight")
	w := p.get(p.name, 2, "F8_E4M3", "F8_E5M2")
	p.leave(module)
	name := p.name + "_scale_inv"
	if !p.has(name) && p.has(p.name+"_scale") {
		name = p.name + "_scale"
	}
	scale := p.get(name, -1, "F32", "BF16", "F16", "F8_E8M0", "U8")
	return scaled8(p, w, scale, m.height, m.width, m.dtype, func(v, s float32) float32 { return v * s })
}

// scaled8 returns a matrix of 8-bit floats with scales for the whole of it, for
// rows, or for blocks of height x width.
func scaled8(p *parts, w, scale part, height, width int, typ tensor.DType, product func(v, s float32) float32) unpacker {
	rows, cols := w.dim(0), w.dim(1)
	switch n := scale.count(); {
	case height > 0:
		scale.expect((rows+height-1)/height, (cols+width-1)/width)
	case n == 1:
		height, width = rows, cols
	case n == rows && scale.dim(0) == rows:
		height, width = 1, cols
	default:
		p.fail(scale.Name, fmt.Sprintf("1 scale or %d, one for each row", rows), diag.Shape(scale.Shape))
		return nil
	}
	table, across := w.table8(), (cols+width-1)/width
	var scales []float32
	return &floats{typ: typ, nrow: rows, ncol: cols, why: "FP8 has no kernels here",
		prepare: func() error { scales = scale.numbers(); return nil },
		row: func(dst []float32, row int) {
			codes := w.data[row*cols:][:cols]
			for b := range across {
				s := scales[row/height*across+b]
				for i := b * width; i < min((b+1)*width, cols); i++ {
					dst[i] = product(table[codes[i]], s)
				}
			}
		}}
}

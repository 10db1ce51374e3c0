package quantized

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"ridge/internal/diag"
	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

// bitsandbytes reads checkpoints of bitsandbytes. 4-bit weights, NF4 and FP4, lie
// as
//
//	weight                                 bytes [out·in/2][1], the first of two codes in the high nibble
//	weight.quant_map                       float32 [16], the values of the codes
//	weight.absmax                          float32 [blocks], or bytes of nested scales
//	weight.quant_state.bitsandbytes__nf4   JSON: blocksize, shape, dtype, nested_blocksize, nested_offset
//	weight.nested_absmax, .nested_quant_map
//
// and have the value quant_map·absmax, rounded to dtype, where a nested absmax is
// nested_quant_map·nested_absmax + nested_offset. 8-bit weights lie as int8
// [out][in] and SCB float32 [out], and have the value weight·SCB·(1/127), rounded to
// the model's type. It follows dequantize_4bit and int8_vectorwise_dequant of
// bitsandbytes/functional.py.
type bitsandbytes struct{ dtype tensor.DType }

func openBitsAndBytes(c *Config) method {
	k := c.keys
	switch {
	case k.boolean("load_in_8bit", false) || k.boolean("_load_in_8bit", false):
		c.Text = "bitsandbytes, int8"
		c.Notes = append(c.Notes, "bitsandbytes int8: weights are read, activations stay as --act says")
	default:
		c.Text = "bitsandbytes, " + strings.ToUpper(k.str("bnb_4bit_quant_type", "fp4"))
		if k.boolean("bnb_4bit_use_double_quant", false) {
			c.Text += ", nested scales"
		}
	}
	return &bitsandbytes{c.dtype}
}

const bnbState = ".quant_state.bitsandbytes__"

func (m *bitsandbytes) weight(t safetensors.TensorInfo) (string, bool) {
	if module, ok := strings.CutSuffix(t.Name, ".SCB"); ok {
		return module + ".weight", true
	}
	name, _, ok := strings.Cut(t.Name, bnbState)
	return name, ok
}

func (m *bitsandbytes) open(p *parts) unpacker {
	if strings.HasSuffix(p.first.Name, ".SCB") {
		return m.open8(p)
	}
	var state struct {
		Blocksize       int     `json:"blocksize"`
		Shape           []int   `json:"shape"`
		DType           string  `json:"dtype"`
		NestedBlocksize int     `json:"nested_blocksize"`
		NestedOffset    float64 `json:"nested_offset"`
	}
	s := p.get(p.first.Name, 1, "U8")
	if err := json.Unmarshal(s.data, &state); err != nil {
		p.fail(s.Name, "a JSON object", diag.Quote(string(s.data[:min(len(s.data), 40)])))
		return nil
	}
	typ, ok := floatTypes[state.DType]
	w := p.get(p.name, -1, "U8", "BF16", "F16", "F32")
	size := uint64(0)
	if len(state.Shape) == 2 && state.Shape[0] > 0 && state.Shape[1] > 0 {
		size = (uint64(min(state.Shape[0], math.MaxInt32))*uint64(min(state.Shape[1], math.MaxInt32)) + 1) / 2
	}
	if !ok || state.Blocksize < 1 || size == 0 || size != uint64(len(w.data)) {
		p.fail(s.Name, fmt.Sprintf("the block size, type and shape of a matrix of %d bytes", len(w.data)), fmt.Sprintf("%+v", state))
		return nil
	}
	rows, cols := state.Shape[0], state.Shape[1]
	table, absmax := p.get(p.name+".quant_map", 1, "F32"), p.get(p.name+".absmax", 1, "F32", "U8")
	table.expect(16)
	blocks := (rows*cols + state.Blocksize - 1) / state.Blocksize
	absmax.expect(blocks)
	scales := absmax.floatsOrNil
	if absmax.Type == "U8" {
		if state.NestedBlocksize < 1 {
			p.fail(s.Name, "a nested block size", fmt.Sprint(state.NestedBlocksize))
			return nil
		}
		above, levels := p.get(p.name+".nested_absmax", 1, "F32"), p.get(p.name+".nested_quant_map", 1, "F32")
		levels.expect(256)
		above.expect((blocks + state.NestedBlocksize - 1) / state.NestedBlocksize)
		scales = func() []float32 {
			out, above, levels, offset := make([]float32, blocks), above.floats(), levels.floats(), float32(state.NestedOffset)
			for i, q := range absmax.data {
				product := levels[q] * above[i/state.NestedBlocksize]
				out[i] = float32(product) + offset
			}
			return out
		}
	}
	var values, scale []float32
	return &floats{typ: typ, nrow: rows, ncol: cols, why: "NF4 and FP4 have no kernels here",
		prepare: func() error { values, scale = table.floats(), scales(); return nil },
		row: func(dst []float32, row int) {
			for c := range dst {
				i := row*cols + c
				dst[c] = values[w.data[i/2]>>(4*(1-i%2))&15] * scale[i/state.Blocksize]
			}
		}}
}

// floatsOrNil is floats for tensors that may be of another kind.
func (x part) floatsOrNil() []float32 {
	if _, ok := x.DType(); !ok {
		return nil
	}
	return x.floats()
}

func (m *bitsandbytes) open8(p *parts) unpacker {
	module := strings.TrimSuffix(p.name, ".weight")
	scb, w := p.get(module+".SCB", 1, "F32"), p.get(p.name, 2, "I8")
	scb.expect(w.dim(0))
	if name := module + ".weight_format"; p.has(name) {
		if format := p.get(name, -1, "U8"); len(format.data) != 1 || format.data[0] != 0 {
			p.fail(name, "0 (rows)", fmt.Sprint(format.data[:min(len(format.data), 4)]))
		}
	}
	rows, cols := w.dim(0), w.dim(1)
	var scale []float32
	return &floats{typ: m.dtype, nrow: rows, ncol: cols, why: "the scales of int8 rows are no float16 numbers",
		prepare: func() error { scale = scb.floats(); return nil },
		row: func(dst []float32, row int) {
			for i, q := range w.data[row*cols:][:cols] {
				dst[i] = float32(float32(int8(q))*scale[row]) * float32(7.874015718698502e-3)
			}
		}}
}

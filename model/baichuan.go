package model

import (
	"encoding/binary"
	"fmt"
	"math"

	"ridge/nn"
	"ridge/weights/tensor"
)

// Baichuan 1 and 2: Llama with projections in one matrix. Models of 7B rotate, those
// of 13B have ALiBi. In the second generation the rows of the output matrix are
// divided by their lengths; a GGUF file has them as they are multiplied.
var baichuan = architecture{
	name: "baichuan", hf: []string{"baichuan"}, head: true,
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNorm)
		var alibi bool
		if d.hf {
			size := d.int("", "model_max_length", 0)
			if alibi = !d.has("", "max_position_embeddings"); alibi {
				c.Context = size
			}
			d.note("rope.dimension_count", float64(c.HeadDim), "an integer") // a file has it in either case
			c.UnitOutput = d.has("", "z_loss_weight")
		} else if alibi = c.Layers == 40; !alibi && c.Layers != 32 {
			d.fail("block_count", "32 (7B, rotary) or 40 (13B, ALiBi)", c.Layers)
		}
		if alibi {
			c.RopeStyle, c.AlibiBias = nn.RopeNone, 8
		}
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{
		"attn_q": "self_attn.W_pack", "attn_k": "self_attn.W_pack", "attn_v": "self_attn.W_pack",
	}), fix: func(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error) {
		n := c.Heads * c.HeadDim
		switch part {
		case "attn_q":
			return takeRows(3*n, n, func(i int) int { return halves(i, c.HeadDim) })
		case "attn_k":
			return takeRows(3*n, n, func(i int) int { return n + halves(i, c.HeadDim) })
		case "attn_v":
			return takeRows(3*n, n, func(i int) int { return 2*n + i })
		case "output":
			if c.UnitOutput {
				return unitRows
			}
		}
		return nil
	}},
	build: (*builder).decoder,
}

// unitRows divides each row by its length.
func unitRows(m tensor.Mat) (tensor.Mat, error) {
	if m.Type.BlockSize() != 1 {
		return m, fmt.Errorf("type: expected an unquantized one, found %v", m.Type)
	}
	out := tensor.Mat{Type: tensor.F32, Rows: m.Rows, Cols: m.Cols, Data: make([]byte, 4*m.Rows*m.Cols)}
	x := make([]float32, m.Cols)
	for r := range m.Rows {
		m.DecodeRow(x, r)
		sum := 0.0
		for _, v := range x {
			sum += float64(v) * float64(v)
		}
		length := max(math.Sqrt(sum), 1e-12)
		for i, v := range x {
			binary.LittleEndian.PutUint32(out.Data[4*(r*m.Cols+i):], math.Float32bits(float32(float64(v)/length)))
		}
	}
	return out, nil
}

package model

import (
	"fmt"
	"path/filepath"
	"testing"

	"ridge/kernel"
	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// A file whose rows are halved behind every second layer, as the matrices of later layers
// are, is the same model: norms alone see how large rows are.
func TestHalvedRows(t *testing.T) {
	g := readGolden(t, filepath.Join(tinyModels, "rwkv6"))
	f, err := gguf.Open(filepath.Join(g.dir, "rwkv6.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	path := rewrite(t, t.TempDir(), "rwkv6", func(b *gguf.Builder) {
		b.Set("rwkv6.rescale_every_n_layers", uint32(2))
		for _, part := range []string{"time_mix_output", "channel_mix_value"} {
			name := fmt.Sprintf("blk.2.%s.weight", part)
			m, err := f.Mat(name)
			if err != nil {
				t.Fatal(err)
			}
			x := make([]float32, m.Rows*m.Cols)
			for i := range m.Rows {
				m.DecodeRow(x[i*m.Cols:][:m.Cols], i)
			}
			kernel.Scale(x, 0.5)
			data := make([]byte, 4*len(x))
			if err := tensor.F32.Encode(data, x); err != nil {
				t.Fatal(err)
			}
			b.RemoveTensor(name)
			addFloats(t, b, name, []uint64{uint64(m.Cols), uint64(m.Rows)}, data)
		}
	})
	m := openTiny(t, path, g.Context, Options{KV: tensor.F32, Workers: 1})
	if d, at := g.diff(t, compute(t, m, g.Prompt, len(g.Prompt))); !(d <= logitTolerance) {
		t.Errorf("row %d: logits differ by %v", g.row(at), d)
	}
}

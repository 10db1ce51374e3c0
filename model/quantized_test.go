package model

import (
	"os"
	"path/filepath"
	"testing"

	"ridge/internal/cpu"
	"ridge/weights/tensor"
)

const quantizedModels = "../weights/quantized/testdata"

// Checkpoints that were quantized by the libraries that their methods come from,
// against transformers with the weights that these dequantize: with float32
// activations, which --ref has, logits and greedy tokens agree; with quantized
// activations they are near.
func TestQuantizedCheckpoints(t *testing.T) {
	dirs, err := filepath.Glob(quantizedModels + "/*/golden.json")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no checkpoints: %v", err)
	}
	for _, dir := range dirs {
		dir = filepath.Dir(dir)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			g := readGolden(t, dir)
			for _, c := range []struct {
				tier  cpu.Tier
				act   Act
				bound float64
			}{{cpu.Ref, ActInt8, logitTolerance}, {cpu.Current(), ActInt16, 20 * logitTolerance}, {cpu.Current(), ActInt8, 1}} {
				restore := cpu.Set(c.tier)
				m := openTiny(t, dir, g.Context, Options{KV: tensor.F32, Workers: 2, Act: c.act})
				got := compute(t, m, g.Prompt, len(g.Prompt))
				d, at := g.diff(t, got)
				t.Logf("%v %v: logits differ by at most %.1e", c.tier, c.act, d)
				if !(d <= c.bound) {
					t.Errorf("%v %v: row %d: logits differ by %v", c.tier, c.act, g.row(at), d)
				}
				if c.act == ActInt8 && c.tier != cpu.Ref {
					if one := compute(t, m, g.Prompt, 1); !equalBits(one, got) {
						t.Errorf("%v %v: token by token differs from the whole prompt", c.tier, c.act)
					}
				} else {
					checkGreedy(t, m, g, c.tier.String())
				}
				restore()
			}
		})
	}
}

// The outline of a quantized checkpoint has the types of what is opened.
func TestQuantizedOutline(t *testing.T) {
	dirs, err := os.ReadDir(quantizedModels)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		dir := filepath.Join(quantizedModels, d.Name())
		o, err := ReadOutline(dir)
		if err != nil {
			t.Fatal(err)
		}
		m := openTiny(t, dir, 64, Options{})
		if want, got := m.net.activeBytes(), o.Net.activeBytes(); got != want || o.Parameters != m.Parameters() {
			t.Errorf("%s: outline of %d bytes and %d weights, want %d and %d", d.Name(), got, o.Parameters, want, m.Parameters())
		}
	}
}

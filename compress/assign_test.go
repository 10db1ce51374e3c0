package compress

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// outline is a shape of testdata/types.jsonl.
type outline struct {
	Shape      string
	Arch       string
	Layers     int
	Heads, KV  int
	Experts    int
	Top, Layer map[string][]uint64

	Mixture  string
	Measured bool
	Types    map[string]string
}

// tensors returns a file of the shape's tensors, all zero.
func (o *outline) file(t *testing.T) *gguf.File {
	t.Helper()
	b := gguf.NewBuilder()
	for k, v := range map[string]any{
		"general.architecture": o.Arch, o.Arch + ".block_count": uint32(o.Layers), o.Arch + ".attention.head_count": uint32(o.Heads),
		o.Arch + ".attention.head_count_kv": uint32(o.KV), o.Arch + ".expert_count": uint32(o.Experts),
	} {
		if err := b.Set(k, v); err != nil {
			t.Fatal(err)
		}
	}
	add := func(name string, dims []uint64) {
		typ := tensor.F16
		if len(dims) == 1 {
			typ = tensor.F32
		}
		n := uint64(1)
		for _, d := range dims {
			n *= d
		}
		if err := b.AddTensor(gguf.TensorInfo{Name: name, Type: typ, Dims: dims}, gguf.Bytes(make([]byte, n*uint64(typ.BlockBytes())))); err != nil {
			t.Fatal(err)
		}
	}
	for name, dims := range o.Top {
		add(name, dims)
	}
	for i := o.Layers - 1; i >= 0; i-- { // the order of the file does not matter
		for name, dims := range o.Layer {
			add(fmt.Sprintf("blk.%d.%s", i, name), dims)
		}
	}
	var buf bytes.Buffer
	if _, err := b.WriteTo(&buf); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.OpenBytes(o.Shape, buf.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Every tensor of every shape has the type that llama.cpp's quantizer gives it, in
// every mixture.
func TestTypesAreLlamaCpps(t *testing.T) {
	golden, err := os.Open("testdata/types.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer golden.Close()
	var shape outline
	var file *gguf.File
	cases := 0
	for lines := bufio.NewScanner(golden); lines.Scan(); {
		var o outline
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			t.Fatal(err)
		}
		if o.Shape != "" {
			shape, file = o, o.file(t)
			continue
		}
		cases++
		m, err := ParseMixture(o.Mixture)
		if err != nil {
			t.Fatal(err)
		}
		a := &assigner{m: m, shape: shapeOf(file), tied: true, measured: o.Measured}
		got, err := a.all(file)
		if refused := o.Types == nil; refused != (err != nil) {
			t.Errorf("%s in %s: refused: expected %v, found %v", shape.Shape, o.Mixture, refused, err)
			continue
		}
		for name, types := range o.Types {
			each := strings.Fields(types)
			for i := range shape.Layers {
				full := fmt.Sprintf("blk.%d.%s", i, name)
				if shape.Top[name] != nil {
					full = name
				}
				if want := each[min(i, len(each)-1)]; err == nil && got[full].String() != want {
					t.Errorf("%s in %s, measured %v: %s: expected %s, found %s", shape.Shape, o.Mixture, o.Measured, full, want, got[full])
				}
			}
		}
	}
	if cases != 7*2*len(Mixtures) {
		t.Errorf("cases: expected %d, found %d", 7*2*len(Mixtures), cases)
	}
}

// Overrides come before the mixture, the first that fits before the others.
func TestOverrides(t *testing.T) {
	o := outline{Shape: "x", Arch: "llama", Layers: 2, Heads: 4, KV: 4, Top: map[string][]uint64{"token_embd.weight": {256, 32}, "output.weight": {256, 32}},
		Layer: map[string][]uint64{"attn_v.weight": {256, 64}, "ffn_down.weight": {256, 64}}}
	m, _ := ParseMixture("q4_k")
	q8 := tensor.Q8_0
	p, err := NewPlan(o.file(t), Options{Mixture: m, Embedding: &q8, Overrides: []Override{
		{regexp.MustCompile(`blk\.1\.ffn_down`), tensor.Q6_K}, {regexp.MustCompile("ffn_down"), tensor.Q2_K}, {regexp.MustCompile("output"), tensor.Q5_K}}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]tensor.DType{"token_embd.weight": tensor.Q8_0, "output.weight": tensor.Q5_K, "blk.0.attn_v.weight": tensor.Q4_K, "blk.1.attn_v.weight": tensor.Q6_K,
		"blk.0.ffn_down.weight": tensor.Q2_K, "blk.1.ffn_down.weight": tensor.Q6_K}
	for _, r := range p.Rows {
		if r.To != want[r.Name] {
			t.Errorf("%s: expected %s, found %s", r.Name, want[r.Name], r.To)
		}
	}
}

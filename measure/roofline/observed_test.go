package roofline

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ridge/model"
	"ridge/nn"
	"ridge/weights/tensor"
)

var observations = flag.String("observations", "", "folder of the machines and of what ridge bench -o jsonl printed, from which testdata/observed.json is written anew")

// observed is what testdata/observed.json keeps of models that were measured.
type observed struct {
	FitMachine *Machine  `json:"fit_machine"` // measured just before Fit
	Machine    *Machine  `json:"machine"`     // and before HeldOut
	Models     []outline `json:"models"`
	Fit        []seen    `json:"fit"`      // what the constants were fitted to
	HeldOut    []seen    `json:"held_out"` // what they were not fitted to
}

// outline is what a prediction needs of a model's outline.
type outline struct {
	Arch                                      string
	Hidden, Heads, HeadDim, FFN, Vocab, Layer int
	KVHeads, Window                           []int
	PostNorms                                 bool
	Parameters                                int64
	FileType                                  string
	Matrices                                  []string // "name type rows cols" in order, layers as in "blk.*.attn_q"
	Types                                     []string // of the matrices of all layers, where they differ
}

// seen is one observation.
type seen struct {
	Model            int // among the models
	Work             Work
	Threads          int
	Seconds          float64
	Read, Int, Float float64
}

// Predictions for the saved profile of a machine, and for the rates that it had
// in the same seconds, keep to these errors for models, formats and contexts
// that the constants were not fitted to.
const (
	decodeBound  = 0.15
	prefillBound = 0.25
)

func TestObserved(t *testing.T) {
	o := readObserved(t)
	fit, held := o.all(t, o.Fit), o.all(t, o.HeldOut)
	models, formats, contexts := map[int]bool{}, map[string]bool{}, map[int]bool{}
	cells := map[string]bool{}
	for _, x := range held {
		for _, y := range fit {
			if x.Shape == y.Shape {
				t.Fatalf("%s is among the models that were fitted", x.Shape.Name())
			}
		}
		bound, kind := prefillBound, "pp"
		if x.Work.Gen > 0 {
			bound, kind = decodeBound, "tg"
		}
		saved, adjusted := o.Machine.Error(x, &fitted), o.Machine.During(x).Error(x, &fitted)
		if abs(saved) > bound || abs(adjusted) > bound {
			t.Errorf("%s %v: off by %+.1f%%, adjusted %+.1f%%", x.Shape.Name(), x.Work, 100*saved, 100*adjusted)
		}
		if m := x.Shape.Outline; m.Config.Arch == "llama" {
			models[m.Config.Hidden], formats[m.FileType], contexts[x.Work.Depth] = true, true, true
			cells[fmt.Sprint(m.Config.Hidden, m.FileType, x.Work.Depth, kind)] = true
		}
	}
	if len(models) < 3 || len(formats) < 3 || len(contexts) < 2 || len(cells) < 2*3*3*2 {
		t.Errorf("%d models, %d formats, %d contexts; %d of both kinds in all, want at least 36", len(models), len(formats), len(contexts), len(cells))
	}
}

// The constants are those that fit what they are said to have been fitted to.
func TestConstantsAreFitted(t *testing.T) {
	o := readObserved(t)
	obs := o.all(t, o.Fit)
	loss := func(c *Constants) (sum float64) {
		for _, x := range obs {
			e := o.FitMachine.During(x).Error(x, c)
			sum += e * e
		}
		return sum
	}
	least := loss(&fitted)
	for i, p := range fitted.all() {
		for _, f := range []float64{0.8, 1.25} {
			c := fitted
			q := c.all()[i]
			if *q.value = p.limit(*p.value * f); loss(&c) < 0.9*least {
				t.Errorf("constant %d times %v: %.4f, %.4f with those in use", i, f, loss(&c), least)
			}
		}
	}
}

func readObserved(t *testing.T) *observed {
	t.Helper()
	path := filepath.Join("testdata", "observed.json")
	if *observations != "" {
		writeObserved(t, path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var o observed
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatal(err)
	}
	return &o
}

// all makes observations of list. Those of one model share its shape.
func (o *observed) all(t *testing.T, list []seen) (obs []Observation) {
	t.Helper()
	shapes := map[int]*Shape{}
	for _, s := range list {
		if shapes[s.Model] == nil {
			shape, err := NewShape(o.Models[s.Model].expand(t), tensor.F16)
			if err != nil {
				t.Fatal(err)
			}
			shape.Act = model.ActInt8
			shapes[s.Model] = shape
		}
		obs = append(obs, Observation{shapes[s.Model], s.Work, s.Threads, s.Seconds, s.Read, s.Int, s.Float})
	}
	return obs
}

func (m *outline) expand(t *testing.T) *model.Outline {
	t.Helper()
	o := &model.Outline{Parameters: m.Parameters, FileType: m.FileType, Config: model.Config{
		Arch: m.Arch, Hidden: m.Hidden, Heads: m.Heads, HeadDim: m.HeadDim, FFN: m.FFN, Vocab: m.Vocab, Layers: m.Layer,
		KVHeads: m.KVHeads, Window: m.Window, PostNorms: m.PostNorms,
	}}
	types := m.Types
	mats := map[string]nn.Linear{}
	add := func(line, layer string) {
		var name, typ string
		var rows, cols int
		if _, err := fmt.Sscan(line, &name, &typ, &rows, &cols); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if typ == "*" {
			typ, types = types[0], types[1:]
		}
		d, err := tensor.ParseDType(typ)
		if err != nil {
			t.Fatal(err)
		}
		mats[strings.Replace(name, "*", layer, 1)] = linear(t, d, rows, cols)
	}
	for _, line := range m.Matrices {
		if !strings.HasPrefix(line, "blk.") {
			add(line, "")
		}
	}
	o.Net = &model.Net{Head: model.Head{Out: mats["output"]}}
	if o.Net.Head.Out.W == nil {
		o.Net.Head.Out = mats["token_embd"]
	}
	for i := range m.Layer {
		for _, line := range m.Matrices {
			if strings.HasPrefix(line, "blk.") {
				add(line, fmt.Sprint(i))
			}
		}
		part := func(name string) nn.Linear { return mats[fmt.Sprintf("blk.%d.%s", i, name)] }
		o.Net.Layers = append(o.Net.Layers, model.Layer{
			Mix: &nn.Attention{
				Heads: m.Heads, KVHeads: m.KVHeads[i], HeadDim: m.HeadDim, Window: m.Window[i],
				Q: part("attn_q"), K: part("attn_k"), V: part("attn_v"), Out: part("attn_output"),
			},
			FFN: &nn.MLP{Gated: part("ffn_gate").W != nil, Gate: part("ffn_gate"), Up: part("ffn_up"), Down: part("ffn_down")},
		})
	}
	return o
}

// named gives the matrices of an outline with their names, in the order in which
// they were recorded.
func named(o *model.Outline) (names []string, mats []*nn.Linear) {
	add := func(name string, l *nn.Linear) {
		if l.W != nil {
			names, mats = append(names, name), append(mats, l)
		}
	}
	head := "output"
	if o.Config.Tied {
		head = "token_embd"
	}
	add(head, &o.Net.Head.Out)
	for i := range o.Net.Layers {
		a, mlp := o.Net.Layers[i].Mix.(*nn.Attention), o.Net.Layers[i].FFN.(*nn.MLP)
		for _, x := range []struct {
			name string
			l    *nn.Linear
		}{
			{"attn_q", &a.Q}, {"attn_k", &a.K}, {"attn_v", &a.V}, {"attn_output", &a.Out},
			{"ffn_down", &mlp.Down}, {"ffn_gate", &mlp.Gate}, {"ffn_up", &mlp.Up},
		} {
			add("blk.*."+x.name, x.l)
		}
	}
	return names, mats
}

// shorten is the reverse of expand.
func shorten(o *model.Outline) outline {
	c := &o.Config
	m := outline{
		Arch: c.Arch, Hidden: c.Hidden, Heads: c.Heads, HeadDim: c.HeadDim, FFN: c.FFN, Vocab: c.Vocab, Layer: c.Layers,
		KVHeads: c.KVHeads, Window: c.Window, PostNorms: c.PostNorms, Parameters: o.Parameters, FileType: o.FileType,
	}
	types := map[string]map[tensor.DType]bool{} // by the name in all layers
	names, mats := named(o)
	for i, name := range names {
		if types[name] == nil {
			types[name] = map[tensor.DType]bool{}
		}
		types[name][mats[i].W.Type] = true
	}
	for i, name := range names {
		w := mats[i].W
		typ := w.Type.String()
		if len(types[name]) > 1 {
			m.Types = append(m.Types, typ)
			typ = "*"
		}
		line := fmt.Sprint(name, " ", typ, " ", w.Rows, " ", w.Cols)
		if !slices.Contains(m.Matrices, line) {
			m.Matrices = append(m.Matrices, line)
		}
	}
	return m
}

// writeObserved writes path from fit_machine.json, machine.json, fit.jsonl and
// held.jsonl.
func writeObserved(t *testing.T, path string) {
	t.Helper()
	var o observed
	shapes := map[*Shape]int{}
	file := func(name string) string { return filepath.Join(*observations, name) }
	read := func(name string) (list []seen) {
		obs, _, err := ReadObservations(file(name))
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range obs {
			n, ok := shapes[x.Shape]
			if !ok {
				n = len(o.Models)
				shapes[x.Shape] = n
				m := shorten(x.Shape.Outline)
				if again := shorten(m.expand(t)); !slices.Equal(again.Matrices, m.Matrices) || !slices.Equal(again.Types, m.Types) {
					t.Fatalf("%s: not the same after shortening", x.Shape.Name())
				}
				o.Models = append(o.Models, m)
			}
			list = append(list, seen{n, x.Work, x.Threads, x.Seconds, x.Read, x.Int, x.Float})
		}
		return list
	}
	o.Fit, o.HeldOut = read("fit.jsonl"), read("held.jsonl")
	var err error
	if o.FitMachine, err = LoadMachine(file("machine_fit.json")); err == nil {
		o.Machine, err = LoadMachine(file("machine.json"))
	}
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	line := func(name string, end string, items ...any) { // one item a line
		fmt.Fprintf(&b, " %q: [\n", name)
		for i, x := range items {
			text, err := json.Marshal(x)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "  %s%s\n", text, map[bool]string{true: ",", false: ""}[i < len(items)-1])
		}
		fmt.Fprintf(&b, " ]%s\n", end)
	}
	fit, _ := json.Marshal(o.FitMachine)
	m, _ := json.Marshal(o.Machine)
	fmt.Fprintf(&b, "{\n \"fit_machine\": %s,\n \"machine\": %s,\n", fit, m)
	line("models", ",", anys(o.Models)...)
	line("fit", ",", anys(o.Fit)...)
	line("held_out", "", anys(o.HeldOut)...)
	b.WriteString("}\n")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func anys[T any](x []T) (out []any) {
	for _, v := range x {
		out = append(out, v)
	}
	return out
}

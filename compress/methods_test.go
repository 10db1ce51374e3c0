package compress

import (
	"bytes"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ridge/weights/tensor"
)

// methodsGolden is testdata/methods.json, which gen_methods.py makes.
type methodsGolden struct {
	Rows, Cols, Samples int
	W                   []float32 `json:"w_1024"`
	X                   []float32 `json:"x_16"`
	GPTQ                []struct {
		Type     string
		ActOrder bool `json:"act_order"`
		Bytes    string
	}
	AWQ []struct {
		Type     string
		Exponent int
		Factors  []float32
		Bytes    string
	}
	Smooth    []float32
	HQQ       string
	Reference map[string][]float64
}

func readMethods(t *testing.T) (g methodsGolden, in *Inputs) {
	t.Helper()
	readJSON(t, "testdata/methods.json", &g)
	for i := range g.W {
		g.W[i] /= 1024
	}
	for i := range g.X {
		g.X[i] /= 16
	}
	return g, inputsOf(t, g.X, g.Cols)
}

func inputsOf(t *testing.T, x []float32, cols int) *Inputs {
	t.Helper()
	in := newInputs(cols)
	in.add(len(x)/cols, func(r int) []float32 { return x[r*cols : (r+1)*cols] }, 2)
	if err := in.check(); err != nil {
		t.Fatal(err)
	}
	return in
}

func matrixOf(t *testing.T, w []float32, cols int, typ string) *Matrix {
	t.Helper()
	d, err := tensor.ParseDType(typ)
	if err != nil {
		t.Fatal(err)
	}
	rows := len(w) / cols
	return &Matrix{Name: "w", Rows: rows, Cols: cols, Type: d, W: slices.Clone(w), Out: make([]byte, rows*d.RowBytes(cols))}
}

// Scales and codes are those of an implementation in numpy that solves column by column
// on the inverse itself and computes outputs, whatever the number of threads.
func TestMethodsAgainstNumpy(t *testing.T) {
	g, _ := readMethods(t)
	for _, c := range g.GPTQ {
		for _, threads := range []int{1, 3} {
			m := matrixOf(t, g.W, g.Cols, c.Type)
			note, err := GPTQ{ActOrder: c.ActOrder, Damp: 0.01}.Round(m, inputsOf(t, g.X, g.Cols), threads)
			if err != nil || note != "" {
				t.Fatalf("GPTQ, %s: %q, %v", c.Type, note, err)
			}
			sameBytes(t, "GPTQ "+c.Type, m, c.Bytes)
		}
	}
	for _, c := range g.AWQ {
		m := matrixOf(t, g.W, g.Cols, c.Type)
		norm := matrixOf(t, slices.Repeat([]float32{1}, g.Cols), g.Cols, "F32")
		s := &Site{Mats: []*Matrix{m}, Inputs: inputsOf(t, g.X, g.Cols), before: &before{n: g.Cols, index: func(c int) int { return c }, numbers: []*Matrix{norm}}}
		l := &Layer{Sites: []*Site{s}, threads: 2}
		if err := (AWQ{}).Transform(l); err != nil {
			t.Fatal(err)
		}
		if _, err := (AWQ{}).Round(m, s.Inputs, 2); err != nil {
			t.Fatal(err)
		}
		for i, f := range c.Factors {
			if norm.W[i] != 1/f {
				t.Errorf("AWQ %s, exponent %d (%s here): column %d: expected a factor of %v, found %v", c.Type, c.Exponent, s.note, i, f, 1/norm.W[i])
				break
			}
		}
		sameBytes(t, "AWQ "+c.Type, m, c.Bytes)
	}
}

// The same for those that need no text or that no format holds.
func TestOtherMethodsAgainstNumpy(t *testing.T) {
	g, in := readMethods(t)
	m := matrixOf(t, g.W, g.Cols, "Q4_1")
	if note, err := (HQQ{}).Round(m, in, 3); err != nil || note != "" {
		t.Fatal(note, err)
	}
	sameBytes(t, "HQQ", m, g.HQQ)

	norm := matrixOf(t, slices.Repeat([]float32{1}, g.Cols), g.Cols, "F32")
	s := &Site{Mats: []*Matrix{m}, Inputs: in, before: &before{n: g.Cols, index: func(c int) int { return c }, numbers: []*Matrix{norm}}}
	if err := (SmoothQuant{Strength: 0.5}).Transform(&Layer{Sites: []*Site{s}, threads: 1}); err != nil {
		t.Fatal(err)
	}
	for c, f := range g.Smooth {
		if got := 1 / norm.W[c]; math.Abs(float64(got/f-1)) > 1e-6 {
			t.Errorf("SmoothQuant: column %d: expected a factor of %v, found %v", c, f, got)
		}
	}

	_, in = readMethods(t)
	grid := Affine{Bits: 3, Group: 32}
	for _, p := range []Pass{ReferenceGPTQ{grid, 0.01}, OWQ{grid, 0.04, 0.01}, SpQR{grid, 0.02, 0.01}, SqueezeLLM{3, 0.01}} {
		want := g.Reference[p.Name()]
		if len(want) != len(g.W) {
			t.Fatalf("%s: expected %d values in the golden, found %d", p.Name(), len(g.W), len(want))
		}
		for _, threads := range []int{1, 3} {
			m := matrixOf(t, g.W, g.Cols, "F32")
			if note, err := p.Round(m, in, threads); err != nil || note != "" {
				t.Fatal(p.Name(), note, err)
			}
			got := make([]float32, len(want))
			m.Type.Decode(got, m.Out)
			for i, v := range want {
				if math.Abs(v-float64(got[i])) > 2e-6*max(1, math.Abs(v)) {
					t.Fatalf("%s: row %d, column %d: expected %v, found %v", p.Name(), i/g.Cols, i%g.Cols, v, got[i])
				}
			}
			if m.bytes <= len(g.W)*3/8 || m.bytes >= len(g.W)*5/8*3/2 {
				t.Errorf("%s: expected bytes of three bits and what is beside them, found %d for %d weights", p.Name(), m.bytes, len(g.W))
			}
		}
		if _, err := p.Round(matrixOf(t, g.W, g.Cols, "Q4_1"), in, 1); err == nil || !strings.Contains(err.Error(), "F32") {
			t.Errorf("%s into Q4_1: expected an error that says F32, found %v", p.Name(), err)
		}
	}
}

func sameBytes(t *testing.T, what string, m *Matrix, want string) {
	t.Helper()
	b, err := hex.DecodeString(want)
	if err != nil || len(b) != len(m.Out) {
		t.Fatalf("%s: expected %d bytes, found %d (%v)", what, len(b), len(m.Out), err)
	}
	for i := range b {
		if b[i] != m.Out[i] {
			size := m.Type.RowBytes(m.Cols)
			t.Errorf("%s: row %d, byte %d: expected %#x, found %#x", what, i/size, i%size, b[i], m.Out[i])
			return
		}
	}
}

// In every grid of K-quants and blocks of 32, codes that are put are read back, and
// what the encoder chose is near what nearest chooses.
func TestGrids(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, typ := range grids {
		g := gridOf(typ)
		x, y, low, step := make([]float32, g.n), make([]float32, g.n), make([]float32, g.n), make([]float32, g.n)
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		block := make([]byte, g.bytes)
		if err := typ.Encode(block, x); err != nil {
			t.Fatal(err)
		}
		whole := slices.Clone(block)
		typ.Decode(y, block)
		g.params(block, low, step)
		for i := range x {
			if want := map[tensor.DType]int{tensor.Q8_0: 255, tensor.Q2_K: 3, tensor.Q3_K: 7, tensor.Q6_K: 63}[typ]; want != 0 && g.highest(i) != want {
				t.Fatalf("%s: highest code of value %d: expected %d, found %d", typ, i, want, g.highest(i))
			}
			g.put(block, i, g.nearest(i, float64(y[i]), low[i], step[i]))
		}
		if !bytes.Equal(block, whole) {
			t.Errorf("%s: the encoder's values, put as codes, are other bytes", typ)
		}
	}
	if gridOf(tensor.IQ4_NL) != nil || gridOf(tensor.MXFP4) != nil {
		t.Error("uneven steps: expected no grid")
	}
}

// GPTQ changes the outputs less than plain rounding in every grid, with columns in
// either order.
func TestGPTQLowersOutputError(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 8))
	const rows, cols, samples = 8, 256, 400
	w, x, mix := make([]float32, rows*cols), make([]float32, samples*cols), make([]float64, 40*cols)
	for i := range w {
		w[i] = float32(rng.NormFloat64()) / 16
	}
	for i := range mix {
		mix[i] = rng.NormFloat64()
	}
	for r := range samples {
		for k := range 40 {
			h := rng.NormFloat64()
			for c := range cols {
				x[r*cols+c] += float32(h * mix[k*cols+c])
			}
		}
		for c := range cols {
			x[r*cols+c] += float32(rng.NormFloat64())
		}
	}
	in := inputsOf(t, x, cols)
	for _, typ := range []string{"Q2_K", "Q3_K", "Q4_0", "Q4_K", "Q6_K", "Q8_0"} {
		m := matrixOf(t, w, cols, typ)
		if err := m.plain(2); err != nil {
			t.Fatal(err)
		}
		plain := m.lost(in, rows, 2)
		for _, order := range []bool{false, true} {
			if _, err := (GPTQ{ActOrder: order, Damp: 0.01}).Round(m, in, 2); err != nil {
				t.Fatal(err)
			}
			if got := m.lost(in, rows, 2); got > 0.7*plain {
				t.Errorf("%s, act-order %v: expected much less than %v, found %v", typ, order, plain, got)
			}
		}
	}
}

// Fewer rows than columns, columns that are equal or that meet nothing, and inputs that
// are all zero give a damped solution that is said to be one; NaN is an error.
func TestSingularInputs(t *testing.T) {
	g, in := readMethods(t)
	few := inputsOf(t, g.X[:5*g.Cols], g.Cols)
	for name, c := range map[string]struct {
		in   *Inputs
		damp float64
		note string
	}{
		"few rows":            {few, 0, "singular: damped by 0.0001"},
		"few rows, damped":    {few, 0.01, "5 rows for 96 columns"},
		"nothing":             {inputsOf(t, make([]float32, 200*g.Cols), g.Cols), 0, ""},
		"a column of nothing": {in, 0, ""},
	} {
		m := matrixOf(t, g.W, g.Cols, "Q4_1")
		note, err := GPTQ{Damp: c.damp}.Round(m, c.in, 1)
		if err != nil || !strings.HasPrefix(note, c.note) || c.note == "" && note != "" {
			t.Errorf("%s: expected a note %q, found %q, %v", name, c.note, note, err)
		}
		x := make([]float32, g.Cols)
		m.Type.Decode(x, m.Out[:m.Type.RowBytes(g.Cols)])
		for i, v := range x {
			if math.Abs(float64(v-g.W[i])) > 4 {
				t.Errorf("%s: column %d: expected about %v, found %v", name, i, g.W[i], v)
			}
		}
	}
	bad := newInputs(2)
	bad.add(1, func(int) []float32 { return []float32{1, float32(math.NaN())} }, 1)
	if err := bad.check(); err == nil || !strings.Contains(err.Error(), "column 1") {
		t.Errorf("NaN: expected an error that names the column, found %v", err)
	}
}

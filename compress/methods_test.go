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
	// Bytes by type.
	Clip, QuantEase, SignRound map[string]string
	QuIP                       struct {
		Left, Right [2][]int // order and signs
		Values      []float64
	}
	Absmean []float64
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
	grid := affine{Bits: 3, Group: 32}
	for _, p := range []Pass{
		referenceGPTQ{grid, 0.01}, owq{grid, 0.04, 0.01}, spqr{grid, 0.02, 0.01}, squeezeLLM{3, 0.01},
		obq{Grid: grid, Damp: 0.01}, lorc{referenceRTN{grid}, 3}, nf4{}, nf4{Double: true},
	} {
		want := g.Reference[p.Name()]
		if len(want) != len(g.W) {
			t.Fatalf("%s: expected %d values in the golden, found %d", p.Name(), len(g.W), len(want))
		}
		for _, threads := range []int{1, 3} {
			m := matrixOf(t, g.W, g.Cols, "F32")
			if note, err := p.Round(m, in, threads); err != nil || note != "" {
				t.Fatal(p.Name(), note, err)
			}
			sameValues(t, p.Name(), m, want)
			if m.bytes <= len(g.W)*3/8 || m.bytes >= len(g.W)*5/4 {
				t.Errorf("%s: expected bytes of three or four bits and what is beside them, found %d for %d weights", p.Name(), m.bytes, len(g.W))
			}
		}
		if _, err := p.Round(matrixOf(t, g.W, g.Cols, "Q4_1"), in, 1); err == nil || !strings.Contains(err.Error(), "F32") {
			t.Errorf("%s into Q4_1: expected an error that says F32, found %v", p.Name(), err)
		}
	}
}

// The same for those that choose codes in the grid of a format.
func TestCodesAgainstNumpy(t *testing.T) {
	g, in := readMethods(t)
	for _, c := range []struct {
		pass Pass
		want map[string]string
	}{{clip{}, g.Clip}, {quantEase{Sweeps: 20, Damp: 0.01}, g.QuantEase}, {signRound{Turns: 200}, g.SignRound}} {
		if len(c.want) != 2 {
			t.Fatalf("%s: expected two types in the golden, found %d", c.pass.Name(), len(c.want))
		}
		for typ, want := range c.want {
			for _, threads := range []int{1, 3} {
				m := matrixOf(t, g.W, g.Cols, typ)
				if note, err := c.pass.Round(m, in, threads); err != nil || note != "" {
					t.Fatal(c.pass.Name(), note, err)
				}
				sameBytes(t, c.pass.Name()+" "+typ, m, want)
			}
		}
	}

	m := matrixOf(t, g.W[:1024], 256, "TQ2_0")
	if note, err := (absmean{}).Round(m, nil, 2); err != nil || note != "" {
		t.Fatal(note, err)
	}
	sameValues(t, "absmean", m, g.Absmean)
}

// QuIP with the turns of the golden, which dense matrices make there.
func TestQuIPAgainstNumpy(t *testing.T) {
	g, in := readMethods(t)
	turn := func(made [2][]int) *rotation {
		r := randomRotation(len(made[0]), rand.New(rand.NewPCG(1, 1)))
		copy(r.order, made[0])
		for i, v := range made[1] {
			r.sign[i] = float32(v)
		}
		return r
	}
	for _, threads := range []int{1, 3} {
		m := matrixOf(t, g.W, g.Cols, "F32")
		if note, err := (quip{Bits: 2, Damp: 0.01}).solve(m, in, turn(g.QuIP.Left), turn(g.QuIP.Right), threads); err != nil || note != "" {
			t.Fatal(note, err)
		}
		sameValues(t, "quip", m, g.QuIP.Values)
	}
}

// OBQ in the order of columns is GPTQ with steps fitted before. Left to choose it takes
// another order, in which GPTQ's rounding gives what OBQ gave.
func TestOBQIsGPTQ(t *testing.T) {
	g, in := readMethods(t)
	grid, n := affine{Bits: 3, Group: 32}, g.Cols
	inverse := make([]float64, n*n)
	u, _, err := in.inverseFactor(inOrderOf(n), 0.01, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		for j := range n {
			for k := range min(i, j) + 1 {
				inverse[i*n+j] += u.row(k)[i-k] * u.row(k)[j-k]
			}
		}
	}
	for _, ordered := range []bool{true, false} {
		p := obq{Grid: grid, Damp: 0.01, Ordered: ordered}
		for r := range g.Rows {
			w, x := make([]float64, n), make([]float64, n)
			for c, v := range g.W[r*n : (r+1)*n] {
				w[c] = float64(v)
			}
			low, step := grid.early(w)
			got := slices.Clone(w)
			order := p.row(got, inverse)
			if slices.IsSorted(order) != ordered {
				t.Fatalf("row %d, ordered %v: found the order %v", r, ordered, order)
			}
			u, _, err := in.inverseFactor(order, 0.01, 1)
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range order {
				x[i] = w[c]
			}
			feed(x, u, func(i int, v float64) float64 { return grid.nearest(v, low[order[i]], step[order[i]]) })
			for i, c := range order {
				if math.Abs(x[i]-got[c]) > 1e-9 {
					t.Fatalf("row %d, column %d, ordered %v: expected %v as of GPTQ, found %v", r, c, ordered, x[i], got[c])
				}
			}
		}
	}
}

// The values of NF4 are the published ones. On normal weights they are nearer than even
// steps up to the same magnitude (steps between the least and the largest are nearer still),
// and bytes for magnitudes save 0.37 bits a weight, for next to nothing.
func TestNF4(t *testing.T) {
	want := []float64{
		-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0,
		0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1,
	}
	for i, v := range want {
		if math.Abs(v-nf4Values[i]) > 1e-6 {
			t.Errorf("value %d: expected %v, found %v", i, v, nf4Values[i])
		}
	}
	rng := rand.New(rand.NewPCG(4, 4))
	w := make([]float32, 64*1024)
	for i := range w {
		w[i] = float32(rng.NormFloat64())
	}
	square := func(p Pass, cols int) (sum float64, bytes int) {
		m := matrixOf(t, w, cols, "F32")
		if _, err := p.Round(m, nil, 2); err != nil {
			t.Fatal(err)
		}
		for i, v := range w {
			d := m.float(i) - float64(v)
			sum += d * d / float64(len(w))
		}
		return sum, m.bytes
	}
	even, _ := square(perRow{Bits: 4}, 64)
	between, _ := square(referenceRTN{affine{Bits: 4, Group: 64}}, 64)
	one, bytes := square(nf4{}, 1024)
	double, fewer := square(nf4{Double: true}, 1024)
	saved := 8 * float64(bytes-fewer) / float64(len(w))
	t.Logf("mean squares: even steps %.5f, from least to largest %.5f, NF4 %.5f, doubly %.5f with %.3f bits less", even, between, one, double, saved)
	if one > 0.95*even || double > 1.01*one || math.Abs(saved-0.373) > 0.001 {
		t.Errorf("expected less than %v of even steps, and 0.373 bits saved for a hundredth more, found %v, %v and %.3f bits", even, one, double, saved)
	}
}

// Each sweep of QuantEase over GPTQ's codes lowers the error of the outputs, until nothing
// moves any more.
func TestQuantEaseLowersErrorEachSweep(t *testing.T) {
	g, in := readMethods(t)
	m := matrixOf(t, g.W, g.Cols, "Q4_0")
	if _, err := (GPTQ{Damp: 0.01}).Round(m, in, 1); err != nil {
		t.Fatal(err)
	}
	h, sweeps := in.square(0.01), 0
	for r := range m.Rows {
		c := newCoded(m, r, gridOf(m.Type), h)
		for before := c.loss(); c.sweep(); sweeps++ {
			after := c.loss()
			if after >= before || sweeps > 100*m.Rows {
				t.Fatalf("row %d, sweep %d: expected less than %v, found %v", r, sweeps, before, after)
			}
			before = after
		}
	}
	if sweeps < m.Rows {
		t.Errorf("expected codes to move in most of %d rows, found %d sweeps", m.Rows, sweeps)
	}
}

func sameValues(t *testing.T, what string, m *Matrix, want []float64) {
	t.Helper()
	if len(want) != m.Rows*m.Cols {
		t.Fatalf("%s: expected %d values in the golden, found %d", what, m.Rows*m.Cols, len(want))
	}
	got := make([]float32, len(want))
	m.Type.Decode(got, m.Out)
	for i, v := range want {
		if math.Abs(v-float64(got[i])) > 2e-6*max(1, math.Abs(v)) {
			t.Fatalf("%s: row %d, column %d: expected %v, found %v", what, i/m.Cols, i%m.Cols, v, got[i])
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
// either order; so do signed gradients, clipping, and QuantEase's sweeps after GPTQ.
func TestMethodsLowerOutputError(t *testing.T) {
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
		lost := func(p Pass) float64 {
			if _, err := p.Round(m, in, 2); err != nil {
				t.Fatal(err)
			}
			return m.lost(in, rows, 2)
		}
		gptq := lost(GPTQ{Damp: 0.01})
		for _, c := range []struct {
			pass Pass
			most float64
		}{{GPTQ{ActOrder: true, Damp: 0.01}, 0.7 * plain}, {signRound{Turns: 100}, 0.8 * plain}, {clip{}, plain}, {quantEase{Sweeps: 1, Damp: 0.01}, gptq}} {
			if got := lost(c.pass); got > c.most {
				t.Errorf("%s, %s %s: expected at most %v, found %v", typ, c.pass.Name(), c.pass.Settings(), c.most, got)
			}
		}
		// Each sweep lowers the error of the outputs further.
		more := lost(quantEase{Sweeps: 20, Damp: 0.01})
		t.Logf("%s: plain %.5f, GPTQ %.5f, QuantEase %.5f", typ, plain, gptq, more)
		if gptq > 0.7*plain || more > gptq {
			t.Errorf("%s: expected gptq much below %v, and quantease below that, found %v and %v", typ, plain, gptq, more)
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

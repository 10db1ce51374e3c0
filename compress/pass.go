package compress

import (
	"errors"
	"fmt"
	"strings"

	"ridge/weights/tensor"
)

// Pass is a method that rounds the matrices of a model, layer after layer, with what
// their inputs are on a calibration text. It keeps element types: files of all methods
// have the same size, and every kernel that runs a type runs them.
type Pass interface {
	// Name is that of the method, Settings its choices; both are written into the file.
	Name() string
	Settings() string
	// Transform may change the weights of a layer in ways that leave what the float
	// model computes as it is.
	Transform(l *Layer) error
	// Round encodes m, whose inputs are in, into m.Out. The number of threads changes
	// no byte. The note, if not empty, says what was out of the ordinary.
	Round(m *Matrix, in *Inputs, threads int) (note string, err error)
}

// RTN rounds each weight to the nearest value of its block's grid, as the format's
// encoder does.
type RTN struct{}

func (RTN) Name() string { return "rtn" }

func (RTN) Settings() string { return "" }

// Transform implements Pass: nothing changes.
func (RTN) Transform(*Layer) error { return nil }

// Round implements Pass.
func (RTN) Round(m *Matrix, _ *Inputs, threads int) (string, error) { return "", m.plain(threads) }

// Then changes layers as the first pass does and rounds them as the last.
type Then struct{ First, Last Pass }

func (p Then) Name() string { return p.First.Name() + "+" + p.Last.Name() }

func (p Then) Settings() string { return p.First.Settings() + "; " + p.Last.Settings() }

// Transform implements Pass.
func (p Then) Transform(l *Layer) error {
	if err := p.First.Transform(l); err != nil {
		return err
	}
	return p.Last.Transform(l)
}

// Round implements Pass.
func (p Then) Round(m *Matrix, in *Inputs, threads int) (string, error) {
	return p.Last.Round(m, in, threads)
}

// ParsePass returns the method of a name: rtn, gptq, quantease, signround, awq, clip,
// smoothquant, hqq, absmean, or two of them with a plus sign between, the first of
// which changes layers and the second of which rounds.
func ParsePass(name string, actOrder bool, damp float64) (Pass, error) {
	if first, last, ok := strings.Cut(name, "+"); ok {
		var p Then
		var err error
		if p.First, err = ParsePass(first, actOrder, damp); err == nil {
			p.Last, err = ParsePass(last, actOrder, damp)
		}
		return p, err
	}
	if !(damp >= 0 && damp < 1e3) {
		return nil, fmt.Errorf("compress: damping: expected 0 to 1000, found %v", damp)
	}
	switch name {
	case "rtn":
		return RTN{}, nil
	case "gptq":
		return GPTQ{ActOrder: actOrder, Damp: damp}, nil
	case "awq":
		return AWQ{}, nil
	case "smoothquant":
		return SmoothQuant{Strength: 0.5}, nil
	case "hqq":
		return HQQ{}, nil
	case "clip":
		return clip{}, nil
	case "quantease":
		return quantEase{Sweeps: 20, Damp: damp}, nil
	case "signround":
		return signRound{Turns: 200}, nil
	case "absmean":
		return absmean{}, nil
	}
	return nil, fmt.Errorf("compress: method %q: unknown, expected rtn, gptq, awq, quantease, signround, clip, smoothquant, hqq, absmean or two of them as in awq+clip", name)
}

// Layer is what a Pass sees at a time.
type Layer struct {
	Index   int
	Sites   []*Site
	threads int
	vectors map[string]*Matrix // numbers that a Transform may change
}

// Site is the matrices of a layer that read the same rows.
type Site struct {
	Mats   []*Matrix
	Inputs *Inputs

	before *before // nil if nothing in front can be divided
	note   string
}

// Matrix is a weight matrix in floats, or a vector as one row.
type Matrix struct {
	Name       string
	Rows, Cols int
	W          []float32    // [Rows][Cols]
	Type       tensor.DType // it becomes
	Out        []byte       // encoded

	importance []float32 // of the columns, for the encoder; nil for none
	changed    bool
	bytes      int // that a reference counts; 0 for those of Out
}

func (m *Matrix) row(r int) []float32 { return m.W[r*m.Cols : (r+1)*m.Cols] }

// block returns the bytes of the block of row r that begins in column at.
func (m *Matrix) block(r, at int, g *grid) []byte {
	i := (r*m.Cols + at) / g.n * g.bytes
	return m.Out[i : i+g.bytes]
}

// encode encodes the values of a row from column at on.
func (m *Matrix) encode(dst []byte, x []float32, at int) error {
	if m.importance == nil {
		return m.Type.Encode(dst, x)
	}
	return m.Type.EncodeWeighted(dst, x, m.importance[at:at+len(x)])
}

// plain lets the format's encoder encode all rows.
func (m *Matrix) plain(threads int) error {
	size := m.Type.RowBytes(m.Cols)
	errs := make([]error, m.Rows)
	parallel(m.Rows, threads, func(r int) {
		if err := m.encode(m.Out[r*size:(r+1)*size], m.row(r), 0); err != nil {
			errs[r] = fmt.Errorf("row %d: %w", r, err)
		}
	})
	return errors.Join(errs...)
}

// outputError returns the squares of what plain rounding, after the columns were
// multiplied by factors, changes of the outputs, over at most so many rows, evenly
// spread.
func (m *Matrix) outputError(in *Inputs, factors []float32, most, threads int) (float64, error) {
	rows := min(m.Rows, most)
	parts, errs := make([]float64, rows), make([]error, rows)
	parallel(rows, threads, func(i int) {
		r := i * m.Rows / rows
		x, d, out := make([]float32, m.Cols), make([]float64, m.Cols), make([]byte, m.Type.RowBytes(m.Cols))
		for c, v := range m.row(r) {
			x[c] = v * factors[c]
		}
		if errs[i] = m.encode(out, x, 0); errs[i] != nil {
			return
		}
		m.Type.Decode(x, out)
		for c, v := range m.row(r) {
			d[c] = float64(x[c])/float64(factors[c]) - float64(v)
		}
		parts[i] = in.energy(d)
	})
	sum := 0.0
	for _, p := range parts {
		sum += p
	}
	return sum, errors.Join(errs...)
}

// lost returns what share of the outputs' squares Out changes, over at most so many rows.
func (m *Matrix) lost(in *Inputs, most, threads int) float64 {
	rows, size := min(m.Rows, most), m.Type.RowBytes(m.Cols)
	parts, wholes := make([]float64, rows), make([]float64, rows)
	parallel(rows, threads, func(i int) {
		r := i * m.Rows / rows
		x, d := make([]float32, m.Cols), make([]float64, m.Cols)
		m.Type.Decode(x, m.Out[r*size:(r+1)*size])
		for c, v := range m.row(r) {
			d[c] = float64(v)
		}
		wholes[i] = in.energy(d)
		for c := range d {
			d[c] -= float64(x[c])
		}
		parts[i] = in.energy(d)
	})
	part, whole := 0.0, 0.0
	for i := range parts {
		part, whole = part+parts[i], whole+wholes[i]
	}
	if whole == 0 {
		return 0
	}
	return part / whole
}

package compress

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"ridge/model"
	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// Method is how the matrices of layers are rounded, if not by the formats' encoders
// alone.
type Method struct {
	Pass Pass
	// Model is the model of the file, which computes Tokens, Chunk at a time as
	// sequences of their own. What layers read is what the float model computes. It
	// may be nil for RTN.
	Model  *model.Model
	Tokens []int32
	Chunk  int
	// Dataset names the text.
	Dataset string
	// Scratch is a folder for a file with the rows between two layers, which are held
	// in memory if it is "".
	Scratch string
	// Keep is a folder for finished layers, which are not computed again by a run that
	// comes after one that was ended; "" keeps none. It is removed with the end of the
	// last.
	Keep string
	// Report, if not nil, is told what became of each matrix.
	Report func(Rounded)
}

// Rounded says what became of a matrix.
type Rounded struct {
	Name string
	Type tensor.DType
	// Lost is the share of the squares of its outputs on the calibration text that
	// rounding changed, over at most 64 of its rows; Plain is that of the format's
	// encoder alone.
	Lost, Plain float64
	// Bytes is what the matrix takes; of a reference method, what it would take.
	Bytes int
	// Note says what was out of the ordinary, "" for nothing.
	Note string
}

// check reports what is wrong with m for file f.
func (m *Method) check() error {
	if _, ok := m.Pass.(RTN); ok && m.Model == nil {
		return nil
	}
	switch {
	case m.Model == nil:
		return fmt.Errorf("compress: method %s: expected a calibration text and a model that computes it, found none", m.Pass.Name())
	case m.Chunk < 16 || len(m.Tokens) < m.Chunk:
		return fmt.Errorf("compress: calibration: expected a text of at least one chunk of %d tokens (16 at least), found %d", max(m.Chunk, 16), len(m.Tokens))
	}
	return nil
}

// provenance is a key of the file, behind ridge.quantize, that tells how it came to be.
type provenance struct {
	key   string
	value any
}

// provenance returns the keys that tell how the file comes to be.
func (m *Method) provenance(f *gguf.File) []provenance {
	base, text := sha256.New(), sha256.New()
	for _, t := range f.Tensors() {
		io.WriteString(base, t.Name)
		base.Write(f.Data(t))
		f.Release(f.Data(t))
	}
	binary.Write(text, binary.LittleEndian, m.Tokens)
	set := []provenance{
		{"method", m.Pass.Name()},
		{"settings", m.Pass.Settings()},
		{"base.sha256", hex.EncodeToString(base.Sum(nil))},
	}
	if m.Model != nil {
		set = append(set, []provenance{
			{"calibration.dataset", m.Dataset},
			{"calibration.sha256", hex.EncodeToString(text.Sum(nil))},
			{"calibration.tokens", uint32(len(m.Tokens) / m.Chunk * m.Chunk)},
			{"calibration.chunk", uint32(m.Chunk)},
		}...)
	}
	return set
}

// layerRun computes the tensors of layers, one layer at a time.
type layerRun struct {
	ctx    context.Context
	p      *Plan
	m      *Method
	keep   *keptLayers // nil for none
	taps   *model.Taps // nil: they begin again
	inputs map[int][]siteInputs
	layer  int               // whose tensors are in bytes, -1 for none
	bytes  map[string][]byte // of the tensors that the method wrote
}

// siteInputs is what matrices read that are called so within a layer.
type siteInputs struct {
	parts []string
	in    *Inputs
}

// layerTensor writes a tensor of a layer: what the method made of it, or else what its
// encoder does.
type layerTensor struct {
	run     *layerRun
	name    string
	encoder *encoder
}

// WriteTo implements io.WriterTo.
func (t *layerTensor) WriteTo(w io.Writer) (int64, error) {
	if err := t.run.compute(layerOf(t.name)); err != nil {
		return 0, err
	}
	b, ok := t.run.bytes[t.name]
	if !ok {
		return t.encoder.WriteTo(w)
	}
	n, err := w.Write(b)
	t.encoder.report(int64(t.encoder.row.Bytes))
	return int64(n), err
}

// reportRows bounds how many rows of a matrix reports look at.
const reportRows = 64

// heldProducts bounds the bytes of sums of products of layers that are computed
// together; those of one layer are always held.
const heldProducts = 512 << 20

// collect has the texts computed up to a layer, and adds up what this one reads, and
// those behind it that are computed with it.
func (r *layerRun) collect(layer int) error {
	for {
		if r.taps == nil {
			if err := r.begin(); err != nil {
				return err
			}
		}
		_, end := r.taps.Layers()
		r.inputs = map[int][]siteInputs{}
		last := layer
		if layer < end {
			last = r.held(layer, end)
		}
		for l := layer; l < last; l++ {
			r.inputs[l] = nil
		}
		more, err := r.taps.Next(r.ctx, r.look)
		if err == nil && (!more || layer < end && last < end) {
			err = r.close()
		}
		if err != nil || layer < end {
			return errors.Join(err, r.check())
		}
	}
}

// begin begins with the calibration text.
func (r *layerRun) begin() (err error) {
	var texts [][]int32
	for at := 0; at+r.m.Chunk <= len(r.m.Tokens); at += r.m.Chunk {
		texts = append(texts, r.m.Tokens[at:at+r.m.Chunk])
	}
	r.taps, err = r.m.Model.Tap(texts, r.m.Scratch)
	return err
}

// close ends the computation of the texts.
func (r *layerRun) close() error {
	if r.taps == nil {
		return nil
	}
	defer func() { r.taps = nil }()
	return r.taps.Close()
}

// held returns the layer before which the sums of products of layers from first to
// before end have no room any more.
func (r *layerRun) held(first, end int) int {
	for layer, bytes := first, 0; layer < end; layer++ {
		if bytes += r.products(layer); layer > first && bytes > heldProducts {
			return layer
		}
	}
	return end
}

// products returns the bytes of the sums of products of a layer.
func (r *layerRun) products(layer int) int {
	bytes, widths := 0, map[uint64]bool{}
	for _, row := range r.p.Rows {
		if layerOf(row.Name) == layer && len(row.Dims) == 2 && !widths[row.Dims[0]] {
			widths[row.Dims[0]] = true
			bytes += int(row.Dims[0]*row.Dims[0]) * 4 * 3
		}
	}
	return bytes
}

// look adds what the matrices of a layer read, if it is collected.
func (r *layerRun) look(layer int, parts []string, n int, row func(int) []float32) {
	sites, ok := r.inputs[layer]
	if !ok {
		return
	}
	for _, s := range sites {
		if s.parts[0] == parts[0] {
			s.in.add(n, row, r.p.o.Threads)
			return
		}
	}
	s := siteInputs{parts, newInputs(len(row(0)))}
	s.in.add(n, row, r.p.o.Threads)
	r.inputs[layer] = append(sites, s)
}

// check reports sums that are no numbers.
func (r *layerRun) check() error {
	for layer, sites := range r.inputs {
		for _, s := range sites {
			if err := s.in.check(); err != nil {
				return fmt.Errorf("compress: %s: layer %d, %s: %w", r.p.f.Name(), layer, s.parts[0], err)
			}
		}
	}
	return nil
}

// compute fills r.bytes with the tensors of a layer.
func (r *layerRun) compute(layer int) error {
	if r.layer == layer {
		return nil
	}
	if found, err := r.kept(layer); found || err != nil {
		return err
	}
	if _, ok := r.inputs[layer]; !ok {
		if err := r.collect(layer); err != nil {
			return err
		}
	}
	l, err := r.load(layer)
	if err != nil {
		return err
	}
	r.layer, r.bytes = layer, map[string][]byte{}
	delete(r.inputs, layer)
	fail := func(m *Matrix, err error) error {
		r.layer = -1
		return fmt.Errorf("compress: %s: tensor %q: %w", r.p.f.Name(), m.Name, err)
	}
	plain, rounded := map[*Matrix]float64{}, []Rounded(nil)
	for _, s := range l.Sites {
		for _, m := range s.Mats {
			if r.m.Report != nil {
				if err := m.plain(l.threads); err != nil {
					return fail(m, err)
				}
				plain[m] = m.lost(s.Inputs, reportRows, l.threads)
			}
		}
	}
	if err := r.m.Pass.Transform(l); err != nil {
		r.layer = -1
		return fmt.Errorf("compress: %s: %w", r.p.f.Name(), err)
	}
	for _, s := range l.Sites {
		for _, m := range s.Mats {
			if err := r.ctx.Err(); err != nil {
				r.layer = -1
				return err
			}
			note, err := r.m.Pass.Round(m, s.Inputs, l.threads)
			if err != nil {
				return fail(m, err)
			}
			if note == "" {
				note = s.note
			}
			r.bytes[m.Name] = m.Out
			if r.m.Report != nil {
				rounded = append(rounded, Rounded{m.Name, m.Type, m.lost(s.Inputs, reportRows, l.threads), plain[m], cmp.Or(m.bytes, len(m.Out)), note})
				r.m.Report(rounded[len(rounded)-1])
			}
			m.W = nil
		}
		s.Inputs.forget()
	}
	for _, v := range l.vectors {
		if v.changed {
			if err := v.plain(1); err != nil {
				return fail(v, err)
			}
			r.bytes[v.Name] = v.Out
		}
	}
	if r.keep != nil {
		return r.keep.save(layer, r.bytes, rounded)
	}
	return nil
}

// kept fills r.bytes with what was kept of a layer, if anything was.
func (r *layerRun) kept(layer int) (found bool, err error) {
	if r.keep == nil {
		return false, nil
	}
	tensors, rounded, err := r.keep.load(layer)
	if err != nil || tensors == nil {
		return false, err
	}
	for _, x := range rounded {
		if r.m.Report != nil {
			r.m.Report(x)
		}
	}
	r.layer, r.bytes = layer, tensors
	return true, nil
}

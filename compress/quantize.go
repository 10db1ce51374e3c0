package compress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// Options are the choices of NewPlan and of Plan.Write.
type Options struct {
	Mixture Mixture
	// Overrides are asked first; the first whose pattern fits counts.
	Overrides []Override
	// Output and Embedding, if not nil, are the types of these matrices.
	Output, Embedding *tensor.DType
	// Pure gives every matrix the mixture's main type.
	Pure bool
	// KeepOutput leaves the output matrix as it is.
	KeepOutput bool
	// Requantize allows matrices that are quantized already to be quantized again.
	Requantize bool
	// Importance has weights of the errors of each column, nil for none.
	Importance *Importance
	// Method rounds the matrices of layers, nil for the formats' encoders alone.
	Method *Method

	// Split is the most bytes of tensors in a file, 0 for one file.
	Split uint64
	// Threads is how many threads quantize, 0 for one.
	Threads int
	// Progress, if not nil, is told how many bytes of the input are done.
	Progress func(done, total int64)
}

// Row is what happens to one tensor.
type Row struct {
	Name     string
	Dims     []uint64 // innermost first
	From, To tensor.DType
	// Bytes and NewBytes are sizes before and after.
	Bytes, NewBytes uint64
	// Measured says that the importance matrix has the tensor's columns.
	Measured bool
}

// Plan is what becomes of each tensor of a file.
type Plan struct {
	Rows []Row
	// Fallbacks counts matrices whose rows do not fit the type that they should
	// have had.
	Fallbacks int

	f *gguf.File
	o Options
}

// NewPlan chooses a type for each tensor of f. Tensors come in the order in which
// they are written: those of no layer by name, then layer after layer by name.
//
// It fails if a matrix is quantized already and would have to become another type,
// unless o allows that, or if a type that needs an importance matrix lacks one.
func NewPlan(f *gguf.File, o Options) (*Plan, error) {
	if o.Method != nil {
		if err := o.Method.check(); err != nil {
			return nil, err
		}
	}
	p := &Plan{f: f, o: o}
	a := &assigner{
		m: o.Mixture, shape: shapeOf(f), tied: true, measured: o.Importance != nil, head: o.Output, embed: o.Embedding,
		overrides: o.Overrides, pure: o.Pure, keepOutput: o.KeepOutput,
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	types, err := a.all(f)
	if err != nil {
		return nil, err
	}
	for _, t := range inOrder(f) {
		row, err := p.row(a, t, types[t.Name])
		if err != nil {
			return nil, err
		}
		p.Rows = append(p.Rows, row)
	}
	p.Fallbacks = a.fallbackCount
	return p, nil
}

// row checks that tensor t can become type to.
func (p *Plan) row(a *assigner, t gguf.TensorInfo, to tensor.DType) (Row, error) {
	row := Row{Name: t.Name, Dims: t.Dims, From: t.Type, To: to, Bytes: t.Size, NewBytes: t.Size}
	if to == t.Type {
		return row, nil
	}
	fail := func(format string, args ...any) (Row, error) {
		return row, fmt.Errorf("compress: %s: tensor %q: "+format, append([]any{p.f.Name(), t.Name}, args...)...)
	}
	if t.Type.BlockSize() > 1 && !p.o.Requantize {
		return fail("expected floats, found %s: what is quantized loses again (--allow-requantize does it all the same)", t.Type)
	}
	if !t.Type.CanDecode() {
		return fail("expected a type that can be decoded, found %s", t.Type)
	}
	if !to.CanWeigh() {
		return fail("no encoder for %s", to)
	}
	cols := t.Dims[0]
	if int(cols)%to.BlockSize() != 0 {
		return fail("rows of %d values: expected a multiple of %d for %s", cols, to.BlockSize(), to)
	}
	row.NewBytes = t.Elements() / uint64(to.BlockSize()) * uint64(to.BlockBytes())
	measured, err := p.o.Importance.fits(t)
	if err != nil {
		return row, err
	}
	row.Measured = measured
	if !measured && (a.needsImportance(t, to) || !to.CanEncode()) {
		return fail("%s is of no use without an importance matrix: expected --imatrix FILE with this tensor, see ridge calibrate", to)
	}
	return row, nil
}

// Size returns the bytes of all tensors before and after.
func (p *Plan) Size() (before, after uint64) {
	for _, r := range p.Rows {
		before += r.Bytes
		after += r.NewBytes
	}
	return before, after
}

// BitsPerWeight returns the bits that a weight takes after it, on average.
func (p *Plan) BitsPerWeight() float64 {
	var n, bytes float64
	for _, r := range p.Rows {
		k := 1.0
		for _, d := range r.Dims {
			k *= float64(d)
		}
		n += k
		bytes += float64(r.NewBytes)
	}
	return 8 * bytes / max(n, 1)
}

// Write writes the file at dst, whose name ends in .gguf, or several with names that
// begin like it, and returns their names. They appear whole or not at all. The same
// input gives the same bytes, whatever the number of threads; memory is bounded by
// some MiB for each of them.
func (p *Plan) Write(ctx context.Context, dst string) (files []string, err error) {
	run := &layerRun{ctx: ctx, p: p, m: p.o.Method, layer: -1}
	defer func() {
		if err = errors.Join(err, run.close()); err == nil && run.keep != nil {
			err = run.keep.clear()
		}
	}()
	b, err := p.builder(ctx, run)
	if err != nil {
		return nil, err
	}
	if p.o.Split == 0 {
		if err := b.Save(dst); err != nil {
			return nil, err
		}
		return []string{dst}, p.f.Check()
	}
	dir, err := os.MkdirTemp(filepath.Dir(dst), ".quantize-")
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	defer os.RemoveAll(dir)
	made, err := b.SaveShards(filepath.Join(dir, strings.TrimSuffix(filepath.Base(dst), ".gguf")), p.o.Split)
	if err == nil {
		err = p.f.Check()
	}
	if err != nil {
		return nil, err
	}
	for _, from := range slices.Backward(made) { // the first, which has the metadata, last
		to := filepath.Join(filepath.Dir(dst), filepath.Base(from))
		if err := os.Rename(from, to); err != nil {
			return nil, fmt.Errorf("compress: %w", err)
		}
		files = append([]string{to}, files...)
	}
	return files, nil
}

// builder returns the new file, whose tensors are quantized as they are written.
func (p *Plan) builder(ctx context.Context, run *layerRun) (*gguf.Builder, error) {
	b := p.f.Builder()
	for _, r := range p.Rows {
		b.RemoveTensor(r.Name)
	}
	before, _ := p.Size()
	done := int64(0)
	report := func(n int64) {
		if done += n; p.o.Progress != nil {
			p.o.Progress(done, int64(before))
		}
	}
	for _, r := range p.Rows {
		e := &encoder{ctx: ctx, f: p.f, row: r, threads: max(1, p.o.Threads), report: report}
		if r.Measured {
			e.importance = p.o.Importance.of(r.Name)
		}
		var data io.WriterTo = e
		if m := p.o.Method; m != nil && m.Model != nil && layerOf(r.Name) >= 0 {
			data = &layerTensor{run, r.Name, e}
		}
		if err := b.AddTensor(gguf.TensorInfo{Name: r.Name, Type: r.To, Dims: r.Dims}, data); err != nil {
			return nil, err
		}
	}
	if m := p.o.Method; m != nil {
		origin := m.provenance(p.f)
		for _, kv := range origin {
			if err := b.Set("ridge.quantize."+kv.key, kv.value); err != nil {
				return nil, err
			}
		}
		if m.Keep != "" && m.Model != nil {
			run.keep = &keptLayers{dir: m.Keep, key: p.keptKey(origin)}
		}
	}
	for _, kv := range []struct {
		key   string
		value uint32
	}{{"general.quantization_version", 2}, {"general.file_type", p.o.Mixture.FileType}} {
		b.Remove(kv.key) // so that it stands last, where llama.cpp puts it
		if err := b.Set(kv.key, kv.value); err != nil {
			return nil, err
		}
	}
	return b, nil
}

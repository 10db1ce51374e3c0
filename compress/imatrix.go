package compress

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"ridge/internal/atomicfile"
	"ridge/internal/diag"
	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// Files of importance matrices, as llama.cpp has them: GGUF, and the form before that
// (.dat), which has means over chunks and no counts.

const (
	sumsSuffix   = ".in_sum2"
	countsSuffix = ".counts"
)

// ReadImportance reads an importance matrix, in either form.
func ReadImportance(path string) (*Importance, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("compress: importance matrix: %w", err)
	}
	var im *Importance
	if bytes.HasPrefix(b, []byte("GGUF")) {
		im, err = readImportanceGGUF(path, b)
	} else {
		im, err = readImportanceDat(b)
	}
	if err != nil {
		return nil, fmt.Errorf("compress: importance matrix %s: %w", diag.Path(path), err)
	}
	if len(im.entries) == 0 {
		return nil, fmt.Errorf("compress: importance matrix %s: expected entries, found none", diag.Path(path))
	}
	for name, e := range im.entries {
		if len(e.counts) == 0 || len(e.sums) == 0 || len(e.sums)%len(e.counts) != 0 {
			return nil, fmt.Errorf("compress: importance matrix %s: %q: expected as many values for each of %d counts, found %d", diag.Path(path), name, len(e.counts), len(e.sums))
		}
	}
	return im, nil
}

// Entries returns how many tensors the matrix has.
func (im *Importance) Entries() int { return len(im.entries) }

func readImportanceGGUF(path string, b []byte) (*Importance, error) {
	f, err := gguf.OpenBytes(path, b)
	if err != nil {
		return nil, err
	}
	im := &Importance{entries: map[string]*entry{}, Chunks: int(f.Uint("imatrix.chunk_count", 0)), ChunkTokens: int(f.Uint("imatrix.chunk_size", 0))}
	if v, ok := f.Lookup("imatrix.datasets"); ok {
		im.Datasets, _ = v.([]string)
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	for _, t := range f.Tensors() {
		name, isSums := strings.CutSuffix(t.Name, sumsSuffix)
		name, isCounts := strings.CutSuffix(name, countsSuffix)
		if !isSums && !isCounts {
			continue
		}
		if t.Type != tensor.F32 {
			return nil, fmt.Errorf("tensor %q: expected F32, found %s", t.Name, t.Type)
		}
		values := make([]float32, t.Elements())
		tensor.F32.Decode(values, f.Data(t))
		e := im.entry(name)
		if isSums {
			e.sums = values
		} else {
			e.counts = values
		}
	}
	return im, nil
}

// entry returns that of a tensor, a new one if it has none.
func (im *Importance) entry(name string) *entry {
	e := im.entries[name]
	if e == nil {
		e = &entry{}
		im.entries[name] = e
	}
	return e
}

// readImportanceDat reads the earlier form: for each tensor its name, a number of
// chunks and so many times the mean squares.
func readImportanceDat(b []byte) (*Importance, error) {
	im := &Importance{entries: map[string]*entry{}}
	r := bytes.NewReader(b)
	number := func(what string, most int) (int, error) {
		var v int32
		if err := binary.Read(r, binary.LittleEndian, &v); err != nil {
			return 0, fmt.Errorf("%s: expected 4 bytes, found the end of the file", what)
		}
		if v < 0 || int(v) > most {
			return 0, fmt.Errorf("%s: expected 0 to %d, found %d", what, most, v)
		}
		return int(v), nil
	}
	text := func(what string) (string, error) {
		n, err := number("length of "+what, r.Len())
		if err != nil {
			return "", err
		}
		s := make([]byte, n)
		_, err = io.ReadFull(r, s)
		return string(s), err
	}
	n, err := number("number of entries", len(b)/12)
	if err != nil {
		return nil, err
	}
	for range n {
		name, err := text("a name")
		if err != nil {
			return nil, err
		}
		calls, err := number("chunks of "+name, math.MaxInt32)
		if err != nil {
			return nil, err
		}
		values, err := number("values of "+name, r.Len()/4)
		if err != nil {
			return nil, err
		}
		e := im.entry(name)
		e.sums, e.counts = make([]float32, values), []float32{float32(max(calls, 1))}
		raw := make([]byte, 4*values)
		if _, err := io.ReadFull(r, raw); err != nil {
			return nil, err
		}
		tensor.F32.Decode(e.sums, raw)
	}
	if r.Len() > 0 { // what follows may be missing
		if im.Chunks, err = number("chunks", math.MaxInt32); err != nil {
			return nil, err
		}
		if name, err := text("the data set's name"); err == nil && name != "" {
			im.Datasets = []string{name}
		}
	}
	return im, nil
}

// Save writes the matrix to path: in the earlier form if that ends in .dat, else GGUF.
func (im *Importance) Save(path string) error {
	names := slices.Sorted(maps.Keys(im.entries))
	if strings.HasSuffix(path, ".dat") {
		return atomicfile.Write(path, func(w io.Writer) error { return im.writeDat(w, names) })
	}
	b := gguf.NewBuilder()
	for _, kv := range []struct {
		key   string
		value any
	}{
		{"general.type", "imatrix"}, {"imatrix.datasets", append([]string{}, im.Datasets...)},
		{"imatrix.chunk_count", uint32(im.Chunks)}, {"imatrix.chunk_size", uint32(im.ChunkTokens)},
	} {
		if err := b.Set(kv.key, kv.value); err != nil {
			return err
		}
	}
	for _, name := range names {
		e := im.entries[name]
		n := uint64(len(e.counts))
		for _, t := range []struct {
			suffix string
			cols   uint64
			values []float32
		}{{sumsSuffix, uint64(len(e.sums)) / n, e.sums}, {countsSuffix, 1, e.counts}} {
			data := make([]byte, 4*len(t.values))
			if err := tensor.F32.Encode(data, t.values); err != nil {
				return err
			}
			if err := b.AddTensor(gguf.TensorInfo{Name: name + t.suffix, Type: tensor.F32, Dims: []uint64{t.cols, n}}, gguf.Bytes(data)); err != nil {
				return err
			}
		}
	}
	return b.Save(path)
}

func (im *Importance) writeDat(w io.Writer, names []string) error {
	var b []byte
	le := binary.LittleEndian
	text := func(s string) { b = append(le.AppendUint32(b, uint32(len(s))), s...) }
	b = le.AppendUint32(b, uint32(len(names)))
	for _, name := range names {
		text(name)
		calls := float32(max(im.Chunks, 1))
		means := im.of(name)
		b = le.AppendUint32(le.AppendUint32(b, uint32(calls)), uint32(len(means)))
		for _, v := range means {
			b = le.AppendUint32(b, math.Float32bits(v*calls))
		}
	}
	b = le.AppendUint32(b, uint32(im.Chunks))
	text(strings.Join(im.Datasets, ","))
	_, err := w.Write(b)
	return err
}

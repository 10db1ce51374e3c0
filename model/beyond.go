package model

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ridge/internal/arena"
	"ridge/internal/packfile"
	"ridge/kernel"
	"ridge/nn"
)

// Beyond says how a model runs whose weights do not fit into memory: from a file
// of packed weights, of which the parts that every token reads are in memory as
// far as they fit, and the rest is read from the file when it is needed.
type Beyond struct {
	Why    *MemoryError
	File   string
	Pinned int64 // bytes of weights in memory
	// Read is how many bytes of the file a decoded token reads: dense weights that
	// are not in memory, and the share of experts that a token chooses.
	Read int64
	Rate float64 // bytes a second that the file gave when it was opened
	Kept int64   // bytes of memory for experts, those that are chosen most

	experts *expertCache // nil for none
	layers  *layerStream // nil if they are in memory, or read where the file is mapped
}

// Experts returns how many chosen experts were in memory and how many were read,
// and the bytes of these, since the model was opened. It must not be called
// during Forward.
func (b *Beyond) Experts() (found, read, bytes int64) {
	if b == nil || b.experts == nil {
		return 0, 0, 0
	}
	return b.experts.found, b.experts.read, b.experts.bytes
}

// failed returns the first error of reading the file, nil if there was none.
func (b *Beyond) failed() error {
	if b.experts != nil {
		if err := b.experts.r.failed(); err != nil {
			return err
		}
	}
	if b.layers != nil {
		return b.layers.r.failed()
	}
	return nil
}

// TokensPerSecond is about what the file allows.
func (b *Beyond) TokensPerSecond() float64 { return b.Rate / float64(max(b.Read, 1)) }

// Beyond returns how the model runs whose weights do not fit into memory, nil if
// they do.
func (m *Model) Beyond() *Beyond { return m.beyond }

// reserved is kept free of weights that are pinned: for rows of a step, for the
// file's pages that are being read and for the program. Tests replace it.
var reserved int64 = 96 << 20

// readBeyond reads weights that do not fit into memory: it has them packed into
// the file that k keeps, matrix by matrix, and maps that. Without k, or without a
// context that leaves room, the error is why.
func (m *Model) readBeyond(k *keeper, o *Options, why *MemoryError) error {
	spare := why.Left - why.KV
	if k == nil || spare < 0 {
		return why
	}
	path := packfile.Path(k.Dir, k.model)
	file, err := packfile.Open(path)
	if err == nil && file.Key != k.key {
		file.Close()
		err = packfile.ErrDamaged
	}
	if err != nil {
		if err := m.packToFile(k, o); err != nil {
			return fmt.Errorf("%w; packing them into a file: %w", why, err)
		}
		if file, err = packfile.Open(path); err != nil {
			return err
		}
	}
	room := spare - reserved
	places := placesFor(file, room, m.cfg.Layers)
	pinned, bytes := pin(file, room-places)
	rate := fileRate(file, pinned)
	if m.w, err = m.loadFrom(file, o, &keptMatrices{inPlace: true, pinned: pinned}); err != nil {
		file.Close()
		return err
	}
	m.beyond = &Beyond{Why: why, File: path, Pinned: bytes, Rate: rate}
	return m.readAhead(file, pinned, room-bytes, places)
}

// isDense reports whether every token reads the matrix.
func isDense(e *packfile.Entry) bool {
	return !strings.Contains(e.Name, "_exps") && !strings.HasSuffix(e.Name, apartSuffix)
}

// denseBytes returns the bytes of what every token reads.
func denseBytes(f *packfile.File) (sum int64) {
	for i := range f.Matrix {
		if e := &f.Matrix[i]; isDense(e) {
			sum += e.Size
		}
	}
	return sum
}

// largestDense returns the largest matrix that every token reads, -1 for none.
func largestDense(f *packfile.File) int {
	at := -1
	for i := range f.Matrix {
		if e := &f.Matrix[i]; isDense(e) && (at < 0 || e.Size > f.Matrix[at].Size) {
			at = i
		}
	}
	return at
}

// placesFor returns the bytes to leave for two places that parts of layers are read into,
// when room is for them and for what is pinned; 0 if all has room, or if the places would
// take more than a quarter of it: what is not in memory is then read where it is mapped.
// With no room at all nothing is pinned, and whole layers are read into the places: they
// have to be in memory while they are computed.
func placesFor(f *packfile.File, room int64, layers int) int64 {
	missing := denseBytes(f) - max(room, 0)
	if missing <= 0 || layers <= 2 {
		return 0
	}
	places := 2 * missing / int64(layers-2) // of equal parts, and the places are missing too
	if room > 0 && places > room/4 {
		return 0
	}
	return places
}

// pin chooses the matrices to have in memory: those that every token reads, while
// there is room. If there is not for all, each layer gets its part, so that the
// file is read all the time and not in the last layers alone. The largest comes first:
// it is the output matrix, and would need a large place to be read into. What is left is
// for experts.
func pin(f *packfile.File, room int64) (pinned map[int]bool, bytes int64) {
	pinned = map[int]bool{}
	all, first, seen := denseBytes(f), largestDense(f), int64(0)
	if first >= 0 && f.Matrix[first].Size <= room/2 {
		pinned[first], bytes = true, f.Matrix[first].Size
	}
	start := bytes
	part := min(float64(max(room-bytes, 0))/float64(max(all-bytes, 1)), 1)
	for i := range f.Matrix {
		e := &f.Matrix[i]
		if !isDense(e) || pinned[i] {
			continue
		}
		seen += e.Size
		if float64(bytes-start+e.Size) <= part*float64(seen) {
			pinned[i], bytes = true, bytes+e.Size
		}
	}
	for i := range f.Matrix { // what the division left
		if e := &f.Matrix[i]; isDense(e) && !pinned[i] && bytes+e.Size <= room {
			pinned[i], bytes = true, bytes+e.Size
		}
	}
	return pinned, bytes
}

// fileRate measures how fast the part of f is read that is not in memory.
func fileRate(f *packfile.File, pinned map[int]bool) float64 {
	const part = 64 << 20
	n, start := 0, time.Now()
	buf := make([]byte, 1<<20)
	for i := len(f.Matrix) - 1; i >= 0 && n < part; i-- {
		if e := &f.Matrix[i]; !pinned[i] {
			f.Behind(f.Bytes(i))
			for at := int64(0); at < e.Size && n < part; {
				got, err := f.ReadAt(buf[:min(int64(len(buf)), e.Size-at)], e.Offset+at)
				n, at = n+got, at+int64(got)
				if err != nil {
					return 0
				}
			}
		}
	}
	return float64(n) / max(time.Since(start).Seconds(), 1e-9)
}

// packToFile packs the weights into the file that k keeps, one matrix at a time.
func (m *Model) packToFile(k *keeper, o *Options) error {
	b := m.builder()
	b.print, b.pool = newFingerprint(&m.cfg), m.pool
	b.task = packTask{tell: o.Progress, total: m.src.size(), release: m.src.release}
	b.later = true
	defer b.w.free()
	m.arch.build(b)
	if b.checkUnused(m.arch); b.err != nil {
		return b.err
	}
	d := &packfile.Directory{Model: k.model, Key: k.key, Print: b.print.Sum(nil)}
	for _, p := range b.w.packed {
		d.Matrix = append(d.Matrix, packfile.Entry{Name: p.name, Type: uint32(p.Type), Rows: p.Rows, Cols: p.Cols, Size: int64(p.Size())})
	}
	jobs, most := b.jobs, 0
	for _, j := range jobs {
		most = max(most, j.dst.Size())
	}
	mem, err := arena.New(most)
	if err != nil {
		return err
	}
	defer mem.Free()
	return packfile.Write(context.Background(), k.Dir, d, packfile.Writing{
		Bytes: func(i int) []byte {
			j := jobs[i] // planned in the order of packed
			j.dst.Data = mem.Bytes()[:j.dst.Size()]
			clear(j.dst.Data)
			b.jobs = append(b.jobs[:0:0], j)
			b.packPlanned()
			return j.dst.Data
		},
		Last: func() error {
			if id, _ := k.src.id(); id != k.id {
				return ErrChanged
			}
			return nil
		},
	})
}

// readAhead has the parts of layers that lie in the file read into about the given bytes
// of memory while the layer before is computed, and experts kept in at most room bytes
// less these. It notes the bytes that a token reads of the file.
func (m *Model) readAhead(file *packfile.File, pinned map[int]bool, room, places int64) error {
	place := map[*kernel.Packed]int{}
	for i, p := range m.w.packed {
		if !pinned[i] {
			place[p.Packed] = i
		}
	}
	b, absent := m.beyond, 1.0
	if b.experts = newExpertCache(m.net, file, place, room-places); b.experts != nil {
		b.Kept = b.experts.bytesKept()
		absent = 1 - float64(b.Kept)/float64(b.experts.total)
	}
	units, any := make([][]streamed, len(m.net.Layers)+1), false // of the layers and the output matrix
	add := func(unit int, r *nn.Region) {
		for _, x := range r.Mats {
			switch i, ok := place[x.W]; {
			case !ok:
			case r.Active == 1:
				b.Read += int64(x.W.Size())
				units[unit], any = append(units[unit], streamed{x.W, i}), true
			default:
				b.Read += int64(r.Active * absent * float64(x.W.Size()))
			}
		}
	}
	for i := range m.net.Layers {
		for r := range m.net.Layers[i].Regions() {
			add(i, &r)
		}
	}
	head := m.net.head()
	add(len(m.net.Layers), &head)
	if !any || places == 0 {
		return nil
	}
	return m.stream(file, units, places+reserved/2)
}

// stream has units read into two places, if these take at most the given bytes.
func (m *Model) stream(file *packfile.File, units [][]streamed, most int64) error {
	s, err := newLayerStream(file, units, most)
	if s != nil {
		m.beyond.layers, m.net.ahead = s, s.fetch
	}
	return err
}

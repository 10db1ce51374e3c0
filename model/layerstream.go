package model

import (
	"slices"

	"ridge/internal/arena"
	"ridge/internal/packfile"
	"ridge/kernel"
)

// layerStream reads what of the layers is not in memory: the next layer's part while a
// layer is computed, each into one of two places. The output matrix comes behind the last
// layer, and the first layer behind that.
type layerStream struct {
	r      *fileReaders
	units  [][]streamed // of the layers and the output matrix
	mem    *arena.Arena
	place  [2][]byte
	holds  [2]int // the unit in each place, -1 for none
	coming int    // the place that is being read into, -1 for none
}

// streamed is a matrix that is read again and again.
type streamed struct {
	w     *kernel.Packed
	index int // in the file
}

// streamRoom returns the bytes of a place, which any of the units has room in.
func streamRoom(r *packfile.Reader, units [][]streamed) (each int) {
	for _, u := range units {
		sum := 0
		for _, s := range u {
			sum += pages(r.Room(s.index))
		}
		each = max(each, sum)
	}
	return each
}

// newLayerStream reads units from a file; nil if the two places would take more than the
// given bytes.
func newLayerStream(file *packfile.File, units [][]streamed, most int64) (*layerStream, error) {
	s := &layerStream{r: newFileReaders(file), units: units, holds: [2]int{-1, -1}, coming: -1}
	each := streamRoom(s.r.from, units)
	if 2*int64(each) > most {
		s.r.close()
		return nil, nil
	}
	mem, err := arena.New(2 * each)
	if err != nil {
		s.r.close()
		return nil, err
	}
	s.mem, s.place = mem, [2][]byte{mem.Bytes()[:each], mem.Bytes()[each:]}
	s.r.start()
	return s, nil
}

// fetch has the matrices of a unit in memory, and begins to read the next one's.
func (s *layerStream) fetch(unit int) {
	if len(s.units[unit]) > 0 {
		at := slices.Index(s.holds[:], unit)
		if at < 0 {
			s.finish()
			at = 0
			s.begin(unit, at)
		}
		if at == s.coming {
			s.finish()
		}
		s.next(unit, 1-at)
		return
	}
	if s.coming < 0 { // the places have what comes, or had what went
		s.next(unit, 0)
	}
}

// next begins to read the first unit behind the given one that has matrices into a place,
// unless it is there.
func (s *layerStream) next(unit, at int) {
	n := len(s.units)
	for i := 1; i < n; i++ {
		u := (unit + i) % n
		if len(s.units[u]) == 0 {
			continue
		}
		if !slices.Contains(s.holds[:], u) {
			s.begin(u, at)
		}
		return
	}
}

// begin begins to read a unit. Nobody computes what was in that place.
func (s *layerStream) begin(unit, at int) {
	s.holds[at], s.coming = unit, at
	buf := s.place[at]
	for _, m := range s.units[unit] {
		n := s.r.from.Room(m.index)
		m.w.Data = s.r.from.Place(m.index, buf[:n])
		s.r.read(m.index, buf[:n])
		buf = buf[pages(n):]
	}
}

// finish waits for what is being read.
func (s *layerStream) finish() {
	s.r.wait.Wait()
	s.coming = -1
}

// close gives the memory back. The matrices must not be used any more.
func (s *layerStream) close() {
	if s != nil {
		s.finish()
		s.r.close()
		s.mem.Free()
	}
}

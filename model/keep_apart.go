package model

import (
	"encoding/binary"
	"fmt"
	"strings"

	"ridge/internal/packfile"
	"ridge/kernel"
	"ridge/weights/tensor"
)

// Columns apart are kept behind the packed matrices, under the name of the
// matrix with this behind it.
const apartSuffix = ".apart"

// apartEntries describes the columns apart of all matrices.
func (w *weights) apartEntries() []packfile.Entry {
	names := map[*kernel.Packed]string{}
	for _, p := range w.packed {
		names[p.Packed] = p.name
	}
	var list []packfile.Entry
	for _, a := range w.aparts {
		list = append(list, packfile.Entry{Name: names[a.p] + apartSuffix, Type: uint32(a.p.Apart.W.Type), Rows: a.p.Rows, Cols: len(a.p.Apart.Cols)})
	}
	return list
}

// matrices returns the number of matrices, without columns apart.
func (k *keptMatrices) matrices() int {
	n := len(k.file.Matrix)
	for n > 0 && strings.HasSuffix(k.file.Matrix[n-1].Name, apartSuffix) {
		n--
	}
	return n
}

// loadApart gives the matrices of w the columns that they keep apart.
func (k *keptMatrices) loadApart(w *weights) error {
	byName := map[string]*kernel.Packed{}
	for _, p := range w.packed {
		byName[p.name] = p.Packed
	}
	cols := map[string][]int32{} // by what they are, so that matrices with the same input share them
	for i := k.matrices(); i < len(k.file.Matrix); i++ {
		e := &k.file.Matrix[i]
		p := byName[strings.TrimSuffix(e.Name, apartSuffix)]
		head := apartHead(e.Cols)
		if p == nil || p.Apart != nil || e.Cols > p.Cols || e.Size < int64(head) || e.Type != uint32(tensor.F16) && e.Type != uint32(tensor.F32) {
			return fmt.Errorf("%w: columns apart %q: expected those of a matrix, found %d x %d", packfile.ErrDamaged, e.Name, e.Rows, e.Cols)
		}
		mem := k.file.Bytes(i)
		if !k.inPlace {
			if mem = w.alloc(int(e.Size)); mem == nil {
				return fmt.Errorf("model: no memory for columns apart of %d bytes", e.Size)
			}
			if _, err := k.file.ReadAt(mem, e.Offset); err != nil {
				return err
			}
			if !e.Matches(mem) {
				return fmt.Errorf("%w: columns apart %q have other bytes than were written", packfile.ErrDamaged, e.Name)
			}
		}
		numbers := string(mem[:4*e.Cols])
		if cols[numbers] == nil {
			for j := range e.Cols {
				cols[numbers] = append(cols[numbers], int32(binary.LittleEndian.Uint32(mem[4*j:])))
			}
		}
		a, err := kernel.ApartShape(p, cols[numbers], e.Type == uint32(tensor.F32))
		if err != nil {
			return fmt.Errorf("%w: %w", packfile.ErrDamaged, err)
		}
		if e.Size != int64(head+a.W.Size()) {
			return fmt.Errorf("%w: columns apart %q: expected %d bytes, found %d", packfile.ErrDamaged, e.Name, head+a.W.Size(), e.Size)
		}
		a.W.Data = mem[head:]
		p.Apart = a
	}
	w.apart = true
	return nil
}

package quantized

import (
	"encoding/binary"

	"ridge/weights/tensor"
)

// ints is a matrix of small integers with scales: a value is (code - zero)·scale,
// where zero and scale are those of the row and of the column's group. The
// product is rounded to the scales' type by the libraries.
type ints struct {
	name       string // of the weight, for errors
	nrow, ncol int
	bits       int
	groups     int          // of a row
	size       int          // columns of a group
	group      []int32      // of each column, in place of size; nil if groups are runs
	scales     tensor.DType // type of the scales

	// codes writes the codes of rows [lo, hi), at most rowsAtOnce of them, one
	// after the other.
	codes func(dst []int16, lo, hi int)
	// read returns scales and zero points, [row][group], and the group of each
	// column, or nil. It is called once.
	read func() (scale []float32, zero []int16, group []int32, err error)

	typ   tensor.DType
	why   string // it is no block format
	scale []float32
	zero  []int16
}

func (m *ints) wide() string { return m.why }

func (m *ints) mat() tensor.Mat { return tensor.Mat{Type: m.typ, Rows: m.nrow, Cols: m.ncol} }

func (m *ints) plan() (err error) {
	if m.scale, m.zero, m.group, err = m.read(); err != nil {
		return err
	}
	m.typ = m.scales
	if m.why = m.blocks(); m.why != "" {
		return nil
	}
	for _, s := range m.scale {
		if tensor.F16ToF32(tensor.F32ToF16(s)) != s { // NaN too
			m.why = "their scales are no float16 numbers"
			return nil
		}
	}
	least, most := 0, 0
	for i, z := range m.zero {
		if z := int(z); i == 0 {
			least, most = z, z
		} else {
			least, most = min(least, z), max(most, z)
		}
	}
	low, high := -most, 1<<m.bits-1-least // of a code less its zero point
	switch {
	case low >= -8 && high <= 7:
		m.typ = tensor.Q4_0
	case low >= -16 && high <= 15:
		m.typ = tensor.Q5_0
	case low >= -128 && high <= 127:
		m.typ = tensor.Q8_0
	default:
		m.why = "codes less their zero points have more than 8 bits"
	}
	return nil
}

// blocks says why blocks of 32 columns do not lie in one group each, "" if they
// do. Groups of columns in a row are no longer listed then.
func (m *ints) blocks() string {
	const parts = "their groups are no multiples of 32 columns"
	if m.ncol%32 != 0 || m.group == nil && m.groups > 1 && m.size%32 != 0 {
		return parts
	}
	runs := true
	for i, g := range m.group {
		if g != m.group[i&^31] {
			return "columns of a group do not lie together (act-order)"
		}
		runs = runs && int(g) == i/m.size
	}
	if runs {
		m.group = nil
	}
	return ""
}

// groupOf returns the group of a column.
func (m *ints) groupOf(col int) int {
	if m.group != nil {
		return int(m.group[col])
	}
	return col / m.size
}

func (m *ints) rows(dst []byte, lo, hi int) {
	codes := make([]int16, rowsAtOnce*m.ncol)
	size := m.typ.RowBytes(m.ncol)
	for at := lo; at < hi; at += rowsAtOnce {
		n := min(rowsAtOnce, hi-at)
		m.codes(codes, at, at+n)
		for r := range n {
			m.row(dst[:size], codes[r*m.ncol:(r+1)*m.ncol], at+r)
			dst = dst[size:]
		}
	}
}

// row writes one row in the type that was planned.
func (m *ints) row(dst []byte, codes []int16, row int) {
	scale, zero := m.scale[row*m.groups:][:m.groups], m.zero[row*m.groups:][:m.groups]
	if m.typ.BlockSize() == 1 {
		for i, q := range codes {
			g := m.groupOf(i)
			putFloat(dst, m.typ, i, float32(q-zero[g])*scale[g])
		}
		return
	}
	for at := 0; at < len(codes); at += 32 {
		g := m.groupOf(at)
		block := (*[32]int16)(codes[at:])
		binary.LittleEndian.PutUint16(dst, tensor.F32ToF16(scale[g]))
		switch m.typ {
		case tensor.Q4_0:
			nibbles(dst[2:18], block, 8-zero[g])
			dst = dst[18:]
		case tensor.Q5_0:
			binary.LittleEndian.PutUint32(dst[2:], nibbles(dst[6:22], block, 16-zero[g]))
			dst = dst[22:]
		default:
			for i, q := range block {
				dst[2+i] = byte(q - zero[g])
			}
			dst = dst[34:]
		}
	}
}

// nibbles writes the low four bits of the codes plus a number, as Q4_0 and Q5_0
// have them, and returns the fifth bits.
func nibbles(dst []byte, codes *[32]int16, add int16) (high uint32) {
	dst = dst[:16]
	for i := range dst {
		a, b := uint32(codes[i]+add), uint32(codes[i+16]+add)
		dst[i] = byte(a&15 | b<<4)
		high |= a>>4&1<<i | b>>4&1<<(i+16)
	}
	return high
}

// putFloat writes value i of a row of plain numbers, rounded to their type.
func putFloat(dst []byte, t tensor.DType, i int, v float32) {
	switch t {
	case tensor.F16:
		binary.LittleEndian.PutUint16(dst[2*i:], tensor.F32ToF16(v))
	case tensor.BF16:
		binary.LittleEndian.PutUint16(dst[2*i:], tensor.F32ToBF16(v))
	default:
		_ = tensor.F32.Encode(dst[4*i:4*i+4], []float32{v}) // plain numbers take any value
	}
}

// bitstream reads codes of a number of bits, which follow each other in words of
// 32 bits, the lowest first, and may begin in one word and end in the next. word
// returns a word.
func bitstream(i, bits int, word func(i int) uint32) uint32 {
	at := i * bits
	v := uint64(word(at / 32))
	if at%32+bits > 32 {
		v |= uint64(word(at/32+1)) << 32
	}
	return uint32(v>>(at%32)) & (1<<bits - 1)
}

func le32(b []byte, i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }

// floats returns all values of a tensor of F16, BF16 or F32.
func (x part) floats() []float32 {
	t, _ := x.DType()
	out := make([]float32, x.count())
	t.Decode(out, x.data)
	return out
}

// transposed returns a rows x cols matrix, of which v has the columns in a row.
func transposed[T any](v []T, rows, cols int) []T {
	out := make([]T, len(v))
	for r := range rows {
		for c := range cols {
			out[r*cols+c] = v[c*rows+r]
		}
	}
	return out
}

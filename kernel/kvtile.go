package kernel

import (
	"fmt"
	"unsafe"

	"ridge/kernel/internal/layout"
	"ridge/weights/tensor"
)

// TileTokens is the number of tokens in a tile of keys and values: one lane of
// a 512-bit vector of scores each.
const TileTokens = layout.TileTokens

// Tiles says where the keys and values of one sequence, layer and kv head are.
// Token p is in slot p%TileTokens of tile p/TileTokens. The keys of tile t are
// at Pages[t/PerPage] + K + (t%PerPage)·Step, its values at V instead of K, all
// in bytes. The keys of a tile are stored transposed, [HeadDim][TileTokens],
// its values [TileTokens][VHeadDim], both as little-endian float16 or float32,
// or as signed bytes behind the float32 scales of the tokens (see KVTileBytes).
// As bfloat16 they are stored in the pairs that products of that type take:
// keys [HeadDim/2][TileTokens][2], values [TileTokens/2][VHeadDim][2].
//
// Tiles from From on are in Tail, if there is one, laid out as in a page: copies, for
// queries whose last keys lie elsewhere.
//
// One page table serves all layers and heads of a sequence; only the offsets
// differ. Pages that no query of a call reads may be nil. The memory is not
// owned and must stay valid during a call; it need not be aligned, but 64-byte
// alignment is faster.
type Tiles struct {
	Pages   []*byte
	PerPage int // tiles in a page
	K, V    int // offset of the first tile's keys and values in a page
	Step    int // distance of tiles in a page
	Tail    *byte
	From    int
}

// key and value return the address of the keys and the values of tile t.
func (t *Tiles) key(i int) *byte { return t.at(i, t.K) }

func (t *Tiles) value(i int) *byte { return t.at(i, t.V) }

func (t *Tiles) at(i, off int) *byte {
	if t.Tail != nil && i >= t.From {
		return (*byte)(unsafe.Add(unsafe.Pointer(t.Tail), off-t.K+(i-t.From)*t.Step))
	}
	return (*byte)(unsafe.Add(unsafe.Pointer(t.Pages[i/t.PerPage]), off+i%t.PerPage*t.Step))
}

// tileElem is what an element of a tile is stored as. The values index tables
// of kernels.
type tileElem int

const (
	elemF32 tileElem = iota
	elemF16
	elemI8
	elemBF16 // in pairs; kernels of float32 read copies
)

// kvScales is the size of the scales that a tile of elemI8 begins with.
const kvScales = 4 * TileTokens

// kvElem returns the elements of tiles of type kv. It panics if there are no
// such tiles.
func kvElem(kv tensor.DType) tileElem {
	switch kv {
	case tensor.F32:
		return elemF32
	case tensor.F16:
		return elemF16
	case tensor.Q8_0:
		return elemI8
	case tensor.BF16:
		return elemBF16
	}
	panic(fmt.Sprintf("kernel: KV tile: element type: expected F16, F32, BF16 or Q8_0, found %s", kv))
}

func (e tileElem) bytes() int { return [...]int{4, 2, 1, 2}[e] }

// head returns the bytes of a tile in front of its elements.
func (e tileElem) head() int {
	if e == elemI8 {
		return kvScales
	}
	return 0
}

// decode converts len(dst) elements.
func (e tileElem) decode(dst []float32, src *byte) {
	from := unsafe.Slice(src, len(dst)*e.bytes())
	switch e {
	case elemF32:
		copy(dst, unsafe.Slice((*float32)(unsafe.Pointer(src)), len(dst)))
	case elemF16:
		decodeF16(dst, from)
	default:
		decodeI8(dst, from)
	}
}

// KVTileBytes returns the size of the keys, or of the values, of a tile with
// dim elements per token, stored as kv:
//
//	F32, F16   16·dim elements
//	BF16       16·dim elements; keys need an even dim
//	Q8_0       16 float32 scales, one per token, then 16·dim signed bytes
//
// (Q8_0 stands for the same kind of quantization as the weight format's, but
// a block is the whole key or value of a token and head.)
func KVTileBytes(dim int, kv tensor.DType) int {
	e := kvElem(kv)
	return e.head() + TileTokens*dim*e.bytes()
}

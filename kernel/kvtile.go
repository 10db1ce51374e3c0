package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"ridge/internal/cpu"
	"ridge/tensor"
)

// TileTokens is the number of tokens in a tile of keys and values: one lane of
// a 512-bit vector of scores each.
const TileTokens = 16

// Tiles says where the keys and values of one sequence, layer and kv head are.
// Token p is in slot p%TileTokens of tile p/TileTokens. The keys of tile t are
// at Pages[t/PerPage] + K + (t%PerPage)·Step, its values at V instead of K, all
// in bytes. The keys of a tile are stored transposed, [HeadDim][TileTokens],
// its values [TileTokens][VHeadDim], both as little-endian float16 or float32.
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
}

// key and value return the address of the keys and the values of tile t.
func (t *Tiles) key(i int) *byte { return t.at(i, t.K) }

func (t *Tiles) value(i int) *byte { return t.at(i, t.V) }

func (t *Tiles) at(i, off int) *byte {
	return (*byte)(unsafe.Add(unsafe.Pointer(t.Pages[i/t.PerPage]), off+i%t.PerPage*t.Step))
}

// The largest finite float16: what StoreKV limits values to.
const maxF16 = 65504

// StoreKV writes the key k and the value v of one token to the given slot
// (0 to TileTokens-1) of a tile. kTile has room for TileTokens·len(k) elements
// of type kv, vTile for TileTokens·len(v). For F16 values are rounded to
// nearest even, and those beyond the largest finite float16 (65504), infinities
// included, become that value with their sign: one outlier must not turn
// attention into NaN. A NaN stays a NaN. Either of k and v may be nil.
func StoreKV(kTile, vTile []byte, slot int, k, v []float32, kv tensor.DType) {
	le := binary.LittleEndian
	switch kv {
	case tensor.F32:
		for d, x := range k {
			le.PutUint32(kTile[4*(d*TileTokens+slot):], math.Float32bits(x))
		}
		vTile = vTile[4*slot*len(v):]
		for d, x := range v {
			le.PutUint32(vTile[4*d:], math.Float32bits(x))
		}
	case tensor.F16:
		encodeKV(vTile[2*slot*len(v):], v)
		var buf [128]byte
		for d := 0; d < len(k); d += len(buf) / 2 {
			part := k[d:min(d+len(buf)/2, len(k))]
			encodeKV(buf[:], part)
			column := kTile[2*(d*TileTokens+slot):]
			for i := range part {
				le.PutUint16(column[2*TileTokens*i:], le.Uint16(buf[2*i:]))
			}
		}
	default:
		panic(badKV(kv))
	}
}

// LoadKV reads the token in the given slot of a tile back into k and v, either
// of which may be nil.
func LoadKV(k, v []float32, kTile, vTile []byte, slot int, kv tensor.DType) {
	le := binary.LittleEndian
	switch kv {
	case tensor.F32:
		for d := range k {
			k[d] = math.Float32frombits(le.Uint32(kTile[4*(d*TileTokens+slot):]))
		}
		vTile = vTile[4*slot*len(v):]
		for d := range v {
			v[d] = math.Float32frombits(le.Uint32(vTile[4*d:]))
		}
	case tensor.F16:
		for d := range k {
			k[d] = tensor.F16ToF32(le.Uint16(kTile[2*(d*TileTokens+slot):]))
		}
		DecodeF16(v, vTile[2*slot*len(v):])
	default:
		panic(badKV(kv))
	}
}

// encodeKV converts src to float16 as StoreKV documents.
func encodeKV(dst []byte, src []float32) {
	n := len(src)
	dst = dst[:2*n]
	switch cpu.Current() {
	case cpu.AVX512:
		encodeKVAVX512(unsafe.SliceData(dst), unsafe.SliceData(src), n)
		return
	case cpu.AVX2:
		m := n &^ 7
		encodeKVAVX2(unsafe.SliceData(dst), unsafe.SliceData(src), m)
		dst, src = dst[2*m:], src[m:]
	}
	for i, x := range src {
		binary.LittleEndian.PutUint16(dst[2*i:], tensor.F32ToF16(clampF16(x)))
	}
}

func clampF16(x float32) float32 {
	switch {
	case x > maxF16:
		return maxF16
	case x < -maxF16:
		return -maxF16
	}
	return x
}

func badKV(kv tensor.DType) string {
	return fmt.Sprintf("kernel: KV tile: element type: expected F16 or F32, found %s", kv)
}

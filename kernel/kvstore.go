package kernel

import (
	"encoding/binary"
	"math"
	"unsafe"

	"ridge/internal/cpu"
	"ridge/weights/tensor"
)

const (
	// maxF16 is the largest finite float16: what StoreKV limits values to.
	maxF16 = 65504
	// kvPart is the number of elements of a key that are transposed at a time.
	kvPart = 128
)

// StoreKV writes the key k and the value v of one token to the given slot
// (0 to TileTokens-1) of a tile, whose parts have KVTileBytes bytes. Either of
// k and v may be nil.
//
// For F16 values are rounded to nearest even, and those beyond the largest
// finite float16 (65504), infinities included, become that value with their
// sign: one outlier must not turn attention into NaN. A NaN stays a NaN. For
// Q8_0 the same limit holds; then the scale is max|x|/127 and the elements are
// x/scale, rounded to nearest even; a NaN makes its whole key or value NaN. BF16
// is as F16, with its own rounding.
func StoreKV(kTile, vTile []byte, slot int, k, v []float32, kv tensor.DType) {
	e := kvElem(kv)
	if e == elemBF16 {
		storePairs(kTile, vTile, slot, k, v)
		return
	}
	if len(v) > 0 {
		at := e.head() + slot*len(v)*e.bytes()
		e.encode(vTile[at:at+len(v)*e.bytes()], v, e.putScale(vTile, slot, v))
	}
	if len(k) == 0 {
		return
	}
	inv := e.putScale(kTile, slot, k)
	var buf [4 * kvPart]byte
	for d := 0; d < len(k); d += kvPart {
		part := k[d:min(d+kvPart, len(k))]
		e.encode(buf[:], part, inv)
		at, n := e.head()+(d*TileTokens+slot)*e.bytes(), len(part)
		column := kTile[at : at+((n-1)*TileTokens+1)*e.bytes()]
		switch e {
		case elemF32:
			for i := range n {
				*(*[4]byte)(column[4*TileTokens*i:]) = [4]byte(buf[4*i:])
			}
		case elemF16:
			for i := range n {
				*(*[2]byte)(column[2*TileTokens*i:]) = [2]byte(buf[2*i:])
			}
		case elemI8:
			for i := range n {
				column[TileTokens*i] = buf[i]
			}
		}
	}
}

// StoreKVTile is StoreKV for the 16 tokens of a whole tile: token i has the kd
// elements of its key at k[i·ldk] and the vd elements of its value at v[i·ldv];
// with vd 0 there are no values.
func StoreKVTile(kTile, vTile []byte, k []float32, ldk, kd int, v []float32, ldv, vd int, kv tensor.DType) {
	e := kvElem(kv)
	if e == elemF32 || e == elemBF16 || cpu.Current() < cpu.NEON || kd%8 != 0 {
		for i := range TileTokens {
			StoreKV(kTile, vTile, i, k[i*ldk:][:kd], v[min(i*ldv, len(v)):][:vd], kv)
		}
		return
	}
	var inv [TileTokens]float32
	for i := range TileTokens {
		if vd > 0 {
			row := v[i*ldv:][:vd]
			at := e.head() + i*vd*e.bytes()
			e.encode(vTile[at:at+vd*e.bytes()], row, e.putScale(vTile, i, row))
		}
		inv[i] = e.putScale(kTile, i, k[i*ldk:][:kd])
	}
	var rows [TileTokens][2 * kvPart]byte
	for d := 0; d < kd; d += kvPart {
		n := min(kvPart, kd-d)
		for i := range rows {
			e.encode(rows[i][:], k[i*ldk+d:][:n], inv[i])
		}
		to := kTile[e.head()+d*TileTokens*e.bytes():][:n*TileTokens*e.bytes()]
		if e == elemF16 {
			transposeHalvesTier(&to[0], &rows[0][0], len(rows[0]), n)
		} else {
			transposeBytesTier(&to[0], &rows[0][0], len(rows[0]), n)
		}
	}
}

// encode converts src as StoreKV documents; inv is 1 over the scale.
func (e tileElem) encode(dst []byte, src []float32, inv float32) {
	switch e {
	case elemF32:
		for i, x := range src {
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(x))
		}
	case elemF16:
		encodeKV(dst, src)
	default:
		encodeI8(dst, src, inv)
	}
}

// putScale stores the scale for x of the token in slot, where tiles have
// scales, and returns what to multiply x with.
func (e tileElem) putScale(tile []byte, slot int, x []float32) (inv float32) {
	if e != elemI8 {
		return 1
	}
	top, d := topKV(x), float32(0)
	switch amax := math.Float32frombits(top); {
	case top > 0x7f800000:
		d = float32(math.NaN())
	case amax >= actTiny:
		d, inv = amax/127, 127/amax
	}
	binary.LittleEndian.PutUint32(tile[4*slot:], math.Float32bits(d))
	return inv
}

// encodeKV converts src to float16 as StoreKV documents.
func encodeKV(dst []byte, src []float32) {
	n := len(src)
	dst = dst[:2*n]
	m := encodeKVTier(unsafe.SliceData(dst), unsafe.SliceData(src), n)
	dst, src = dst[2*m:], src[m:]
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

// topKV returns the bits of the largest magnitude of x, limited to 65504; those
// of a NaN are larger than any number's.
func topKV(x []float32) uint32 {
	top, n := topKVTier(unsafe.SliceData(x), len(x))
	for _, v := range x[n:] {
		top = max(top, math.Float32bits(clampF16(v))&0x7fffffff)
	}
	return top
}

// encodeI8 sets dst to src, limited to 65504, times inv, rounded to nearest
// even. The bytes of a NaN mean nothing.
func encodeI8(dst []byte, src []float32, inv float32) {
	dst = dst[:len(src)]
	n := encodeI8Tier(unsafe.SliceData(dst), unsafe.SliceData(src), len(src), inv)
	dst, src = dst[n:], src[n:]
	for i, x := range src {
		dst[i] = byte(int32(math.RoundToEven(float64(clampF16(x) * inv))))
	}
}

// decodeF16 converts len(dst) little-endian binary16 values of src, exactly;
// a NaN keeps its payload and becomes quiet.
func decodeF16(dst []float32, src []byte) {
	n := len(dst)
	src = src[:2*n]
	m := decodeF16Tier(unsafe.SliceData(dst), unsafe.SliceData(src), n)
	dst, src = dst[m:], src[2*m:]
	for i := range dst {
		dst[i] = tensor.F16ToF32(lane16(src, i))
	}
}

// decodeI8 converts signed bytes.
func decodeI8(dst []float32, src []byte) {
	n := len(dst)
	src = src[:n]
	m := decodeI8Tier(unsafe.SliceData(dst), unsafe.SliceData(src), n)
	dst, src = dst[m:], src[m:]
	for i, q := range src {
		dst[i] = float32(int8(q))
	}
}

package tensor

import (
	"encoding/binary"
	"math"
)

// All k-quant encoders work the same way: fit each sub-block alone, quantize
// the fitted scales (and minima) against the largest, then choose the codes
// again for the scales as they will be read back. The fits are in
// kquant_fit.go.

func encodeQ2_K(dst []byte, src []float32) { weighQ2_K(dst, src, nil) }

func weighQ2_K(dst []byte, src, importance []float32) {
	for len(src) > 0 {
		x, b := (*[256]float32)(src), (*[84]byte)(dst)
		var codes [256]byte
		var scales, mins, sums [16]float32
		var scaleInts, minInts [16]byte
		square := meanSquare(x[:])
		for n := range 16 {
			var weights [16]float32
			sub := x[16*n : 16*n+16]
			search := affineSearch{top: 3, from: -0.5, delta: 0.1, steps: 15, absolute: true}
			if importance != nil {
				sums[n] = weigh(weights[:], importance[16*n:], sub, square)
				search = weighedSearch(3)
			} else {
				for i, v := range sub {
					weights[i] = abs32(v)
				}
			}
			scales[n], mins[n] = fitAffine(codes[16*n:16*n+16], sub, weights[:], search)
		}
		var d, dmin float32
		if importance != nil {
			d = putF16(b[80:], fitPositive(scaleInts[:], scales[:], sums[:], 15))
			dmin = putF16(b[82:], fitPositive(minInts[:], mins[:], sums[:], 15))
			importance = importance[256:]
		} else {
			d, dmin = shareScale(b[80:], &scales, 15), shareScale(b[82:], &mins, 15)
			for n := range 16 {
				scaleInts[n], minInts[n] = byte(nearest(scales[n])), byte(nearest(mins[n]))
			}
		}
		for n := range 16 {
			b[n] = scaleInts[n] | minInts[n]<<4
			if scale := d * float32(b[n]&15); scale != 0 {
				recode(codes[16*n:16*n+16], x[16*n:16*n+16], scale, dmin*float32(b[n]>>4), 0, 3)
			}
		}
		packPairs((*[64]byte)(b[16:]), &codes)
		src, dst = src[len(x):], dst[len(b):]
	}
}

// shareScale writes the scale of the superblock, the largest of v over top, to
// b and returns it as it will be read back; v becomes v/largest·top.
func shareScale(b []byte, v *[16]float32, top float32) float32 {
	var largest float32
	for _, s := range v {
		largest = max(largest, s)
	}
	var inv float32
	if largest > 0 {
		inv = top / largest
	}
	for i := range v {
		v[i] *= inv
	}
	return putF16(b, largest/top)
}

// recode chooses codes lo..hi for x = scale·code - least, stored from 0.
func recode(codes []byte, x []float32, scale, least float32, lo, hi int) {
	for i, v := range x {
		codes[i] = byte(clamp(nearest((v+least)/scale), lo, hi) - lo)
	}
}

// packPairs stores codes of 2 bits: byte i of each half of 32 bytes has those
// of values i, i+32, i+64 and i+96 of the half's 128.
func packPairs(b *[64]byte, codes *[256]byte) {
	for half := range 2 {
		q := codes[128*half:]
		for i := range 32 {
			b[32*half+i] = q[i]&3 | q[i+32]&3<<2 | q[i+64]&3<<4 | q[i+96]&3<<6
		}
	}
}

func encodeQ3_K(dst []byte, src []float32) { weighQ3_K(dst, src, nil) }

func weighQ3_K(dst []byte, src, importance []float32) {
	for len(src) > 0 {
		x, b := (*[256]float32)(src), (*[110]byte)(dst)
		var codes [256]byte
		var scales, sums [16]float32
		square := doubleSquare(x[:])
		for n := range 16 {
			sub := x[16*n : 16*n+16]
			if importance == nil {
				scales[n] = fitQ3(codes[16*n:16*n+16], sub)
				continue
			}
			var weights [16]float32
			sums[n] = weigh(weights[:], importance[16*n:], sub, square)
			scales[n] = fitSigned(codes[16*n:16*n+16], sub, weights[:], 4)
		}
		var d float32
		ints := [16]int8{}
		if importance != nil {
			var shifted [16]byte
			d = putF16(b[108:], fitSigned(shifted[:], scales[:], sums[:], 32))
			for n, s := range shifted {
				ints[n] = int8(s) - 32
			}
			packQ3((*[12]byte)(b[96:]), &ints)
			importance = importance[256:]
		} else if top := farthest(scales[:]); top != 0 {
			inv := -32 / top
			for n, s := range scales {
				ints[n] = int8(clamp(int(int8(nearest(inv*s))), -32, 31))
			}
			packQ3((*[12]byte)(b[96:]), &ints)
			d = putF16(b[108:], 1/inv)
		} else {
			clear(b[96:])
		}
		for n, s := range ints {
			if scale := d * float32(s); scale != 0 {
				recode(codes[16*n:16*n+16], x[16*n:16*n+16], scale, 0, -4, 3)
			}
		}
		clear(b[:32])
		for i, q := range codes {
			b[i%32] |= q >> 2 << (i / 32)
		}
		packPairs((*[64]byte)(b[32:]), &codes)
		src, dst = src[len(x):], dst[len(b):]
	}
}

func encodeQ4_K(dst []byte, src []float32) { weighQ4_K(dst, src, nil) }

func weighQ4_K(dst []byte, src, importance []float32) {
	for len(src) > 0 {
		x, b := (*[256]float32)(src), (*[144]byte)(dst)
		var codes [256]byte
		importance = encodeAffine((*[16]byte)(b[:]), &codes, x, importance, affineSearch{top: 15, from: -1, delta: 0.1, steps: 20})
		for n := range 4 {
			q := codes[64*n : 64*n+64]
			for i := range 32 {
				b[16+32*n+i] = q[i] | q[i+32]<<4
			}
		}
		src, dst = src[len(x):], dst[len(b):]
	}
}

func encodeQ5_K(dst []byte, src []float32) { weighQ5_K(dst, src, nil) }

func weighQ5_K(dst []byte, src, importance []float32) {
	for len(src) > 0 {
		x, b := (*[256]float32)(src), (*[176]byte)(dst)
		var codes [256]byte
		importance = encodeAffine((*[16]byte)(b[:]), &codes, x, importance, affineSearch{top: 31, from: -0.5, delta: 0.1, steps: 15})
		clear(b[16:48])
		for n := range 4 {
			q := codes[64*n : 64*n+64]
			for i := range 32 {
				b[16+i] |= (q[i]>>4 | q[i+32]>>4<<1) << (2 * n)
				b[48+32*n+i] = q[i]&15 | q[i+32]&15<<4
			}
		}
		src, dst = src[len(x):], dst[len(b):]
	}
}

// encodeAffine fits the 8 sub-blocks of Q4_K or Q5_K, writes their scales to
// head and their codes, one a byte, to codes. It returns the importance of the
// values that follow, nil for none.
func encodeAffine(head *[16]byte, codes *[256]byte, x *[256]float32, importance []float32, search affineSearch) []float32 {
	var scales, mins, sums [8]float32
	var scaleInts, minInts [8]byte
	square := doubleSquare(x[:])
	for n := range 8 {
		sub := x[32*n : 32*n+32]
		var weights [32]float32
		if importance != nil {
			sums[n] = weigh(weights[:], importance[32*n:], sub, square)
			scales[n], mins[n] = fitAffine(codes[32*n:32*n+32], sub, weights[:], weighedSearch(search.top))
			continue
		}
		rms := sqrt32(meanSquare(sub))
		for i, v := range sub {
			weights[i] = rms + abs32(v)
		}
		scales[n], mins[n] = fitAffine(codes[32*n:32*n+32], sub, weights[:], search)
	}
	var d, dmin float32
	if importance != nil {
		d = putF16(head[:], fitPositive(scaleInts[:], scales[:], sums[:], 63))
		dmin = putF16(head[2:], fitPositive(minInts[:], mins[:], sums[:], 63))
		importance = importance[256:]
	} else {
		d = putF16(head[:], shareInts(&scaleInts, &scales))
		dmin = putF16(head[2:], shareInts(&minInts, &mins))
	}
	packQ4((*[12]byte)(head[4:]), &scaleInts, &minInts)
	for n := range 8 {
		if scale := d * float32(scaleInts[n]); scale != 0 {
			recode(codes[32*n:32*n+32], x[32*n:32*n+32], scale, dmin*float32(minInts[n]), 0, search.top)
		}
	}
	return importance
}

// shareInts rounds the scales to 63ths of the largest, which it returns over 63.
func shareInts(ints *[8]byte, scales *[8]float32) float32 {
	var top, inv float32
	for _, s := range scales {
		top = max(top, s)
	}
	if top > 0 {
		inv = 63 / top
	}
	for n, s := range scales {
		ints[n] = min(63, byte(nearest(inv*s)))
	}
	return top / 63
}

func encodeQ6_K(dst []byte, src []float32) { weighQ6_K(dst, src, nil) }

func weighQ6_K(dst []byte, src, importance []float32) {
	for len(src) > 0 {
		x, b := (*[256]float32)(src), (*[210]byte)(dst)
		src, dst = src[len(x):], dst[len(b):]
		var codes [256]byte
		var scales [16]float32
		for n := range 16 {
			sub := x[16*n : 16*n+16]
			var weights [16]float32
			if importance != nil {
				copy(weights[:], importance[16*n:])
			} else {
				for i, v := range sub {
					weights[i] = v * v
				}
			}
			scales[n] = fitSigned(codes[16*n:16*n+16], sub, weights[:], 32)
		}
		if importance != nil {
			importance = importance[256:]
		}
		top := farthest(scales[:])
		if abs32(top) < allZero {
			clear(b[:])
			continue
		}
		inv := -128 / top
		d := putF16(b[208:], 1/inv)
		for n, s := range scales {
			b[192+n] = byte(min(127, nearest(inv*s)))
			if scale := d * float32(int8(b[192+n])); scale != 0 {
				recode(codes[16*n:16*n+16], x[16*n:16*n+16], scale, 0, -32, 31)
			}
		}
		for half := range 2 {
			q := codes[128*half : 128*half+128]
			for i := range 32 {
				b[64*half+i] = q[i]&15 | q[i+64]&15<<4
				b[64*half+32+i] = q[i+32]&15 | q[i+96]&15<<4
				b[128+32*half+i] = q[i]>>4 | q[i+32]>>4<<2 | q[i+64]>>4<<4 | q[i+96]>>4<<6
			}
		}
	}
}

func encodeQ8_K(dst []byte, src []float32) {
	for len(src) > 0 {
		x, b := (*[256]float32)(src), (*[292]byte)(dst)
		src, dst = src[len(x):], dst[len(b):]
		top := farthest(x[:])
		if top == 0 {
			clear(b[:])
			continue
		}
		inv := -127 / top
		binary.LittleEndian.PutUint32(b[:], math.Float32bits(1/inv))
		for n := range 16 {
			sum := 0
			for i := 16 * n; i < 16*n+16; i++ {
				q := int8(min(127, nearest(inv*x[i])))
				b[4+i] = byte(q)
				sum += int(q)
			}
			binary.LittleEndian.PutUint16(b[260+2*n:], uint16(sum))
		}
	}
}

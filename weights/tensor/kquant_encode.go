package tensor

import (
	"encoding/binary"
	"math"
)

// All k-quant encoders work the same way: fit each sub-block alone, quantize
// the fitted scales (and minima) against the largest, then choose the codes
// again for the scales as they will be read back. The fits are in
// kquant_fit.go.

func encodeQ2_K(dst []byte, src []float32) {
	for len(src) > 0 {
		x, b := (*[256]float32)(src), (*[84]byte)(dst)
		var codes [256]byte
		var scales, mins [16]float32
		for n := range 16 {
			var weights [16]float32
			sub := x[16*n : 16*n+16]
			for i, v := range sub {
				weights[i] = abs32(v)
			}
			scales[n], mins[n] = fitAffine(codes[16*n:16*n+16], sub, weights[:],
				affineSearch{top: 3, from: -0.5, steps: 15, absolute: true})
		}
		d := shareScale(b[80:], &scales, 15)
		dmin := shareScale(b[82:], &mins, 15)
		for n := range 16 {
			s, m := nearest(scales[n]), nearest(mins[n])
			b[n] = byte(s | m<<4)
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

func encodeQ3_K(dst []byte, src []float32) {
	for len(src) > 0 {
		x, b := (*[256]float32)(src), (*[110]byte)(dst)
		var codes [256]byte
		var scales [16]float32
		for n := range 16 {
			scales[n] = fitQ3(codes[16*n:16*n+16], x[16*n:16*n+16])
		}
		var d float32
		ints := [16]int8{}
		if top := farthest(scales[:]); top != 0 {
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

func encodeQ4_K(dst []byte, src []float32) {
	for len(src) > 0 {
		x, b := (*[256]float32)(src), (*[144]byte)(dst)
		var codes [256]byte
		encodeAffine((*[16]byte)(b[:]), &codes, x, affineSearch{top: 15, from: -1, steps: 20})
		for n := range 4 {
			q := codes[64*n : 64*n+64]
			for i := range 32 {
				b[16+32*n+i] = q[i] | q[i+32]<<4
			}
		}
		src, dst = src[len(x):], dst[len(b):]
	}
}

func encodeQ5_K(dst []byte, src []float32) {
	for len(src) > 0 {
		x, b := (*[256]float32)(src), (*[176]byte)(dst)
		var codes [256]byte
		encodeAffine((*[16]byte)(b[:]), &codes, x, affineSearch{top: 31, from: -0.5, steps: 15})
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
// head and their codes, one a byte, to codes.
func encodeAffine(head *[16]byte, codes *[256]byte, x *[256]float32, search affineSearch) {
	var scales, mins [8]float32
	for n := range 8 {
		sub := x[32*n : 32*n+32]
		var squares float32
		for _, v := range sub {
			squares += float32(v * v)
		}
		rms := sqrt32(squares / 32)
		var weights [32]float32
		for i, v := range sub {
			weights[i] = rms + abs32(v)
		}
		scales[n], mins[n] = fitAffine(codes[32*n:32*n+32], sub, weights[:], search)
	}
	var topScale, topMin, invScale, invMin float32
	for n := range 8 {
		topScale, topMin = max(topScale, scales[n]), max(topMin, mins[n])
	}
	if topScale > 0 {
		invScale = 63 / topScale
	}
	if topMin > 0 {
		invMin = 63 / topMin
	}
	var scaleInts, minInts [8]byte
	for n := range 8 {
		scaleInts[n] = min(63, byte(nearest(invScale*scales[n])))
		minInts[n] = min(63, byte(nearest(invMin*mins[n])))
	}
	d, dmin := putF16(head[:], topScale/63), putF16(head[2:], topMin/63)
	packQ4((*[12]byte)(head[4:]), &scaleInts, &minInts)
	for n := range 8 {
		if scale := d * float32(scaleInts[n]); scale != 0 {
			recode(codes[32*n:32*n+32], x[32*n:32*n+32], scale, dmin*float32(minInts[n]), 0, search.top)
		}
	}
}

func encodeQ6_K(dst []byte, src []float32) {
	for len(src) > 0 {
		x, b := (*[256]float32)(src), (*[210]byte)(dst)
		src, dst = src[len(x):], dst[len(b):]
		var codes [256]byte
		var scales [16]float32
		for n := range 16 {
			scales[n] = fitQ6(codes[16*n:16*n+16], x[16*n:16*n+16])
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

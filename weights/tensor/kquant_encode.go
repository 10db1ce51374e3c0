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
	search := affineSearch{top: 3, from: -0.5, delta: 0.1, steps: 15, absolute: true}
	if importance != nil {
		search = weighedSearch(3)
	}
	var f fits
	for len(src) > 0 {
		x, b := (*[256]float32)(src), (*[84]byte)(dst)
		var codes [256]byte
		var scales, mins, sums [16]float32
		var scaleInts, minInts [16]byte
		var square float32
		if importance != nil {
			square = meanSquare(x[:])
		}
		for n := range 16 {
			var weights [16]float32
			sub := x[16*n : 16*n+16]
			if importance != nil {
				sums[n] = weigh(weights[:], importance[16*n:], sub, square)
			} else {
				for i, v := range sub {
					weights[i] = abs32(v)
				}
			}
			f.put(n, sub, weights[:])
		}
		f.affine(16, search)
		for n := range 16 {
			fit := f.affineFit(n)
			scales[n], mins[n] = fit.scale, fit.least
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
			scales[n], mins[n] = d*float32(b[n]&15), dmin*float32(b[n]>>4)
			if scales[n] == 0 {
				f.affineFit(n).codes(codes[16*n:16*n+16], x[16*n:16*n+16], 3)
			}
		}
		recode(codes[:], x[:], scales[:], mins[:], 0, 3)
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
	var f fits
	for len(src) > 0 {
		x, b := (*[256]float32)(src), (*[110]byte)(dst)
		var codes [256]byte
		var scales, sums [16]float32
		var square float32
		if importance != nil {
			square = doubleSquare(x[:])
		}
		for n := range 16 {
			sub := x[16*n : 16*n+16]
			if importance == nil {
				scales[n] = fitQ3(codes[16*n:16*n+16], sub)
				continue
			}
			var weights [16]float32
			sums[n] = weigh(weights[:], importance[16*n:], sub, square)
			f.put(n, sub, weights[:])
		}
		if importance != nil {
			f.signed(16, 4)
			for n := range 16 {
				var inv float32
				scales[n], inv = f.signedFit(n)
				quantizeSigned(codes[16*n:16*n+16], x[16*n:16*n+16], inv, 4)
			}
		}
		var d float32
		ints := [16]int8{}
		if importance != nil {
			var shifted [16]byte
			scale, inv := fitSigned(scales[:], sums[:], 32)
			quantizeSigned(shifted[:], scales[:], inv, 32)
			d = putF16(b[108:], scale)
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
		var zeros [16]float32
		for n, s := range ints {
			scales[n] = d * float32(s)
		}
		recode(codes[:], x[:], scales[:], zeros[:], -4, 3)
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
	var f fits
	for len(src) > 0 {
		search := affineSearch{top: 15, from: -1, delta: 0.1, steps: 20}
		for k := range f.superblocks(src, &importance, search) {
			x, b := (*[256]float32)(src), (*[144]byte)(dst)
			var codes [256]byte
			f.affineSuperblock(8*k, (*[16]byte)(b[:]), &codes, x, 15)
			for n := range 4 {
				q := codes[64*n : 64*n+64]
				for i := range 32 {
					b[16+32*n+i] = q[i] | q[i+32]<<4
				}
			}
			src, dst = src[len(x):], dst[len(b):]
		}
	}
}

func encodeQ5_K(dst []byte, src []float32) { weighQ5_K(dst, src, nil) }

func weighQ5_K(dst []byte, src, importance []float32) {
	var f fits
	for len(src) > 0 {
		search := affineSearch{top: 31, from: -0.5, delta: 0.1, steps: 15}
		for k := range f.superblocks(src, &importance, search) {
			x, b := (*[256]float32)(src), (*[176]byte)(dst)
			var codes [256]byte
			f.affineSuperblock(8*k, (*[16]byte)(b[:]), &codes, x, 31)
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
}

// superblocks fits the 8 sub-blocks of each of the first superblocks of Q4_K or Q5_K in
// src, and returns how many superblocks that are. Importance moves past them.
func (f *fits) superblocks(src []float32, importance *[]float32, search affineSearch) int {
	count := min(len(src)/256, fitLanes/8)
	f.weighted = *importance != nil
	for at := 0; at < 256*count; at += 256 {
		own := take(importance, 256)
		var square float32
		if own != nil {
			square = doubleSquare(src[at : at+256])
		}
		for n := range 8 {
			k, sub := at/32+n, src[at+32*n:at+32*n+32]
			var weights [32]float32
			if own != nil {
				f.sums[k] = weigh(weights[:], own[32*n:], sub, square)
			} else {
				rms := sqrt32(meanSquare(sub))
				for i, v := range sub {
					weights[i] = rms + abs32(v)
				}
			}
			f.put(k, sub, weights[:])
		}
	}
	if f.weighted {
		search = weighedSearch(search.top)
	}
	f.affine(32, search)
	return count
}

// affineSuperblock quantizes the scales and minima of the 8 sub-blocks of x, which are
// those of f from k on, and chooses their codes.
func (f *fits) affineSuperblock(k int, head *[16]byte, codes *[256]byte, x *[256]float32, top int) {
	var scales, mins [8]float32
	var scaleInts, minInts [8]byte
	for n := range 8 {
		fit := f.affineFit(k + n)
		scales[n], mins[n] = fit.scale, fit.least
	}
	var d, dmin float32
	if f.weighted {
		sums := f.sums[k : k+8]
		d = putF16(head[:], fitPositive(scaleInts[:], scales[:], sums, 63))
		dmin = putF16(head[2:], fitPositive(minInts[:], mins[:], sums, 63))
	} else {
		d = putF16(head[:], shareInts(&scaleInts, &scales))
		dmin = putF16(head[2:], shareInts(&minInts, &mins))
	}
	packQ4((*[12]byte)(head[4:]), &scaleInts, &minInts)
	for n := range 8 {
		scales[n], mins[n] = d*float32(scaleInts[n]), dmin*float32(minInts[n])
		if scales[n] == 0 {
			f.affineFit(k+n).codes(codes[32*n:32*n+32], x[32*n:32*n+32], top)
		}
	}
	recode(codes[:], x[:], scales[:], mins[:], 0, top)
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
	var f fits
	for len(src) > 0 {
		x, b := (*[256]float32)(src), (*[210]byte)(dst)
		src, dst = src[len(x):], dst[len(b):]
		own := take(&importance, 256)
		for n := range 16 {
			sub := x[16*n : 16*n+16]
			var weights [16]float32
			if own != nil {
				copy(weights[:], own[16*n:])
			} else {
				for i, v := range sub {
					weights[i] = v * v
				}
			}
			f.put(n, sub, weights[:])
		}
		f.signed(16, 32)
		var codes [256]byte
		var scales, zeros [16]float32
		for n := range 16 {
			scales[n], _ = f.signedFit(n)
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
			if scales[n] = d * float32(int8(b[192+n])); scales[n] == 0 {
				_, inv := f.signedFit(n)
				quantizeSigned(codes[16*n:16*n+16], x[16*n:16*n+16], inv, 32)
			}
		}
		recode(codes[:], x[:], scales[:], zeros[:], -32, 31)
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

package tensor

import (
	"encoding/binary"
	"math"
	"slices"
)

// Encoders of IQ1_S and IQ1_M: levels -1, 0, 1, moved up or down by iq1Delta, of 8
// values at a time from a codebook of 2048.

var iq1Book = codebook{entries: iq1Grid[:], dim: 8, bits: 2, levels: 3, rings: 3}

// iq1Levels are the levels moved up, and moved down.
var iq1Levels = [2][3]float32{{-1 + iq1Delta, iq1Delta, 1 + iq1Delta}, {-1 - iq1Delta, -iq1Delta, 1 - iq1Delta}}

// iq1Fit fits a sub-block of at most 32 values: the values in order of size are cut
// into three groups at the two places where the weighted squared error is least.
type iq1Fit struct {
	x     []float32
	w     [32]float32
	order [32]int
	codes [32]byte
	index [4]uint16 // of codebook entries
}

// load sets values and weights; false says that all are nearly zero.
func (f *iq1Fit) load(x, importance []float32, square, least float32) bool {
	f.x = x
	weigh(f.w[:], importance, x, square)
	for i := range x {
		f.order[i] = i
	}
	slices.SortStableFunc(f.order[:len(x)], func(a, b int) int {
		switch {
		case x[a] < x[b]:
			return -1
		case x[a] > x[b]:
			return 1
		}
		return 0
	})
	return abs32(farthest(x)) >= least
}

// group gives the values the codes 0, 1 and 2, cut at two places of the order; turned
// exchanges 0 and 2.
func (f *iq1Fit) group(first, second int, turned bool) {
	for j, i := range f.order[:len(f.x)] {
		code := byte(0)
		if j >= first {
			code = 1
		}
		if j >= second {
			code = 2
		}
		if turned {
			code = 2 - code
		}
		f.codes[i] = code
	}
}

// snap moves the codes to entries of the codebook; levels are those of each 8 values.
// It returns the scale that fits the entries, if one had to be moved.
func (f *iq1Fit) snap(scale float32, levels func(k int) *[3]float32) float32 {
	moved := false
	for k := range len(f.x) / 8 {
		x, w, xx := f.x[8*k:8*k+8], f.w[8*k:], levels(k)
		var packed uint16
		for j := range 8 {
			packed |= uint16(f.codes[8*k+j]) << (2 * j)
		}
		at := iq1Book.index[packed]
		if at < 0 {
			moved = true
			list := iq1Book.near[^at:]
			best := float32(math.MaxFloat32)
			for _, e := range list[1 : 1+list[0]] {
				var sum float32
				for j, v := range x {
					diff := float32(scale*xx[iq1Book.level(iq1Grid[e], j)]) - v
					sum += float32(w[j] * diff * diff)
				}
				if sum < best {
					best, at = sum, int32(e)
				}
			}
			at = max(at, 0)
		}
		f.index[k] = uint16(at)
	}
	if !moved {
		return scale
	}
	var qx, qq float32
	for i, v := range f.x {
		q := levels(i / 8)[iq1Book.level(iq1Grid[f.index[i/8]], i%8)]
		qx += float32(f.w[i] * q * v)
		qq += float32(f.w[i] * q * q)
	}
	if qx > 0 && qq > 0 {
		return qx / qq
	}
	return scale
}

// cutS searches the cuts for IQ1_S, whose sub-blocks have one shift: 0 up, 1 down.
func (f *iq1Fit) cutS() (scale float32, shift int, ok bool) {
	n := len(f.x)
	var sx, sw [33]float32
	for j, i := range f.order[:n] {
		sx[j+1] = sx[j] + float32(f.w[i]*f.x[i])
		sw[j+1] = sw[j] + f.w[i]
	}
	best := float32(-math.MaxFloat32)
	first, second := 0, 0
	for i1 := range n + 1 {
		for i2 := i1; i2 <= n; i2++ {
			for s := range iq1Levels {
				l := &iq1Levels[s]
				qx := float32(sx[i1]*l[0]) + float32((sx[i2]-sx[i1])*l[1])
				qx += float32((sx[n] - sx[i2]) * l[2])
				qq := float32(sw[i1]*l[0]*l[0]) + float32((sw[i2]-sw[i1])*l[1]*l[1])
				qq += float32((sw[n] - sw[i2]) * l[2] * l[2])
				if qq > 0 && qx*qx > best*qq {
					scale = qx / qq
					best = scale * qx
					first, second, shift, ok = i1, i2, s, true
				}
			}
		}
	}
	f.group(first, second, scale < 0)
	if scale < 0 {
		scale, shift = -scale, 1-shift
	}
	return scale, shift, ok
}

func weighIQ1_S(dst []byte, src, importance []float32) {
	iq1Book.prepare()
	var f iq1Fit
	for len(src) > 0 {
		x, b := src[:256], (*[50]byte)(dst)
		src, dst = src[len(x):], dst[len(b):]
		clear(b[:])
		own, square := take(&importance, 256), doubleSquare(x)
		var scales [8]float32
		var shifts [8]int
		var words [8]uint16
		for n := range scales {
			if !f.load(x[32*n:32*n+32], own[32*n:], square, 1e-12) {
				continue
			}
			scale, shift, ok := f.cutS()
			if !ok {
				continue
			}
			scales[n] = f.snap(scale, func(int) *[3]float32 { return &iq1Levels[shift] })
			shifts[n] = shift
			for k := range 4 {
				b[2+4*n+k] = byte(f.index[k])
				words[n] |= f.index[k] >> 8 << (3 * k)
			}
		}
		top := slices.Max(scales[:])
		if top > 0 {
			d := top / 15
			putF16(b[:], d*1.125) // the factor was found by trial
			for n, s := range scales {
				words[n] |= uint16(clamp(nearest(0.5*(float32(s*(1/d))-1)), 0, 7)|shifts[n]<<3) << 12
			}
		}
		for n, w := range words {
			binary.LittleEndian.PutUint16(b[34+2*n:], w)
		}
	}
}

// cutM searches the cuts for IQ1_M, whose 16 values have a shift for each 8: bit 1 of
// shift is that of the first, bit 0 that of the second.
func (f *iq1Fit) cutM() (scale float32, shift int, ok bool) {
	const n = 16
	up, down := &iq1Levels[0], &iq1Levels[1]
	var px, pw [2][n + 1]float32
	for j, i := range f.order[:n] {
		h := i / 8
		px[h][j+1], px[1-h][j+1] = px[h][j]+float32(f.w[i]*f.x[i]), px[1-h][j]
		pw[h][j+1], pw[1-h][j+1] = pw[h][j]+f.w[i], pw[1-h][j]
	}
	var step [2][2]float32
	for s := range step {
		l := &iq1Levels[s]
		step[s] = [2]float32{l[0]*l[0] - float32(l[1]*l[1]), l[1]*l[1] - float32(l[2]*l[2])}
	}
	best := float32(-math.MaxFloat32)
	first, second := 0, 0
	for i1 := range n + 1 {
		for i2 := i1; i2 <= n; i2++ {
			var qx, qq [2][2]float32 // of each shift and half
			for h := range 2 {
				sum := px[h][i1] + px[h][i2]
				for s, l := range []*[3]float32{up, down} {
					qx[s][h] = float32(px[h][n]*l[2]) - sum
					qq[s][h] = float32(pw[h][n]*l[2]*l[2]) + float32(pw[h][i1]*step[s][0]) + float32(pw[h][i2]*step[s][1])
				}
			}
			for k := range 4 {
				x, q := qx[k>>1][0]+qx[k&1][1], qq[k>>1][0]+qq[k&1][1]
				if q > 0 && x*x > best*q {
					scale = x / q
					best = scale * x
					first, second, shift, ok = i1, i2, k, true
				}
			}
		}
	}
	f.group(first, second, scale < 0)
	if scale < 0 {
		scale, shift = -scale, 3-shift
	}
	return scale, shift, ok
}

func weighIQ1_M(dst []byte, src, importance []float32) {
	iq1Book.prepare()
	var f iq1Fit
	for len(src) > 0 {
		x, b := src[:256], (*[56]byte)(dst)
		src, dst = src[len(x):], dst[len(b):]
		clear(b[:])
		own, square := take(&importance, 256), doubleSquare(x)
		var scales [16]float32
		var shifts [16]int
		for n := range scales {
			if !f.load(x[16*n:16*n+16], own[16*n:], square, 1e-7) {
				continue
			}
			scale, shift, ok := f.cutM()
			if !ok {
				continue
			}
			scales[n] = f.snap(scale, func(k int) *[3]float32 { return &iq1Levels[shift>>(1-k)&1] })
			shifts[n] = shift
			b[2*n], b[2*n+1] = byte(f.index[0]), byte(f.index[1])
			b[32+n] = byte(f.index[0]>>8 | f.index[1]>>8<<4)
		}
		if top := slices.Max(scales[:]); top > 0 {
			finishIQ1_M(b, x, own, square, top/15, &scales, &shifts)
		}
	}
}

// finishIQ1_M stores scales and shifts, and a common scale that fits all values.
func finishIQ1_M(b *[56]byte, x, importance []float32, square, d float32, scales *[16]float32, shifts *[16]int) {
	var words [4]uint16
	var qx, qq float32
	for n, s := range scales {
		l := clamp(nearest(0.5*(float32(s*(1/d))-1)), 0, 7)
		words[n/4] |= uint16(l) << (3 * (n % 4))
		b[32+n] |= [4]byte{0, 0x80, 0x08, 0x88}[shifts[n]]
		var weights [16]float32
		sub := x[16*n : 16*n+16]
		weigh(weights[:], importance[16*n:], sub, square)
		for i, v := range sub {
			k := i / 8
			entry := iq1Grid[int(b[2*n+k])|int(b[32+n]>>(4*k)&7)<<8]
			q := iq1Levels[shifts[n]>>(1-k)&1][iq1Book.level(entry, i%8)] * float32(2*l+1)
			qx += float32(weights[i] * q * v)
			qq += float32(weights[i] * q * q)
		}
	}
	if qq > 0 {
		d = qx / qq
	}
	half := F32ToF16(d * 1.1125) // the factor was found by trial
	for i := range words {
		binary.LittleEndian.PutUint16(b[48+2*i:], words[i]|half>>(4*i)&15<<12)
	}
}

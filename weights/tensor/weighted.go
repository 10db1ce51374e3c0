package tensor

import (
	"encoding/binary"
	"fmt"
)

// Encoders that are told how much the error of each value counts: the mean square
// of the inputs that a column meets, which is what an importance matrix has.

// EncodeWeighted is Encode of one row, where the error of value i counts
// importance[i] times, which must be at least 0 and finite; nil is Encode. Formats
// that have no use for it (Q8_0, Q8_K, the ternary ones, MXFP4, NVFP4, Q1_0, Q2_0 and
// plain numbers) encode as Encode does. The bytes are those that ggml's quantizer
// writes with an importance matrix.
func (d DType) EncodeWeighted(dst []byte, src, importance []float32) error {
	c := d.codec()
	if importance == nil || c.weigh == nil {
		return d.Encode(dst, src)
	}
	if len(importance) != len(src) {
		return fmt.Errorf("tensor: encode %s: %d values, importance of %d", d, len(src), len(importance))
	}
	return d.encodeBy(dst, src, func(dst []byte, src []float32) { c.weigh(dst, src, importance) })
}

// CanWeigh reports whether EncodeWeighted knows d, as it does all formats that
// CanEncode and those of the lowest bits.
func (d DType) CanWeigh() bool { return d.codec().weigh != nil || d.CanEncode() }

// meanSquare returns the mean of the squares of x.
func meanSquare(x []float32) float32 {
	var sum float32
	for _, v := range x {
		sum += float32(v * v)
	}
	return sum / float32(len(x))
}

// doubleSquare returns twice the mean of the squares of x, rounded as the formats
// define it.
func doubleSquare(x []float32) float32 {
	var sum float32
	for _, v := range x {
		sum += float32(v * v)
	}
	return 2 * sum / float32(len(x))
}

// weigh sets weights to importance·√(square + x²) and returns their sum.
func weigh(weights, importance, x []float32, square float32) (sum float32) {
	for i, v := range x {
		weights[i] = importance[i] * sqrt32(square+float32(v*v))
		sum += weights[i]
	}
	return sum
}

// take returns the first n values of *importance and moves it past them; nil stays nil.
func take(importance *[]float32, n int) []float32 {
	if *importance == nil {
		return nil
	}
	own := (*importance)[:n]
	*importance = (*importance)[n:]
	return own
}

// part returns importance from value i on, nil of nil.
func part(importance []float32, i int) []float32 {
	if importance == nil {
		return nil
	}
	return importance[i:]
}

// weighedSearch is the search of fitAffine where importance is known.
func weighedSearch(top int) affineSearch {
	return affineSearch{top: top, from: -0.9, delta: 0.05, steps: 36}
}

// fitPositive fits x ≈ scale·code with codes 0..top for the least weighted squared
// error: the best of nine places of the largest value, then single codes move while
// that helps.
func fitPositive(codes []byte, x, weights []float32, top int) float32 {
	var largest float32
	for _, v := range x {
		largest = max(largest, v)
	}
	if largest < allZero {
		clear(codes)
		return 0
	}
	code := func(v, inv float32) float32 { return float32(min(top, nearest(inv*v))) }
	inv, best := float32(top)/largest, float32(0)
	for try := -5; try <= 4; try++ {
		trial := (float32(0.1*float32(try)) + float32(top)) / largest
		switch try {
		case -5: // the place to begin with
			trial = inv
		case 0:
			continue
		}
		scale, sum := 1/trial, float32(0)
		for i, v := range x {
			l := float32(byte(nearest(trial * v)))
			if try > -5 {
				l = code(v, trial)
			}
			diff := v - float32(scale*l)
			sum += float32(weights[i] * diff * diff)
		}
		if try == -5 || sum < best {
			best, inv = sum, trial
		}
	}
	var lx, l2 float32
	for i, v := range x {
		l := code(v, inv)
		codes[i] = byte(int(l))
		lx += float32(weights[i] * v * l)
		l2 += float32(weights[i] * l * l)
	}
	for range 5 {
		changed := false
		for i, v := range x {
			w, l := weights[i], float32(codes[i])
			otherLX, otherL2 := lx-float32(w*v*l), l2-float32(w*l*l)
			if !(otherLX > 0 && otherL2 > 0) {
				continue
			}
			next := min(top, nearest(v*otherL2/otherLX))
			if next == int(codes[i]) {
				continue
			}
			otherLX += float32(w * v * float32(next))
			otherL2 += float32(w * float32(next) * float32(next))
			if otherLX*otherLX*l2 > lx*lx*otherL2 {
				codes[i], lx, l2 = byte(next), otherLX, otherL2
				changed = true
			}
		}
		if !changed {
			break
		}
	}
	if l2 > 0 {
		return lx / l2
	}
	return 0
}

// weigh32 fits blocks of 32 values with one scale, or a scale and a minimum, of n
// codes; write stores a block.
func weigh32(src, importance []float32, n int, affine bool, write func(codes *[32]byte, d, least float32)) {
	square := meanSquare(src)
	var f fits
	for len(src) > 0 {
		x := src[:min(len(src), 32*fitLanes)]
		src = src[len(x):]
		own := take(&importance, len(x))
		for at := 0; at < len(x); at += 32 {
			var weights [32]float32
			weigh(weights[:], own[at:], x[at:at+32], square)
			f.put(at/32, x[at:at+32], weights[:])
		}
		if affine {
			f.affine(32, weighedSearch(n-1))
		} else {
			f.signed(32, n/2)
		}
		for at := 0; at < len(x); at += 32 {
			var codes [32]byte
			if affine {
				fit := f.affineFit(at / 32)
				fit.codes(codes[:], x[at:at+32], n-1)
				write(&codes, fit.scale, -fit.least)
			} else {
				scale, inv := f.signedFit(at / 32)
				quantizeSigned(codes[:], x[at:at+32], inv, n/2)
				write(&codes, scale, 0)
			}
		}
	}
}

func weighQ4_0(dst []byte, src, importance []float32) {
	weigh32(src, importance, 16, false, func(codes *[32]byte, d, _ float32) {
		putF16(dst, d)
		packNibbles(dst[2:], codes)
		dst = dst[18:]
	})
}

func weighQ4_1(dst []byte, src, importance []float32) {
	weigh32(src, importance, 16, true, func(codes *[32]byte, d, least float32) {
		putF16(dst, d)
		putF16(dst[2:], least)
		packNibbles(dst[4:], codes)
		dst = dst[20:]
	})
}

func weighQ5_0(dst []byte, src, importance []float32) {
	weigh32(src, importance, 32, false, func(codes *[32]byte, d, _ float32) {
		putF16(dst, d)
		binary.LittleEndian.PutUint32(dst[2:], packNibbles(dst[6:], codes))
		dst = dst[22:]
	})
}

func weighQ5_1(dst []byte, src, importance []float32) {
	weigh32(src, importance, 32, true, func(codes *[32]byte, d, least float32) {
		putF16(dst, d)
		putF16(dst[2:], least)
		binary.LittleEndian.PutUint32(dst[4:], packNibbles(dst[8:], codes))
		dst = dst[24:]
	})
}

// packNibbles stores the low four bits of codes, those of value i and i+16 in a byte,
// and returns the fifth ones.
func packNibbles(b []byte, codes *[32]byte) (high uint32) {
	for i := range 16 {
		lo, hi := codes[i], codes[i+16]
		b[i] = lo&15 | hi&15<<4
		high |= uint32(lo>>4&1)<<i | uint32(hi>>4&1)<<(i+16)
	}
	return high
}

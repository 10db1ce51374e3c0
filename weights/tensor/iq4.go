package tensor

import "encoding/binary"

// 4-bit codes for 16 unevenly spaced values: IQ4_NL (32 values, one scale) and
// IQ4_XS (256 values, a scale of 6 bits for each 32).

var iq4Values = [16]float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

func decodeIQ4_NL(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := (*[32]float32)(dst), (*[18]byte)(src)
		decodeIQ4(y, (*[16]byte)(b[2:]), f16(b[:]))
		dst, src = dst[len(y):], src[len(b):]
	}
}

func decodeIQ4_XS(dst []float32, src []byte) {
	for len(dst) > 0 {
		b := (*[136]byte)(src)
		d := f16(b[:])
		high := binary.LittleEndian.Uint16(b[2:])
		for i := range 8 {
			scale := int(b[4+i/2]>>(i%2*4)&15) | int(high>>(2*i)&3)<<4
			decodeIQ4((*[32]float32)(dst[32*i:]), (*[16]byte)(b[8+16*i:]), d*float32(scale-32))
		}
		dst, src = dst[256:], src[len(b):]
	}
}

func decodeIQ4(y *[32]float32, codes *[16]byte, d float32) {
	for i, q := range codes {
		y[i] = iq4Values[q&15] * d
		y[i+16] = iq4Values[q>>4] * d
	}
}

func encodeIQ4_NL(dst []byte, src []float32) { weighIQ4_NL(dst, src, nil) }

func weighIQ4_NL(dst []byte, src, importance []float32) {
	for len(src) > 0 {
		x, b := (*[32]float32)(src), (*[18]byte)(dst)
		d := fitIQ4(x, take(&importance, 32), weightSquare(x[:]))
		putF16(b[:], d)
		encodeIQ4((*[16]byte)(b[2:]), x, inverse(d))
		src, dst = src[len(x):], dst[len(b):]
	}
}

func encodeIQ4_XS(dst []byte, src []float32) { weighIQ4_XS(dst, src, nil) }

func weighIQ4_XS(dst []byte, src, importance []float32) {
	for len(src) > 0 {
		b := (*[136]byte)(dst)
		var scales [8]float32
		own, square := take(&importance, 256), weightSquare(src[:256])
		for i := range scales {
			scales[i] = fitIQ4((*[32]float32)(src[32*i:]), part(own, 32*i), square)
		}
		d := -farthest(scales[:]) / 32
		putF16(b[:], d)
		inv := inverse(d)
		var low [4]byte
		var high uint16
		for i, s := range scales {
			scale := clamp(nearest(inv*s), -32, 31)
			encodeIQ4((*[16]byte)(b[8+16*i:]), (*[32]float32)(src[32*i:]), inverse(d*float32(scale)))
			low[i/2] |= byte((scale+32)&15) << (i % 2 * 4)
			high |= uint16((scale+32)>>4) << (2 * i)
		}
		binary.LittleEndian.PutUint16(b[2:], high)
		copy(b[4:8], low[:])
		src, dst = src[256:], dst[len(b):]
	}
}

func encodeIQ4(codes *[16]byte, x *[32]float32, inv float32) {
	for i := range codes {
		codes[i] = byte(nearestIQ4(inv*x[i]) | nearestIQ4(inv*x[i+16])<<4)
	}
}

// weightSquare returns twice the mean of the squares of x, rounded as IQ4's weights
// are defined.
func weightSquare(x []float32) float32 {
	var sum float32
	for _, v := range x {
		sum += float32(v * v)
	}
	return sum * (2 / float32(len(x)))
}

// fitIQ4 searches the scale with the least squared error, each value weighted
// by its square or as weigh says: the value farthest from zero is tried on 15 places around the
// end of the table, each time followed by a least-squares fit.
func fitIQ4(x *[32]float32, importance []float32, square float32) float32 {
	top := farthest(x[:])
	if abs32(top) < allZero {
		return 0
	}
	var weights [32]float32
	if importance != nil {
		weigh(weights[:], importance, x[:], square)
	} else {
		for i, v := range x {
			weights[i] = v * v
		}
	}
	// sums returns Σ w·q·x and Σ w·q² for the codes q chosen by inv.
	sums := func(inv float32) (qx, qq float32) {
		for i, v := range x {
			q := iq4Values[nearestIQ4(inv*v)]
			w := weights[i]
			qx += float32(w * q * v)
			qq += float32(w * q * q)
		}
		return qx, qq
	}
	var d float32
	qx, qq := sums(1 / (-top / iq4Values[0]))
	if qq > 0 {
		d = qx / qq
	}
	best := d * qx
	for try := -7; try <= 7; try++ {
		qx, qq = sums((float32(try) + iq4Values[0]) / top)
		if qq > 0 && qx*qx > best*qq {
			d = qx / qq
			best = d * qx
		}
	}
	return d
}

// nearestIQ4 returns the code whose value is nearest to x, of two equally near
// ones the upper.
func nearestIQ4(x float32) int {
	x = float32(x) // keeps a product in the argument apart from the subtractions
	if x <= iq4Values[0] {
		return 0
	}
	if x >= iq4Values[15] {
		return 15
	}
	lo, hi := 0, 15
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; x < iq4Values[mid] {
			hi = mid
		} else {
			lo = mid
		}
	}
	if x-iq4Values[lo] < iq4Values[hi]-x {
		return lo
	}
	return hi
}

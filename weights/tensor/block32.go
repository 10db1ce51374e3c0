package tensor

import "encoding/binary"

// Blocks of 32 values with one scale: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0.

func decodeQ4_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := (*[32]float32)(dst), (*[18]byte)(src)
		d := f16(b[:])
		for i, q := range b[2:] {
			y[i] = float32(int(q&15)-8) * d
			y[i+16] = float32(int(q>>4)-8) * d
		}
		dst, src = dst[len(y):], src[len(b):]
	}
}

func encodeQ4_0(dst []byte, src []float32) {
	for len(src) > 0 {
		x, b := (*[32]float32)(src), (*[18]byte)(dst)
		d := farthest(x[:]) / -8
		inv := inverse(d)
		putF16(b[:], d)
		for i := range 16 {
			lo := min(15, truncate(float32(x[i]*inv)+8.5))
			hi := min(15, truncate(float32(x[i+16]*inv)+8.5))
			b[2+i] = byte(lo | hi<<4)
		}
		src, dst = src[len(x):], dst[len(b):]
	}
}

func decodeQ4_1(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := (*[32]float32)(dst), (*[20]byte)(src)
		d, m := f16(b[:]), f16(b[2:])
		for i, q := range b[4:] {
			y[i] = float32(float32(q&15)*d) + m
			y[i+16] = float32(float32(q>>4)*d) + m
		}
		dst, src = dst[len(y):], src[len(b):]
	}
}

func encodeQ4_1(dst []byte, src []float32) {
	for len(src) > 0 {
		x, b := (*[32]float32)(src), (*[20]byte)(dst)
		lowest, highest := bounds(x[:])
		d := (highest - lowest) / 15
		inv := inverse(d)
		putF16(b[:], d)
		putF16(b[2:], lowest)
		for i := range 16 {
			lo := min(15, truncate(float32((x[i]-lowest)*inv)+0.5))
			hi := min(15, truncate(float32((x[i+16]-lowest)*inv)+0.5))
			b[4+i] = byte(lo | hi<<4)
		}
		src, dst = src[len(x):], dst[len(b):]
	}
}

func decodeQ5_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := (*[32]float32)(dst), (*[22]byte)(src)
		d := f16(b[:])
		high := binary.LittleEndian.Uint32(b[2:])
		for i, q := range b[6:] {
			lo := int(q&15) | int(high>>i&1)<<4
			hi := int(q>>4) | int(high>>(i+16)&1)<<4
			y[i] = float32(lo-16) * d
			y[i+16] = float32(hi-16) * d
		}
		dst, src = dst[len(y):], src[len(b):]
	}
}

func encodeQ5_0(dst []byte, src []float32) {
	for len(src) > 0 {
		x, b := (*[32]float32)(src), (*[22]byte)(dst)
		d := farthest(x[:]) / -16
		inv := inverse(d)
		putF16(b[:], d)
		var high uint32
		for i := range 16 {
			lo := min(31, truncate(float32(x[i]*inv)+16.5))
			hi := min(31, truncate(float32(x[i+16]*inv)+16.5))
			b[6+i] = byte(lo&15 | hi&15<<4)
			high |= uint32(lo>>4)<<i | uint32(hi>>4)<<(i+16)
		}
		binary.LittleEndian.PutUint32(b[2:], high)
		src, dst = src[len(x):], dst[len(b):]
	}
}

func decodeQ5_1(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := (*[32]float32)(dst), (*[24]byte)(src)
		d, m := f16(b[:]), f16(b[2:])
		high := binary.LittleEndian.Uint32(b[4:])
		for i, q := range b[8:] {
			lo := int(q&15) | int(high>>i&1)<<4
			hi := int(q>>4) | int(high>>(i+16)&1)<<4
			y[i] = float32(float32(lo)*d) + m
			y[i+16] = float32(float32(hi)*d) + m
		}
		dst, src = dst[len(y):], src[len(b):]
	}
}

func encodeQ5_1(dst []byte, src []float32) {
	for len(src) > 0 {
		x, b := (*[32]float32)(src), (*[24]byte)(dst)
		lowest, highest := bounds(x[:])
		d := (highest - lowest) / 31
		inv := inverse(d)
		putF16(b[:], d)
		putF16(b[2:], lowest)
		var high uint32
		for i := range 16 {
			lo := truncate(float32((x[i]-lowest)*inv) + 0.5)
			hi := truncate(float32((x[i+16]-lowest)*inv) + 0.5)
			b[8+i] = byte(lo&15 | hi&15<<4)
			high |= uint32(lo>>4&1)<<i | uint32(hi>>4&1)<<(i+16)
		}
		binary.LittleEndian.PutUint32(b[4:], high)
		src, dst = src[len(x):], dst[len(b):]
	}
}

func decodeQ8_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := (*[32]float32)(dst), (*[34]byte)(src)
		d := f16(b[:])
		for i, q := range b[2:] {
			y[i] = float32(int8(q)) * d
		}
		dst, src = dst[len(y):], src[len(b):]
	}
}

func encodeQ8_0(dst []byte, src []float32) {
	for len(src) > 0 {
		x, b := (*[32]float32)(src), (*[34]byte)(dst)
		d := abs32(farthest(x[:])) / 127
		inv := inverse(d)
		putF16(b[:], d)
		for i, v := range x {
			b[2+i] = byte(roundAway(v * inv))
		}
		src, dst = src[len(x):], dst[len(b):]
	}
}

// farthest returns the first of the values farthest from zero, 0 for all zeros.
func farthest(x []float32) float32 {
	var top, topAbs float32
	for _, v := range x {
		if a := abs32(v); a > topAbs {
			top, topAbs = v, a
		}
	}
	return top
}

func bounds(x []float32) (lowest, highest float32) {
	lowest, highest = x[0], x[0]
	for _, v := range x[1:] {
		if v < lowest {
			lowest = v
		}
		if v > highest {
			highest = v
		}
	}
	return lowest, highest
}

// inverse returns 1/d, or 0 for a zero scale.
func inverse(d float32) float32 {
	if d == 0 {
		return 0
	}
	return 1 / d
}

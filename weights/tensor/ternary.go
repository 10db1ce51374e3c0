package tensor

// Superblocks of 256 values in {-1, 0, 1} with one scale: TQ1_0, TQ2_0.

// TQ1_0 stores a byte for five ternary digits, most significant first, as the
// fraction digits/243 scaled to 256 and rounded up. Multiplying the byte by 3
// then moves the next digit into the bits above the byte. Digits are strided:
// digit n of byte m in a run of w bytes is value n·w+m of the run.
var tq1Runs = [...]struct{ at, width, digits int }{{0, 32, 5}, {32, 16, 5}, {48, 4, 4}}

func decodeTQ1_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:256], (*[54]byte)(src)
		d := f16(b[52:])
		for _, run := range tq1Runs {
			power := byte(1)
			for range run.digits {
				for i, q := range b[run.at : run.at+run.width] {
					digit := int(q*power) * 3 >> 8
					y[i] = float32(digit-1) * d
				}
				y = y[run.width:]
				power *= 3
			}
		}
		dst, src = dst[256:], src[len(b):]
	}
}

func encodeTQ1_0(dst []byte, src []float32) {
	for len(src) > 0 {
		x, b := src[:256], (*[54]byte)(dst)
		d := abs32(farthest(x))
		inv := inverse(d)
		putF16(b[52:], d)
		for _, run := range tq1Runs {
			for i := range run.width {
				fraction := 0
				for n := range 5 {
					fraction *= 3
					if n < run.digits {
						fraction += roundAway(x[n*run.width+i]*inv) + 1
					}
				}
				b[run.at+i] = byte((fraction*256 + 242) / 243)
			}
			x = x[run.width*run.digits:]
		}
		src, dst = src[256:], dst[len(b):]
	}
}

func decodeTQ2_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		b := (*[66]byte)(src)
		d := f16(b[64:])
		for half := range 2 {
			y, qs := (*[128]float32)(dst[128*half:]), (*[32]byte)(b[32*half:])
			for i, q := range qs {
				y[i] = float32(int(q&3)-1) * d
				y[i+32] = float32(int(q>>2&3)-1) * d
				y[i+64] = float32(int(q>>4&3)-1) * d
				y[i+96] = float32(int(q>>6)-1) * d
			}
		}
		dst, src = dst[256:], src[len(b):]
	}
}

func encodeTQ2_0(dst []byte, src []float32) {
	for len(src) > 0 {
		b := (*[66]byte)(dst)
		d := abs32(farthest(src[:256]))
		inv := inverse(d)
		putF16(b[64:], d)
		for half := range 2 {
			x := (*[128]float32)(src[128*half:])
			for i := range 32 {
				q := 0
				for n := range 4 {
					q |= (roundAway(x[32*n+i]*inv) + 1) << (2 * n)
				}
				b[32*half+i] = byte(q)
			}
		}
		src, dst = src[256:], dst[len(b):]
	}
}

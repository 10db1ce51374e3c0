package tensor

import "encoding/binary"

// Encoders of the codebook formats that need to know the importance of values:
// IQ2_XXS and IQ2_XS.

func weighIQ2_XS(dst []byte, src, importance []float32) {
	iq2xsBook.prepare()
	fit := gridFit{book: &iq2xsBook, tries: 9, step: 0.1}
	for len(src) > 0 {
		x, b := src[:256], (*[74]byte)(dst)
		src, dst = src[len(x):], dst[len(b):]
		clear(b[:])
		own, square := take(&importance, 256), meanSquare(x)
		var scales [16]float32
		var words [32]uint16
		for n := range scales {
			signs, _ := fit.load(x[16*n:16*n+16], part(own, 16*n), square, 0)
			top := fit.evenSigns(&signs)
			if top < allZero {
				continue
			}
			scales[n] = fit.fit(top)
			flip := flipNegative(&scales[n])
			for k := range 2 {
				words[2*n+k] = uint16(iq2xsBook.index[fit.codes[k]]) | uint16((signs[k]^flip)&127)<<9
			}
		}
		var codes [16]byte
		d := shareOddScale(codes[:], scales[:])
		if d == 0 {
			continue
		}
		putF16(b[:], d)
		for i, w := range words {
			binary.LittleEndian.PutUint16(b[2+2*i:], w)
		}
		for i := range 8 {
			b[66+i] = codes[2*i] | codes[2*i+1]<<4
		}
	}
}

// flipNegative makes a scale positive, as formats that store it without a sign need
// it, and returns the bits by which the signs of the values change.
func flipNegative(scale *float32) byte {
	if *scale < 0 {
		*scale = -*scale
		return 0xff
	}
	return 0
}

func weighIQ2_XXS(dst []byte, src, importance []float32) {
	iq2xxsBook.prepare()
	fit := gridFit{book: &iq2xxsBook, tries: 6, step: 0.1, redo: true, always: true}
	for len(src) > 0 {
		x, b := src[:256], (*[66]byte)(dst)
		src, dst = src[len(x):], dst[len(b):]
		clear(b[:])
		own, square := take(&importance, 256), meanSquare(x)
		var scales [8]float32
		var words [16]uint32
		for n := range scales {
			signs, _ := fit.load(x[32*n:32*n+32], part(own, 32*n), square, 0)
			if top := fit.evenSigns(&signs); top < allZero {
				continue
			}
			// The search begins at the scale of a plain fit of codes 0 to 4.
			var plain [32]byte
			scale := fitPositive(plain[:], fit.x[:], fit.w[:], 4)
			if scale*3 <= 0 {
				continue
			}
			scales[n] = fit.fitFrom(scale, scale*3)
			flip := flipNegative(&scales[n])
			for k := range 4 {
				words[2*n] |= uint32(iq2xxsBook.index[fit.codes[k]]) << (8 * k)
				words[2*n+1] |= uint32((signs[k]^flip)&127) << (7 * k)
			}
		}
		var codes [8]byte
		d := shareOddScale(codes[:], scales[:])
		if d == 0 {
			continue
		}
		putF16(b[:], d)
		for n, code := range codes {
			binary.LittleEndian.PutUint32(b[2+8*n:], words[2*n])
			binary.LittleEndian.PutUint32(b[6+8*n:], words[2*n+1]|uint32(code)<<28)
		}
	}
}

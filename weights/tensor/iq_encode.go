package tensor

import (
	"encoding/binary"
	"math"
	"sync"
)

// Encoders of the codebook formats of 2 and 3 bits. IQ2_XXS and IQ2_XS need to know
// the importance of values, the others can do without.

// A codebook finds the entries nearest to a point. Levels are counted 0, 1, 2,
// ... and stand for the magnitudes 1, 3, 5, ...
type codebook struct {
	entries []uint16
	dim     int // values per entry
	bits    int // of a level in an entry
	levels  int // number of levels
	rings   int // how many of the smallest distances count as near
	once    sync.Once
	index   []int32  // by packed levels: the entry, or ^(start of its list in near)
	near    []uint16 // lists of entries, each after its length
}

var (
	iq2xxsBook = codebook{entries: iq2xxsGrid[:], dim: 8, bits: 2, levels: 3, rings: 2}
	iq2xsBook  = codebook{entries: iq2xsGrid[:], dim: 8, bits: 2, levels: 3, rings: 2}
	iq2sBook   = codebook{entries: iq2sGrid[:], dim: 8, bits: 2, levels: 3, rings: 1}
	iq3xxsBook = codebook{entries: iq3xxsGrid[:], dim: 4, bits: 3, levels: 8, rings: 2}
	iq3sBook   = codebook{entries: iq3sGrid[:], dim: 4, bits: 3, levels: 8, rings: 3}
)

// level returns level i of packed levels.
func (c *codebook) level(packed uint16, i int) int { return int(packed>>(c.bits*i)) & (1<<c.bits - 1) }

// prepare makes, once, the lists of near entries for all points that are not
// entries: those at the c.rings smallest distances, near ones first.
func (c *codebook) prepare() {
	c.once.Do(func() {
		c.index = make([]int32, 1<<(c.bits*c.dim))
		for point := range c.index {
			c.index[point] = math.MinInt32
		}
		for i, e := range c.entries {
			c.index[e] = int32(i)
		}
		distance := make([]int, len(c.entries))
	points:
		for point := range c.index {
			for i := range c.dim {
				if c.level(uint16(point), i) >= c.levels {
					continue points
				}
			}
			if c.index[point] >= 0 {
				continue
			}
			for j, e := range c.entries {
				distance[j] = 0
				for i := range c.dim {
					diff := c.level(e, i) - c.level(uint16(point), i)
					distance[j] += diff * diff
				}
			}
			c.index[point] = ^int32(len(c.near))
			c.near = append(c.near, c.nearest(distance)...)
		}
	})
}

// nearest returns the list of the entries at the c.rings smallest distances.
func (c *codebook) nearest(distance []int) []uint16 {
	list := []uint16{0}
	last := -1
	for range c.rings {
		ring := math.MaxInt
		for _, d := range distance {
			if d > last {
				ring = min(ring, d)
			}
		}
		for j, d := range distance {
			if d == ring {
				list = append(list, uint16(j))
			}
		}
		last = ring
	}
	list[0] = uint16(len(list) - 1)
	return list
}

// snap moves a point to an entry: packed levels that are none are replaced by
// the near entry with the least weighted squared error to x at the given scale.
func (c *codebook) snap(packed uint16, x, weights []float32, scale float32) (entry uint16, onGrid bool) {
	at := c.index[packed]
	if at >= 0 {
		return packed, true
	}
	list := c.near[^at:]
	best := c.entries[list[1]]
	bestErr := float32(math.MaxFloat32)
	for _, j := range list[1 : 1+list[0]] {
		e := c.entries[j]
		var err float32
		for i := range c.dim {
			diff := float32(scale*float32(2*c.level(e, i)+1)) - x[i]
			err += float32(weights[i] * diff * diff)
		}
		if err < bestErr {
			best, bestErr = e, err
		}
	}
	return best, false
}

// quantize packs the levels nearest to x/scale, inv = 1/scale.
func (c *codebook) quantize(x []float32, inv float32) (packed uint16) {
	for i := range c.dim {
		l := clamp(nearest(0.5*(float32(inv*x[i])-1)), 0, c.levels-1)
		packed |= uint16(l) << (c.bits * i)
	}
	return packed
}

// A gridFit fits the magnitudes x of a sub-block, with error weights w, as
// scale times codebook entries.
type gridFit struct {
	book  *codebook
	n     int // values in the sub-block, at most 32
	x     [32]float32
	w     [32]float32
	codes [8]uint16 // packed levels, entries of the codebook

	// The search: the largest magnitude is tried around the largest level, in
	// 2·tries+1 steps.
	tries int
	step  float32
	// redo quantizes every entry once more for the final scale, not only those
	// that had to be snapped; also if no try was an improvement. always does so
	// even if none had to be snapped.
	redo, always bool
}

// fit chooses f.codes and returns the scale. The largest of f.x, top, must be
// positive.
func (f *gridFit) fit(top float32) float32 {
	return f.fitFrom(top/float32(2*f.book.levels-1), top)
}

// fitFrom is fit with a scale that counts if no try is an improvement.
func (f *gridFit) fitFrom(scale, top float32) float32 {
	c, entries := f.book, f.n/f.book.dim
	var root [32]float32 // snapping weights
	for i := range f.n {
		root[i] = sqrt32(f.w[i])
	}
	largest := float32(2*c.levels - 1)
	f.codes = [8]uint16{}
	var onGrid [8]bool
	for k := range entries {
		onGrid[k] = !f.redo
	}
	best := float32(0)
	for try := -f.tries; try <= f.tries; try++ {
		inv := (largest + float32(float32(try)*f.step)) / top
		var codes [8]uint16
		var on [8]bool
		for k := range entries {
			x := f.x[k*c.dim:]
			codes[k], on[k] = c.snap(c.quantize(x, inv), x, root[k*c.dim:], 1/inv)
		}
		qx, qq := f.project(&codes)
		if qq > 0 && qx*qx > best*qq {
			scale = qx / qq
			best = scale * qx
			f.codes, onGrid = codes, on
		}
	}
	snapped := false
	for k := range entries {
		snapped = snapped || !onGrid[k]
	}
	if (snapped || f.always) && scale > 0 {
		inv := 1 / scale
		for k := range entries {
			if onGrid[k] && !f.redo {
				continue
			}
			x := f.x[k*c.dim:]
			f.codes[k], _ = c.snap(c.quantize(x, inv), x, root[k*c.dim:], scale)
		}
		if qx, qq := f.project(&f.codes); qq > 0 {
			scale = qx / qq
		}
	}
	return scale
}

// project returns Σ w·q·x and Σ w·q² for the magnitudes q of codes.
func (f *gridFit) project(codes *[8]uint16) (qx, qq float32) {
	c := f.book
	for i := range f.n {
		q := float32(2*c.level(codes[i/c.dim], i%c.dim) + 1)
		qx += float32(f.w[i] * f.x[i] * q)
		qq += float32(f.w[i] * q * q)
	}
	return qx, qq
}

// load sets the magnitudes and weights of a sub-block, x² + floor or, if importance is
// not nil, as weigh sets them, and returns the signs, a byte for 8 values, and the
// largest magnitude.
func (f *gridFit) load(x, importance []float32, square, floor float32) (signs [4]byte, top float32) {
	f.n = len(x)
	if importance != nil {
		weigh(f.w[:], importance, x, square)
	}
	for i, v := range x {
		if importance == nil {
			f.w[i] = floor + float32(v*v)
		}
		if !(v >= 0) {
			v = -v
			signs[i/8] |= 1 << (i % 8)
		}
		f.x[i] = v
		top = max(top, v)
	}
	return signs, top
}

// evenSigns makes the number of negative signs of each 8 values even, as
// formats that store 7 signs need it: the value that matters least gets the
// wrong sign. It returns the largest magnitude, which may have changed.
func (f *gridFit) evenSigns(signs *[4]byte) (top float32) {
	for k := range f.n / 8 {
		if signs7(uint32(signs[k])) != signs[k] {
			least := 8 * k
			for i := 8*k + 1; i < 8*k+8; i++ {
				if f.w[i]*f.x[i]*f.x[i] < f.w[least]*f.x[least]*f.x[least] {
					least = i
				}
			}
			f.x[least] = -f.x[least]
			signs[k] ^= 1 << (least % 8)
		}
	}
	top = f.x[0]
	for _, v := range f.x[:f.n] {
		top = max(top, v)
	}
	return top
}

// shareOddScale quantizes the scales of sub-blocks to odd numbers: s ≈ d·(2·code+1)
// with codes 0..15. It returns d, of which the codes' largest is 31.
func shareOddScale(codes []byte, scales []float32) float32 {
	var top float32
	for _, s := range scales {
		top = max(top, s)
	}
	d := top / 31
	inv := inverse(d)
	for i, s := range scales {
		codes[i] = byte(clamp(nearest(0.5*(float32(inv*s)-1)), 0, 15))
	}
	return d
}

func encodeIQ2_S(dst []byte, src []float32) { weighIQ2_S(dst, src, nil) }

func weighIQ2_S(dst []byte, src, importance []float32) {
	iq2sBook.prepare()
	fit := gridFit{book: &iq2sBook, tries: 9, step: 0.1}
	for len(src) > 0 {
		x, b := src[:256], (*[82]byte)(dst)
		src, dst = src[len(x):], dst[len(b):]
		clear(b[:])
		square := doubleSquare(x)
		own := take(&importance, 256)
		var scales [16]float32
		for n := range scales {
			signs, top := fit.load(x[16*n:16*n+16], part(own, 16*n), square, 0.25*square)
			fit.codes = [8]uint16{}
			if top < 1e-8 {
				continue
			}
			scales[n] = fit.fit(top)
			for k := range 2 {
				at, index := 2*n+k, iq2sBook.index[fit.codes[k]]
				b[2+at] = byte(index)
				b[34+at] = signs[k]
				b[66+at/4] |= byte(index>>8) << (at % 4 * 2)
			}
		}
		var codes [16]byte
		d := shareOddScale(codes[:], scales[:])
		if d == 0 {
			continue
		}
		putF16(b[:], d*0.9875) // the factor, as those below, was found by trial
		for i := range 8 {
			b[74+i] = codes[2*i] | codes[2*i+1]<<4
		}
	}
}

func encodeIQ3_XXS(dst []byte, src []float32) { weighIQ3_XXS(dst, src, nil) }

func weighIQ3_XXS(dst []byte, src, importance []float32) {
	iq3xxsBook.prepare()
	fit := gridFit{book: &iq3xxsBook, tries: 15, step: 0.2}
	for len(src) > 0 {
		x, b := src[:256], (*[98]byte)(dst)
		src, dst = src[len(x):], dst[len(b):]
		clear(b[:])
		var scales [8]float32
		var rest [8]uint32
		own := take(&importance, 256)
		for n := range scales {
			signs, _ := fit.load(x[32*n:32*n+32], part(own, 32*n), doubleSquare(x), 0)
			top := fit.evenSigns(&signs)
			if top < 1e-8 {
				continue
			}
			scales[n] = fit.fit(top)
			for k, code := range fit.codes {
				b[2+8*n+k] = byte(iq3xxsBook.index[code])
			}
			for k, s := range signs {
				rest[n] |= uint32(s&127) << (7 * k)
			}
		}
		var codes [8]byte
		d := shareOddScale(codes[:], scales[:])
		if d == 0 {
			clear(b[:])
			continue
		}
		putF16(b[:], d*1.0125)
		for n, r := range rest {
			binary.LittleEndian.PutUint32(b[66+4*n:], r|uint32(codes[n])<<28)
		}
	}
}

// encodeIQ3_S differs from ggml's quantizer on superblocks in which 32 values
// are all zero: that one stores what follows them in their place.
func encodeIQ3_S(dst []byte, src []float32) { weighIQ3_S(dst, src, nil) }

func weighIQ3_S(dst []byte, src, importance []float32) {
	iq3sBook.prepare()
	fit := gridFit{book: &iq3sBook, tries: 9, step: 0.2, redo: true}
	for len(src) > 0 {
		x, b := src[:256], (*[110]byte)(dst)
		src, dst = src[len(x):], dst[len(b):]
		clear(b[:])
		var scales [8]float32
		own := take(&importance, 256)
		for n := range scales {
			signs, top := fit.load(x[32*n:32*n+32], part(own, 32*n), doubleSquare(x), 0)
			if top == 0 {
				continue
			}
			scales[n] = fit.fit(top)
			for k, code := range fit.codes {
				at, index := 8*n+k, iq3sBook.index[code]
				b[2+at] = byte(index)
				b[66+at/8] |= byte(index>>8) << (at % 8)
			}
			copy(b[74+4*n:], signs[:])
		}
		var codes [8]byte
		d := shareOddScale(codes[:], scales[:])
		if d == 0 {
			continue
		}
		putF16(b[:], d*1.033)
		for i := range 4 {
			b[106+i] = codes[2*i] | codes[2*i+1]<<4
		}
	}
}

package tensor

// allZero is the magnitude below which a sub-block counts as zero.
const allZero = 1e-15

// An affineSearch says which scales fitAffine tries: those that map the range
// of the values to top+from, top+from+delta, ... codes, steps+1 of them.
type affineSearch struct {
	top, steps  int
	from, delta float32
	absolute    bool // minimize absolute instead of squared errors
}

// An affineFit is x ≈ scale·code - least, where quantizeAffine chooses the codes for
// inv and from.
type affineFit struct{ scale, least, inv, from float32 }

// codes chooses the codes that were fitted to.
func (f affineFit) codes(codes []byte, x []float32, top int) {
	quantizeAffine(codes, x, f.inv, f.from, top)
}

// fitAffine fits x ≈ scale·code - least with codes 0..s.top and least >= 0, for
// a small weighted error: it chooses codes for each scale of the search, solves
// for the scale and minimum that fit those codes best, and keeps the best. An
// improvement moves the minimum from which the rest of the search counts.
func fitAffine(x, weights []float32, s affineSearch) affineFit {
	weights = weights[:len(x)]
	offset, highest := bounds(x)
	var sumW, sumX float32
	for i, v := range x {
		sumW += weights[i]
		sumX += float32(weights[i] * v)
	}
	offset = min(offset, 0)
	if highest == offset {
		return affineFit{least: -offset, from: offset}
	}

	best := affineFit{inv: float32(s.top) / (highest - offset), from: offset}
	best.scale = 1 / best.inv
	var buf [32]byte
	codes := buf[:len(x)]
	quantizeAffine(codes, x, best.inv, offset, s.top)
	bestErr := affineError(codes, x, weights, best.scale, offset, s.absolute)
	for step := range s.steps + 1 {
		inv := s.place(step) / (highest - offset)
		quantizeAffine(codes, x, inv, offset, s.top)
		var sumL, sumL2, sumXL float32
		for i, q := range codes {
			l := float32(q)
			wl := weights[i] * l
			sumL += float32(wl)
			sumL2 += float32(wl * l)
			sumXL += float32(wl * x[i])
		}
		det := float32(sumW*sumL2) - float32(sumL*sumL)
		if !(det > 0) {
			continue
		}
		newScale := (float32(sumW*sumXL) - float32(sumX*sumL)) / det
		newOffset := (float32(sumL2*sumX) - float32(sumL*sumXL)) / det
		if newOffset > 0 {
			newOffset, newScale = 0, sumXL/sumL2
		}
		if err := affineError(codes, x, weights, newScale, newOffset, s.absolute); err < bestErr {
			bestErr, best = err, affineFit{newScale, 0, inv, offset}
			offset = newOffset
		}
	}
	best.least = -offset
	return best
}

// place is the number of codes that step of the search maps the range to.
func (s affineSearch) place(step int) float32 {
	return s.from + float32(s.delta*float32(step)) + float32(s.top)
}

func quantizeAffine(codes []byte, x []float32, inv, offset float32, top int) {
	for i, v := range x {
		codes[i] = byte(clamp(nearest(inv*(v-offset)), 0, top))
	}
}

// affineError returns Σ weight·|error| or Σ weight·error² of x ≈ scale·code + offset.
func affineError(codes []byte, x, weights []float32, scale, offset float32, absolute bool) float32 {
	var sum float32
	for i, q := range codes {
		diff := float32(scale*float32(q)) + offset - x[i]
		if absolute {
			diff = abs32(diff)
		} else {
			diff *= diff
		}
		sum += float32(weights[i] * diff)
	}
	return sum
}

// signedTries is how many places fitSigned tries.
const signedTries = 19

// signedPlace is the negative code on which the value farthest from zero is tried:
// first on -most, then around it.
func signedPlace(try, most int) float32 {
	if try == 0 {
		return float32(-most)
	}
	if try -= 10; try >= 0 {
		try++
	}
	return -(float32(most) + float32(0.1*float32(try)))
}

// fitSigned fits x ≈ scale·(code-most) with codes 0..2·most-1 and weighted
// errors: the value farthest from zero is tried on 19 places around -most, each
// time followed by a least-squares fit of the scale. quantizeSigned chooses the codes
// for inv.
func fitSigned(x, weights []float32, most int) (scale, inv float32) {
	top := farthest(x)
	if abs32(top) < allZero {
		return 0, 0
	}
	inv = signedPlace(0, most) / top
	lx, l2 := projectSigned(x, weights, inv, most)
	if l2 != 0 {
		scale = lx / l2
	}
	best := scale * lx
	for try := 1; try < signedTries; try++ {
		trial := signedPlace(try, most) / top
		lx, l2 = projectSigned(x, weights, trial, most)
		if l2 > 0 && lx*lx > best*l2 {
			inv, scale = trial, lx/l2
			best = scale * lx
		}
	}
	return scale, inv
}

// quantizeSigned chooses codes for the inv of fitSigned, zeros for 0.
func quantizeSigned(codes []byte, x []float32, inv float32, most int) {
	if inv == 0 {
		clear(codes)
		return
	}
	for i, v := range x {
		codes[i] = byte(clamp(nearest(inv*v), -most, most-1) + most)
	}
}

// projectSigned returns Σ w·l·x and Σ w·l² for the codes l chosen by inv.
func projectSigned(x, weights []float32, inv float32, most int) (lx, l2 float32) {
	for i, v := range x {
		l := float32(clamp(nearest(inv*v), -most, most-1))
		w := weights[i]
		lx += float32(w * v * l)
		l2 += float32(w * l * l)
	}
	return lx, l2
}

// fitQ3 fits x ≈ scale·(code-4) with codes 0..7, errors weighted by x²: starting
// from the codes for the value farthest from zero on -4, it moves single values
// to the code that suits the scale of all others while that helps.
func fitQ3(codes []byte, x []float32) float32 {
	top := farthest(x)
	if abs32(top) < allZero {
		clear(codes)
		return 0
	}
	inv := -4 / top
	var buf [16]float32
	l := buf[:len(x)]
	var lx, l2 float32
	for i, v := range x {
		l[i] = float32(clamp(nearest(inv*v), -4, 3))
		w := v * v
		lx += float32(w * v * l[i])
		l2 += float32(w * l[i] * l[i])
	}
	for range 5 {
		changed := false
		for i, v := range x {
			w := v * v
			otherLX := lx - float32(w*v*l[i])
			if !(otherLX > 0) {
				continue
			}
			otherL2 := l2 - float32(w*l[i]*l[i])
			code := float32(clamp(nearest(v*otherL2/otherLX), -4, 3))
			if code == l[i] {
				continue
			}
			otherLX += float32(w * v * code)
			otherL2 += float32(w * code * code)
			if otherL2 > 0 && otherLX*otherLX*l2 > lx*lx*otherL2 {
				l[i], lx, l2 = code, otherLX, otherL2
				changed = true
			}
		}
		if !changed {
			break
		}
	}
	for i := range codes {
		codes[i] = byte(int(l[i]) + 4)
	}
	if l2 > 0 {
		return lx / l2
	}
	return 0
}

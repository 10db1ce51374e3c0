package tensor

// fitLanes is how many sub-blocks are fitted at a time.
const fitLanes = 16

// fits is some sub-blocks of at most 32 values and what fits them best. Vectors have
// one sub-block in each lane, so that each keeps the order of its own additions and
// results are those of fitAffine and fitSigned.
type fits struct {
	x, weights [32 * fitLanes]float32 // value i of sub-block k at 16·i + k
	spare      [32 * fitLanes]float32 // codes, or products
	out        [8 * fitLanes]float32  // as the kernels have it
	places     [40]float32

	weighted bool              // by an importance
	sums     [fitLanes]float32 // of the weights of sub-blocks, for superblocks
}

// put sets the values of sub-block k and the weights of their errors.
func (f *fits) put(k int, x, weights []float32) {
	weights = weights[:len(x)]
	for i, v := range x {
		f.x[fitLanes*i+k], f.weights[fitLanes*i+k] = v, weights[i]
	}
}

// column copies sub-block k of n values.
func (f *fits) column(k, n int) (x, weights [32]float32) {
	for i := range n {
		x[i], weights[i] = f.x[fitLanes*i+k], f.weights[fitLanes*i+k]
	}
	return x, weights
}

// affine fits all sub-blocks of n values by scales and minima.
func (f *fits) affine(n int, s affineSearch) {
	for step := range s.steps + 1 {
		f.places[step] = s.place(step)
	}
	var done bool
	if s.absolute {
		done = fitAffineAbsoluteTier(&f.out[0], &f.x[0], &f.weights[0], &f.spare[0], &f.places[0], n, s.steps+1, float32(s.top))
	} else {
		done = fitAffineTier(&f.out[0], &f.x[0], &f.weights[0], &f.spare[0], &f.places[0], n, s.steps+1, float32(s.top))
	}
	if done {
		return
	}
	for k := range fitLanes {
		x, weights := f.column(k, n)
		r := fitAffine(x[:n], weights[:n], s)
		f.out[k], f.out[fitLanes+k], f.out[2*fitLanes+k], f.out[3*fitLanes+k] = r.scale, r.least, r.inv, r.from
	}
}

// affineFit returns what affine found for sub-block k.
func (f *fits) affineFit(k int) affineFit {
	return affineFit{f.out[k], f.out[fitLanes+k], f.out[2*fitLanes+k], f.out[3*fitLanes+k]}
}

// signed fits all sub-blocks of n values by scales, codes being from -most to most-1.
func (f *fits) signed(n, most int) {
	for try := range signedTries {
		f.places[try] = signedPlace(try, most)
	}
	if fitSignedTier(&f.out[0], &f.x[0], &f.weights[0], &f.spare[0], &f.places[0], n, signedTries-1, float32(-most), float32(most-1)) {
		return
	}
	for k := range fitLanes {
		x, weights := f.column(k, n)
		f.out[k], f.out[fitLanes+k] = fitSigned(x[:n], weights[:n], most)
	}
}

// signedFit returns what signed found for sub-block k.
func (f *fits) signedFit(k int) (scale, inv float32) { return f.out[k], f.out[fitLanes+k] }

// recode chooses codes lo..hi for x = scale·code - least, stored from 0, for
// sub-blocks one behind the other; those whose scale is 0 keep their codes.
func recode(codes []byte, x, scales, mins []float32, lo, hi int) {
	n := len(codes) / len(scales)
	if recodeTier(&codes[0], &x[0], &scales[0], &mins[0], len(scales), n, float32(lo), float32(hi)) {
		return
	}
	for k, scale := range scales {
		if scale == 0 {
			continue
		}
		for i, v := range x[k*n : (k+1)*n] {
			codes[k*n+i] = byte(clamp(nearest((v+mins[k])/scale), lo, hi) - lo)
		}
	}
}

package tokenizer

// A long piece is merged in windows, so that the memory of a call does not grow
// with it. What comes out is what merging the whole gives, by this: a row of
// tokens is the result of merging its text if and only if each two neighbours
// are what merging the text of the two gives. In one direction, pairs within the
// text of a token merge in the same order whatever stands around it, as long as
// nothing merges across its borders. In the other, the first merge across a
// border would be of symbols that the two neighbours alone have, too, at that
// point of the order. So a window's tokens may be followed by those of the next
// one if the two at the border are right.

// merger is a model that merges symbols.
type merger interface {
	pairer
	// symbols appends those of piece[lo:hi] to dst, at most n, and returns where
	// the text that they stand for ends.
	symbols(sc *scratch, dst []span, piece string, lo, hi, n int) ([]span, int)
	// apart reports whether a border between two tokens does not depend on where
	// a window begins.
	apart(left, right span) bool
}

// windowSyms is the number of symbols of a window. A part of those at its end is
// done again in the next one.
const windowSyms = 1 << 14

// mergeWindows gives the tokens of a piece to emit, in order, from windows of size
// symbols. It returns false,
// and some of them were given, if no border could be found.
func (sc *scratch) mergeWindows(m merger, piece string, size int, emit func([]span)) bool {
	kept, back := sc.kept[:0], 1 // what the next window may take back, and how much of it
	for at := 0; at < len(piece); {
		syms, next := m.symbols(sc, sc.syms[:0], piece, at, len(piece), size)
		sc.syms = syms
		out := sc.merge(m, piece, syms)
		if len(kept) > 0 && len(out) > 0 && !sc.fits(m, piece, kept[len(kept)-1], out[0]) {
			if back >= len(kept) {
				return false
			}
			kept = kept[:len(kept)-back]
			at, back = int(kept[len(kept)-1].hi), 2*back
			continue
		}
		n := len(out)
		if next < len(piece) {
			for n > 1 && int(out[n-1].hi) > next-size/16 {
				n--
			}
		}
		if at = next; n < len(out) {
			at = int(out[n-1].hi)
		}
		if n > 0 {
			emit(kept)
			kept, back = append(kept[:0], out[:n]...), 1
		}
	}
	emit(kept)
	sc.kept = kept[:0]
	return true
}

// fits reports whether two tokens are what merging their text gives.
func (sc *scratch) fits(m merger, piece string, left, right span) bool {
	if !m.apart(left, right) {
		return false
	}
	lo, hi := int(left.lo), int(right.hi)
	sc.joint, _ = m.symbols(sc, sc.joint[:0], piece, lo, hi, hi-lo)
	out := sc.merge(m, piece, sc.joint)
	return len(out) == 2 && out[0] == left && out[1] == right
}

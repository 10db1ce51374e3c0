package nn

import "ridge/kvcache"

// Step is one forward pass over runs of rows of any number of sequences. It is
// the only thing that crosses into a model. The caller fills Runs and keeps the
// Step for the next pass; the rest belongs to the model until the pass is over.
type Step struct {
	Runs []Run
	// NoLogits leaves the output matrix out: only hidden rows are wanted.
	NoLogits bool
	// Skip leaves parts of layers out, by layer: 1 the mixer, 2 the FFN, 3 both; nil for
	// none. A mixer that is left out keeps nothing of the rows: they are for guesses, and
	// dropped afterwards.
	Skip []uint8
	// Taps are numbers of layers, in rising order: what these read of each row of the
	// step is kept, in the residual stream. That of the number of layers is what is
	// behind the last one, before the last norm. Nil for none.
	Taps []int

	rows   []rowRef
	wanted []int
	depths []int32 // of the nodes of all trees
}

// Run is the next rows of one sequence, at consecutive positions. A sequence may
// have one run in a step.
type Run struct {
	Seq     *kvcache.Seq
	Tokens  []int32 // what the rows are embedded from
	Outputs int     // how many of the last rows give a row of output
	Second  int     // tokens before a second text, of models that tell two apart; 0 for one text
	// Adapter changes matrices for the rows of the run; nil for none.
	Adapter *Adapter
	// Length is the length of the sequence by which its positions are rotated, where
	// that depends on it (see Rope.Grow): a row is rotated for Length tokens, or up
	// to itself if it comes after them. 0 means that the sequence ends with this
	// run. All rows of a sequence that passes Rope.Limit must be computed for the
	// same side of it.
	Length int
	// Tree makes a tree of the last tokens of the sequence, one for each of its entries,
	// some of which may have been computed before: the entry is the parent of the token,
	// by its place in Tree and before the token's own, or -1 for the token before all of
	// them. A token sees its ancestors alone and is at the place behind its parent, so
	// that it has the bits that it would have behind them in a text. Nil for a text.
	// (Miao et al., "SpecInfer", 2023, arXiv 2305.09781.)
	Tree []int32

	row, pos int     // the first row in the step, and its place in the sequence
	depths   []int32 // of the nodes of Tree
}

// Skips says whether the mixer and the FFN of a layer are left out.
func (s *Step) Skips(layer int) (mixer, ffn bool) {
	if layer >= len(s.Skip) {
		return false, false
	}
	return s.Skip[layer]&1 > 0, s.Skip[layer]&2 > 0
}

// Rows returns how many rows the run has.
func (r *Run) Rows() int { return len(r.Tokens) }

// First returns the row of the step that is the first of the run.
func (r *Run) First() int { return r.row }

// Pos returns the position of the run's first row.
func (r *Run) Pos() int { return r.pos }

// rowRef says to which sequence a row belongs, and at which position.
type rowRef struct {
	seq    *kvcache.Seq
	pos    int
	slot   int // where its key and value are: its position, but in a tree
	length int // that it is rotated for
}

// Place gives every row its place. The sequences must hold the rows already.
func (s *Step) Place() {
	s.rows, s.wanted = s.rows[:0], s.wanted[:0]
	s.measure()
	for i := range s.Runs {
		r := &s.Runs[i]
		r.row, r.pos = len(s.rows), r.Seq.Len()-r.Rows()
		length := r.Length
		if length == 0 {
			length = r.Seq.Len()
		}
		for j := range r.Rows() {
			pos := r.position(j)
			s.rows = append(s.rows, rowRef{r.Seq, pos, r.pos + j, max(length, pos+1)})
			if j >= r.Rows()-r.Outputs {
				s.wanted = append(s.wanted, r.row+j)
			}
		}
	}
}

// measure finds how deep the nodes of trees are.
func (s *Step) measure() {
	n := 0
	for i := range s.Runs {
		n += len(s.Runs[i].Tree)
	}
	if cap(s.depths) < n {
		s.depths = make([]int32, n)
	}
	rest := s.depths[:n]
	for i := range s.Runs {
		r := &s.Runs[i]
		r.depths, rest = rest[:len(r.Tree)], rest[len(r.Tree):]
		for k, parent := range r.Tree {
			if r.depths[k] = 0; parent >= 0 {
				r.depths[k] = r.depths[parent] + 1
			}
		}
	}
}

// trunk returns how many tokens of the sequence are before its tree.
func (r *Run) trunk() int { return r.Seq.Len() - len(r.Tree) }

// position returns the position of row j.
func (r *Run) position(j int) int {
	if node := r.pos + j - r.trunk(); node >= 0 {
		return r.trunk() + int(r.depths[node])
	}
	return r.pos + j
}

// path returns the end of the rows from row j on each of which is the parent of the
// next one, and the node of the last of them if their ancestors do not lie side by
// side, else -1.
func (r *Run) path(j int) (end, node int) {
	first := r.pos - r.trunk() // the node of row 0
	for end = j + 1; end < r.Rows(); end++ {
		if n := first + end; n >= 0 && int(r.Tree[n]) != n-1 {
			break
		}
	}
	if node = first + end - 1; node < 0 || int(r.depths[node]) == node {
		node = -1
	}
	return end, node
}

// Rows returns the number of rows that were placed.
func (s *Step) Rows() int { return len(s.rows) }

// Pos returns the position of a row.
func (s *Step) Pos(row int) int { return s.rows[row].pos }

// Wanted returns the rows that give a row of output, in order.
func (s *Step) Wanted() []int { return s.wanted }

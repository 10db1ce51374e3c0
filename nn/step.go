package nn

import "ridge/kvcache"

// Step is one forward pass over runs of rows of any number of sequences. It is
// the only thing that crosses into a model. The caller fills Runs and keeps the
// Step for the next pass; the rest belongs to the model until the pass is over.
type Step struct {
	Runs []Run
	// NoLogits leaves the output matrix out: only hidden rows are wanted.
	NoLogits bool

	rows   []rowRef
	wanted []int
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

	row, pos int // the first row in the step, and its position
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
	length int // that it is rotated for
}

// Place gives every row its place. The sequences must hold the rows already.
func (s *Step) Place() {
	s.rows, s.wanted = s.rows[:0], s.wanted[:0]
	for i := range s.Runs {
		r := &s.Runs[i]
		r.row, r.pos = len(s.rows), r.Seq.Len()-r.Rows()
		length := r.Length
		if length == 0 {
			length = r.Seq.Len()
		}
		for j := range r.Rows() {
			s.rows = append(s.rows, rowRef{r.Seq, r.pos + j, max(length, r.pos+j+1)})
			if j >= r.Rows()-r.Outputs {
				s.wanted = append(s.wanted, r.row+j)
			}
		}
	}
}

// Rows returns the number of rows that were placed.
func (s *Step) Rows() int { return len(s.rows) }

// Pos returns the position of a row.
func (s *Step) Pos(row int) int { return s.rows[row].pos }

// Wanted returns the rows that give a row of output, in order.
func (s *Step) Wanted() []int { return s.wanted }

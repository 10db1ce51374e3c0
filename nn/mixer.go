package nn

import (
	"ridge/kernel"
	"ridge/kvcache"
)

// Block is what a mixer and an FFN tell of themselves. Whoever needs to know
// what a network costs, or where its weights should lie, asks its blocks.
type Block interface {
	// Form returns the form of the rows that the block reads.
	Form() Form
	// Reads says what the block reads for the rows of a step.
	Reads() Reads
}

// Mixer mixes the rows of a step with the earlier rows of their sequences. It
// owns its weights.
type Mixer interface {
	Block
	// Keeps says what the mixer keeps of a sequence.
	Keeps() kvcache.LayerShape
	// Mix computes the rows of s from the normalized rows x, [rows][hidden].
	// layer is the mixer's place in the cache. What the layer adds to its rows is
	// the product of the rows and the matrix that Mix returns: the residual
	// addition is part of that product. The rows stay valid until the next Mix
	// of a mixer of this kind.
	Mix(e *Exec, s *Step, layer int, x *kernel.Acts) (*kernel.Acts, *Linear)
}

// FFN is the part of a layer that looks at each row on its own. It owns its
// weights.
type FFN interface {
	Block
	// Feed computes rows and the output matrix from x, [rows][hidden], as
	// Mixer.Mix does. Without a matrix the rows themselves, which may be
	// overwritten, are what the layer adds.
	Feed(e *Exec, x *kernel.Acts) (*kernel.Acts, *Linear)
}

// Early is an FFN that looks at the residual rows of its layer before the mixer
// does: at x, [rows][hidden], and then at those of them that are kept.
type Early interface {
	Look(e *Exec, x *kernel.Acts)
	Keep(e *Exec, rows []int)
}

// Reads is what a block reads for the rows of a step.
type Reads struct {
	Regions []Region // in the order in which they are read
	// Queries is the number of query heads, each of which is multiplied with all
	// keys and values that a row sees; 0 for blocks without attention.
	Queries int
	// ValueDim is how many elements of a key are its value, where values are part of
	// the keys that are kept; 0 elsewhere.
	ValueDim int
	// Shared is the shape of the keys and values that queries read where these are
	// another mixer's; otherwise they read what the mixer keeps.
	Shared kvcache.LayerShape
}

// Region is a parallel region of a block: matrices that are multiplied with the
// same rows, and whose groups of 16 rows are split over the workers together.
type Region struct {
	Mats []*Linear
	Unit int // groups that stay together when the region is split
	// Floats says that the matrices read float32 rows, whatever others of their type do.
	Floats bool
	// Active is the part of the bytes that one row reads: 1, or less where a
	// router chooses.
	Active float64
}

// reads returns a region of dense matrices.
func reads(unit int, mats ...*Linear) Region { return Region{Mats: mats, Unit: unit, Active: 1} }

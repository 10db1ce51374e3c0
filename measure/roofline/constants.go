package roofline

// Constants are what the roofline leaves out. They were fitted once, by
// FitConstants, to measurements listed in docs/benchmarks.md, and are the same
// for all machines and models.
type Constants struct {
	// Stream is the rate of reading weights while multiplying, over the rate of
	// reading alone.
	Stream float64
	// Cache is the rate of the matrix kernels inside a model, over their rate
	// with one matrix in the cache.
	Cache float64
	// Overlap is the exponent p with which the times of reading from the cache
	// that the cores share and of computing combine to (rᵖ + cᵖ)^(1/p):
	// infinity would be perfect overlap, 1 none. With what is read from memory
	// it is 1: there the times add up.
	Overlap float64
	// Region is what a parallel region costs beyond an empty one, in seconds:
	// uneven workers, streams of reads that start anew.
	Region float64
	// Element is the cost of an element of norms, rotations, activations and
	// quantization, in float operations at the peak rate.
	Element float64
	// Attention is the part of the float peak that attention reaches.
	Attention float64
	// Convert is the cost of loading and converting an element of a key or
	// value for a tile of queries, in multiply-adds.
	Convert float64
	// AttnStream is the rate of reading keys and values in attention, over the
	// rate of reading alone.
	AttnStream float64
}

// Fitted returns the constants in use.
func Fitted() Constants { return fitted }

var fitted = Constants{Stream: 0.98, Cache: 0.83, Overlap: 1.53, Region: 5.1e-7, Element: 129, Attention: 0.537, Convert: 0.71, AttnStream: 0.571}

// peakFraction is the part of the integer (or float) peak that kernels reach by
// the number of rows, where it is not measured: medians over formats and
// machines.
var peakFraction = []struct {
	rows int
	part float64
}{{1, 0.15}, {2, 0.25}, {4, 0.4}, {8, 0.5}, {16, 0.5}, {32, 0.55}, {128, 0.6}, {512, 0.65}}

package roofline

import (
	"fmt"
	"iter"
)

// Work is a piece of work whose speed is measured or predicted: Seqs sequences
// that hold Depth tokens each get Prompt more, and then generate Gen, all in
// step.
type Work struct {
	Prompt int `json:"n_prompt"` // tokens of each sequence's prompt
	Gen    int `json:"n_gen"`    // tokens that each sequence generates
	Depth  int `json:"n_depth"`  // tokens that each sequence holds before; not counted
	Seqs   int `json:"n_seqs"`   // sequences; 0 means 1
	Chunk  int `json:"n_batch"`  // rows that are computed at once; 0 means DefaultChunk
}

// DefaultChunk is the number of rows of a prompt that are computed at once.
const DefaultChunk = 512

// Run is what one step does for one sequence: Rows new tokens from
// position Pos on, of which the last Outputs give logits.
type Run struct{ Seq, Pos, Rows, Outputs int }

// Step is one forward pass.
type Step []Run

// Rows returns the tokens that the step computes.
func (s Step) Rows() (n int) {
	for _, g := range s {
		n += g.Rows
	}
	return n
}

// Outputs returns the rows of logits that the step gives.
func (s Step) Outputs() (n int) {
	for _, g := range s {
		n += g.Outputs
	}
	return n
}

func (w Work) seqs() int { return max(w.Seqs, 1) }

func (w Work) chunk() int {
	if w.Chunk > 0 {
		return w.Chunk
	}
	return DefaultChunk
}

// Tokens returns the tokens that the work computes, without those of Depth.
func (w Work) Tokens() int { return w.seqs() * (w.Prompt + w.Gen) }

// Context returns the tokens that a sequence holds at the end.
func (w Work) Context() int { return w.Depth + w.Prompt + w.Gen }

// String names the work as llama-bench names its tests, with the number of
// sequences after it: "pp512", "tg128 @ d4096", "pp512+tg128", "tg64 x8".
func (w Work) String() string {
	name := ""
	switch {
	case w.Prompt > 0 && w.Gen > 0:
		name = fmt.Sprintf("pp%d+tg%d", w.Prompt, w.Gen)
	case w.Gen > 0:
		name = fmt.Sprintf("tg%d", w.Gen)
	default:
		name = fmt.Sprintf("pp%d", w.Prompt)
	}
	if w.Depth > 0 {
		name += fmt.Sprintf(" @ d%d", w.Depth)
	}
	if w.seqs() > 1 {
		name += fmt.Sprintf(" x%d", w.seqs())
	}
	return name
}

// Fill returns the work that brings the sequences to the depth at which w
// starts.
func (w Work) Fill() Work { return Work{Prompt: w.Depth, Seqs: w.Seqs, Chunk: w.Chunk} }

// Generates reports whether a step of the work generates tokens rather than
// reads prompts.
func (w Work) Generates(st Step) bool { return len(st) > 0 && st[0].Pos >= w.Depth+w.Prompt }

// Steps gives the forward passes of the work, in order. A step is valid until
// the next one.
func (w Work) Steps() iter.Seq[Step] {
	return func(yield func(Step) bool) {
		if !w.prefill(yield) {
			return
		}
		step := make(Step, w.seqs())
		for i := range w.Gen {
			for s := range step {
				step[s] = Run{Seq: s, Pos: w.Depth + w.Prompt + i, Rows: 1, Outputs: 1}
			}
			if !yield(step) {
				return
			}
		}
	}
}

// prefill gives the steps of the prompts: sequence after sequence, each step
// as many rows as the chunk has. Only a prompt's last token gives logits.
func (w Work) prefill(yield func(Step) bool) bool {
	var step Step
	left := w.chunk()
	for s := range w.seqs() {
		for done := 0; done < w.Prompt; {
			n := min(w.Prompt-done, left)
			g := Run{Seq: s, Pos: w.Depth + done, Rows: n}
			if done+n == w.Prompt {
				g.Outputs = 1
			}
			step = append(step, g)
			done, left = done+n, left-n
			if left > 0 {
				continue
			}
			if !yield(step) {
				return false
			}
			step, left = step[:0], w.chunk()
		}
	}
	return len(step) == 0 || yield(step)
}

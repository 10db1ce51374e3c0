package sample

// Chain is a text whose next tokens were guessed and computed together, to be
// verified: one row of logits behind each guess, and one before all.
type Chain interface {
	// Logits returns row i: that before all guesses for 0, then that behind guess i-1.
	Logits(i int) []float32
	// Forced returns the token that follows row i whatever its logits are, if there is
	// one: it is not drawn.
	Forced(i int) (r Result, is bool)
	// Take is told of each token that is drawn, in order. It must Accept it, and
	// says whether the text goes on.
	Take(r Result) bool
}

// Verify draws the tokens of a text from rows that guesses were computed for, as
// long as one of the guesses is right, and one more. It returns how many were right.
// Each guess follows the one before it, or with parents that which they say, which
// comes before it, or for -1 the text: several may be of the same place.
//
// Each token is drawn as Sample draws it: from the distribution of its own row
// after all steps, with the random number of its place. It is never looked at how
// the guesses came about. So the text is the one that would be drawn without them,
// token by token, seeded or greedy, whatever the guesses are; the number of rows
// is all that they change. For guesses without probabilities of their own this is
// speculative sampling (Leviathan et al., "Fast Inference from Transformers via
// Speculative Decoding"; Chen et al., "Accelerating Large Language Model Decoding
// with Speculative Sampling"): with a proposal that has all of its weight on x,
// min(1, p/q) accepts with probability p(x), and the residual is p without x. Of
// several such proposals for a place, one after the other, that accepts each with its
// own p(x), as multi-step speculative sampling of trees does (Miao et al.,
// "SpecInfer"). A drafter that draws its guesses would have more of them accepted by
// that rule, at the price of another text for the same seed.
func (s *Sampler) Verify(c Chain, guesses, parents []int32) (right int) {
	for at := -1; ; right++ {
		r, forced := c.Forced(at + 1)
		if !forced {
			r = s.Sample(c.Logits(at + 1))
		}
		if !c.Take(r) {
			return right
		}
		if at = Follow(guesses, parents, at, r.Token); at < 0 {
			return right
		}
	}
}

// Follow returns the guess of a token that follows guess at, or for -1 the text; -1 if
// there is none.
func Follow(guesses, parents []int32, at int, token int32) int {
	for i := at + 1; i < len(guesses); i++ {
		switch {
		case parents == nil && i > at+1:
			return -1
		case guesses[i] == token && (parents == nil || int(parents[i]) == at):
			return i
		}
	}
	return -1
}

package sample

// Chain is a text whose next tokens were guessed and computed together, to be
// verified: one row of logits behind each guess, and one before all.
type Chain interface {
	// Logits returns the row behind the first i guesses.
	Logits(i int) []float32
	// Take is told of each token that is drawn, in order. It must Accept it, and
	// says whether the text goes on.
	Take(r Result) bool
}

// Verify draws the tokens of a text from rows that guesses were computed for, as
// long as the guesses are right, and one more. It returns how many were right.
//
// Each token is drawn as Sample draws it: from the distribution of its own row
// after all steps, with the random number of its place. It is never looked at how
// the guesses came about. So the text is the one that would be drawn without them,
// token by token, seeded or greedy, whatever the guesses are; the number of rows
// is all that they change. For guesses without probabilities of their own this is
// speculative sampling (Leviathan et al., "Fast Inference from Transformers via
// Speculative Decoding"; Chen et al., "Accelerating Large Language Model Decoding
// with Speculative Sampling"): with a proposal that has all of its weight on x,
// min(1, p/q) accepts with probability p(x), and the residual is p without x. A
// drafter that draws its guesses would have more of them accepted by that rule, at
// the price of another text for the same seed.
func (s *Sampler) Verify(c Chain, guesses []int32) (right int) {
	for {
		r := s.Sample(c.Logits(right))
		if !c.Take(r) || right == len(guesses) || r.Token != guesses[right] {
			return right
		}
		right++
	}
}

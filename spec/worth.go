package spec

// Of several answers at a time, a guess that comes true is worth less than it looks: the
// answer ends a step earlier, but the steps go on with the others, and are shorter by a
// row and no more. It is worth a token's share of a step where another request takes the
// place of one that ends, or where the answer is the one that all steps wait for.

// Weigh sets what a token that guesses save is worth, of each answer under way, 1 for as
// much as one without guesses and 0 for no more than its row. left are the tokens that
// each still gets, and rate those that a step gives it if its guesses are verified, at
// least 1. step counts steps; with queued, requests wait for the places of others.
func (c *Controller) Weigh(worth, left, rate []float64, step int64, queued bool) {
	share := 1.0
	if !queued {
		share = c.seats.taken(step)
	}
	// An answer that takes a step more, without guesses, than any other needs with them
	// keeps all waiting.
	first, second, which := 0.0, 0.0, -1
	for i := range left {
		switch need := left[i] / max(rate[i], 1); {
		case need > first:
			first, second, which = need, first, i
		case need > second:
			second = need
		}
	}
	for i := range left {
		others := first
		if i == which {
			others = second
		}
		if worth[i] = share; left[i] >= others+1 {
			worth[i] = 1
		}
	}
}

// Ended notes that an answer has ended, at a step.
func (c *Controller) Ended(step int64) { c.seats.free(step) }

// Began notes that a request begins. It is alone if no other goes on.
func (c *Controller) Began(step int64, alone bool) {
	if alone {
		c.seats.drop(c.seats.n) // nobody has taken the places of others in time
	}
	c.seats.take(step)
}

// seats learns how often another request takes the place of one that ends while others
// go on.
type seats struct {
	open  [64]int64 // steps at which places became free, the oldest first
	n     int
	share float64
}

const (
	vacant   = 16     // steps after which nobody takes a place
	learning = 1. / 8 // weight of the last place
)

func (s *seats) free(step int64) {
	if s.pass(step); s.n < len(s.open) {
		s.open[s.n] = step
		s.n++
	}
}

func (s *seats) take(step int64) {
	if s.pass(step); s.n > 0 {
		s.fill(1)
		s.share += learning * (1 - s.share)
	}
}

// taken returns how often places are taken.
func (s *seats) taken(step int64) float64 {
	s.pass(step)
	return s.share
}

// pass gives up places that nobody has taken.
func (s *seats) pass(step int64) {
	n := 0
	for n < s.n && step-s.open[n] > vacant {
		n++
	}
	s.drop(n)
}

// drop gives up the first n places.
func (s *seats) drop(n int) {
	for range n {
		s.share -= learning * s.share
	}
	s.fill(n)
}

// fill forgets the first n places.
func (s *seats) fill(n int) {
	copy(s.open[:], s.open[n:s.n])
	s.n -= n
}

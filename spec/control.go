package spec

import "math"

// Controller decides how many guesses steps verify, and sees to it that guessing
// does not lose against not guessing, however wrong predictions are.
//
// It corrects the predicted times of steps by how long those with as many rows
// really took, and books what guesses have gained. A step may risk what is in its
// purse and no more: what guesses have gained, up to some steps, a small part of all
// time, and a little to begin with. (Conservative bandits, Wu et al. 2016, arXiv
// 1602.04282, bound the loss against a known way in the same manner.) Now and then a
// step is without guesses, so that it is known what those take.
type Controller struct {
	// Stretch bounds how many times as long as without guesses a step with some is
	// expected to take: what is gained beyond that must not lengthen the times between
	// tokens. 0 for no bound.
	Stretch float64

	plain, guessing [ratioRows]ratio // of steps without guesses and with some
	all             ratio
	steps           float64 // that were learned from

	seats seats   // places of answers
	purse float64 // time that may be lost, in the unit of costs
	began bool    // it has been filled
	row   int     // steps with guesses, one after the other
}

const (
	ratioRows = 104 // numbers of rows that are told apart
	exactRows = 96  // up to there each
	allowance = .01 // part of the time that may be lost
	endowment = 2   // plain steps that may be lost at the beginning
	fortune   = 4   // plain steps that gains pay for
	control   = 48  // steps with guesses for one without
	outlier   = 1.5 // times as long as usual counts as no more
	memory    = 64  // steps of a kind after which half of it counts
	oblivion  = 512 // steps after which what is known of a kind counts half
	doubt     = 2   // steps of a kind that count as much as all others
	known     = 3   // steps without guesses before there are some
)

// ratio is the mean of measured over predicted times.
type ratio struct{ sum, n, at float64 }

// learn enters a step, now being the number of steps before it.
func (r *ratio) learn(x, now float64) {
	r.fade(now)
	if r.n >= memory {
		r.sum, r.n = r.sum/2, r.n/2
	}
	r.sum, r.n = r.sum+x, r.n+1
}

func (r *ratio) fade(now float64) {
	f := math.Exp2((r.at - now) / oblivion)
	r.sum, r.n, r.at = r.sum*f, r.n*f, now
}

// kindOf returns which ratio is that of steps with so many rows.
func kindOf(rows int) int {
	if rows < exactRows {
		return max(rows, 0)
	}
	return min(exactRows+rows/exactRows-1, ratioRows-1)
}

// ratioOf returns the ratio of steps with so many rows, some of them guesses or not.
func (c *Controller) ratioOf(rows, guesses int) *ratio {
	if guesses > 0 {
		return &c.guessing[kindOf(rows+guesses)]
	}
	return &c.plain[kindOf(rows)]
}

// factor returns how many times as long as predicted steps take.
func (c *Controller) factor(rows, guesses int) float64 {
	all := 1.0
	if c.all.n > 0 {
		all = c.all.sum / c.all.n
	}
	r := *c.ratioOf(rows, guesses)
	r.fade(c.steps)
	return (r.sum + doubt*all) / (r.n + doubt)
}

// Choose is like choose, within what the purse allows. rows are
// those that the step has without guesses.
func (c *Controller) Choose(offers []Offer, tokens, rows int, cost func(more int) float64) (gain float64) {
	plain := cost(0) * c.factor(rows, 0)
	c.fill(plain)
	base := *c.ratioOf(rows, 0)
	base.fade(c.steps)
	if c.row >= control || base.n < known || plain <= 0 {
		begin(offers)
		return 1
	}
	return choose(offers, tokens, func(more int) float64 {
		x := cost(more) * c.factor(rows, more)
		if x-plain > c.purse || c.Stretch > 0 && x > c.Stretch*plain {
			return math.Inf(1)
		}
		return max(x, plain) // rows do not make a step shorter
	})
}

// fill sees to it that there is something to begin with, and no more than some
// steps are worth.
func (c *Controller) fill(plain float64) {
	if plain <= 0 {
		return
	}
	if !c.began {
		c.began, c.purse = true, endowment*plain
	}
	c.purse = min(c.purse, fortune*plain)
}

// Affords says whether so much time may be risked for guesses.
func (c *Controller) Affords(cost float64) bool { return cost <= c.purse }

// Outcome is what became of a step. Times are in the unit of costs.
type Outcome struct {
	Rows      int     // that it had without guesses
	Guesses   int     // that were verified
	Right     float64 // of these, those that came true, each with what it is worth, see Offer
	Redone    int     // rows of tokens that were computed before, and dropped with wrong guesses
	Plain     float64 // predicted time of the step without guesses and without those
	Predicted float64 // predicted time of the step
	Worth     float64 // predicted time of a token without guesses
	Took      float64 // the step
	Drafting  float64 // what making guesses took
}

// Learn books a step. It returns the time that guesses have saved in it, below 0
// for one that they have cost.
func (c *Controller) Learn(o Outcome) (saved float64) {
	if o.Plain <= 0 || o.Predicted <= 0 || o.Took <= 0 {
		return -o.Drafting
	}
	usual := c.factor(o.Rows, o.Guesses)
	x := min(max(o.Took/o.Predicted, usual/outlier), usual*outlier)
	c.steps++
	c.all.learn(x, c.steps)
	c.ratioOf(o.Rows, o.Guesses).learn(x, c.steps)
	factor := c.factor(o.Rows-o.Redone, 0)
	plain := o.Plain * factor
	saved = -o.Drafting
	if c.row++; o.Guesses == 0 {
		c.row = 0
	}
	if o.Guesses+o.Redone > 0 {
		saved += plain + o.Right*o.Worth*factor - x*o.Predicted
	}
	c.fill(plain)
	c.purse += saved + allowance*plain
	return saved
}

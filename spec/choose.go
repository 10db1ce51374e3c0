package spec

// Offer is what one sequence could have verified, and how much of it is.
type Offer struct {
	Guesses []Guess
	Book    *Book
	Worth   float64 // of a token of it, 1 for as much as one without guesses; 0 means 1
	Take    int     // of the guesses, from the first: what choose sets

	chance  float64 // of the next one
	chances [MaxRows]float64
}

// MaxRows bounds the guesses that a step verifies.
const MaxRows = 64

// margin returns the gain below which nothing is verified beside so many tokens: what was
// measured of steps is off by as much, and the best of many is the one that looks better
// than it is, the more so the more answers have guesses.
func margin(tokens int) float64 { return min(1.05+.01*float64(tokens-1), 1.12) }

// choose decides how many guesses of each offer a step verifies: as many as make
// the most tokens in the time of the step. fixed are the tokens that the step gives
// without guesses, and cost is how long it takes with so many rows more, 0 to
// MaxRows, in any unit; 0 if nobody knows. Then, and where a gain would be within
// what such predictions are off, nothing is verified. It returns how many times as
// many tokens in the same time are expected, 1 without guesses.
//
// The guesses of an offer are sorted, see Book.Sort: the chance of a guess is never above
// that of the one before it. So the best n rows are found one by one, the likeliest of
// those that come next first, and all n are compared.
func choose(offers []Offer, fixed int, cost func(rows int) float64) (gain float64) {
	begin(offers)
	plain := cost(0)
	if plain <= 0 || fixed <= 0 {
		return 1
	}
	base := float64(fixed) / plain
	tokens, best, rows := float64(fixed), margin(fixed)*base, 0
	var order [MaxRows]int // whose guess comes next
	for n := 1; n <= MaxRows; n++ {
		which, chance := next(offers)
		if chance == 0 {
			break
		}
		order[n-1] = which
		tokens += chance * offers[which].worth()
		if rate := tokens / cost(n); rate > best {
			best, rows = rate, n
		}
	}
	for i := range offers {
		offers[i].Take = 0
	}
	for _, which := range order[:rows] {
		offers[which].Take++
	}
	if rows == 0 {
		return 1
	}
	return best / base
}

func (o *Offer) worth() float64 {
	if o.Worth == 0 {
		return 1
	}
	return o.Worth
}

// next takes the guess that is worth most of those that may be taken, and returns whose it is and its
// chance, 0 if there is none.
func next(offers []Offer) (which int, chance float64) {
	best := 0.0
	for i := range offers {
		if o := &offers[i]; o.chance*o.worth() > best {
			which, chance, best = i, o.chance, o.chance*o.worth()
		}
	}
	if chance > 0 {
		o := &offers[which]
		if o.Take++; o.Take < min(len(o.Guesses), MaxRows) {
			o.chance = o.chances[o.Take]
		} else {
			o.chance = 0
		}
	}
	return which, chance
}

// begin takes no guess of any.
func begin(offers []Offer) {
	for i := range offers {
		o := &offers[i]
		o.Take, o.chance = 0, 0
		if len(o.Guesses) > 0 {
			o.Book.chances(&o.chances, o.Guesses)
			o.chance = o.chances[0]
		}
	}
}

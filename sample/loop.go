package sample

// The numbers that say what a loop is.
const (
	// LoopTokens is how many tokens a loop covers at least.
	LoopTokens = 400
	// LoopTimes is how often what repeats is there at least.
	LoopTimes = 8
	// LoopPeriod is the longest text that is looked for, in tokens.
	LoopPeriod = 256
)

// Loop notices that an answer only repeats itself. The last n tokens of an answer
// are a loop of period p ≤ LoopPeriod if each but the first p of them is the same
// as the one p before it, n ≥ LoopTokens and n ≥ LoopTimes·p. So the same text has
// come at least eight times without a token between, over at least 400 tokens: no
// table, list or program whose rows differ in anything, a number say, is one. The
// zero value has seen nothing. It is not safe for concurrent use.
type Loop struct {
	n int // tokens seen
	// recent has the last LoopPeriod tokens twice, so that they are in one piece,
	// oldest first, from any place of the first half.
	recent [2 * LoopPeriod]int32
	// same is, for the periods LoopPeriod to 1, how many of the last tokens are the
	// same as the ones a period before them.
	same [LoopPeriod]int32
}

// Add takes the next token of an answer and returns the shortest period of the
// loop that the answer ends in, 0 if it does not. It compares the token with
// LoopPeriod others and allocates nothing.
func (l *Loop) Add(token int32) (period int) {
	at := l.n % LoopPeriod
	none := LoopPeriod - min(l.n, LoopPeriod) // periods longer than the answer
	before, same := l.recent[at:at+LoopPeriod], &l.same
	for i := none; i < len(before) && i < len(same); i++ {
		if before[i] != token {
			same[i] = 0
			continue
		}
		same[i]++
		p := LoopPeriod - i
		if n := int(same[i]) + p; n >= LoopTokens && n >= LoopTimes*p {
			period = p
		}
	}
	l.recent[at], l.recent[at+LoopPeriod] = token, token
	l.n++
	return period
}

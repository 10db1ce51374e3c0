package engine

// weigh sets what a token that guesses save is worth, of each sequence that runs. See
// spec.Controller.Weigh.
func (e *Engine) weigh() {
	running, lengths := e.sched.RunningSeqs(), e.sched.Lengths()
	for i := range e.weights {
		e.weights[i] = e.weights[i][:0]
	}
	worth, left, rate := &e.weights[0], &e.weights[1], &e.weights[2]
	for _, s := range running {
		const most = 90 // percent of answers that are no longer
		*worth = append(*worth, 0)
		*left = append(*left, float64(max(lengths.Quantile(s, most)-s.Generated(), 1)))
		*rate = append(*rate, e.seqs[s].drafts.rate)
	}
	e.control.Weigh(*worth, *left, *rate, e.counts.steps, e.waiting.Load() > 0)
	for i, s := range running {
		e.seqs[s].drafts.worth = (*worth)[i]
	}
}

// follow notes how many tokens of what came were guessed, verified or not, by those of the
// guesses that are worth their rows: what a step gives whose guesses are verified.
func (d *drafts) follow(came []int32) {
	const steps = 32 // that the mean is of: what comes true for a while does not go on
	d.rate = max(d.rate, 1)
	d.rate += (1 + float64(d.book.Reach(d.guesses[:min(d.paying, len(d.guesses))], came)) - d.rate) / steps
}

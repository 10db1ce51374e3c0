package drafts

import (
	"slices"
	"time"
)

// Row is what was measured of the prompts of a category, or of all. Times are 0 where
// there were none of these prompts alone.
type Row struct {
	Setting   string   `json:"setting"`
	Batch     int      `json:"batch"`
	Most      int      `json:"most,omitempty"` // see Config
	Category  string   `json:"category"`
	Prompts   int      `json:"prompts"`
	Tokens    int      `json:"tokens"`       // of answers
	Guessed   int      `json:"guessed"`      // tokens that were guessed and computed
	Accepted  int      `json:"accepted"`     // of these, those that came true
	Share     float64  `json:"share"`        // Accepted of Guessed
	Alpha     float64  `json:"alpha"`        // of the places that something was guessed of, those where it came true: what a guess's chance is in Leviathan et al.
	Length    float64  `json:"length"`       // tokens that a step with guesses gave
	PerStep   float64  `json:"per_step"`     // tokens that a step of a sequence gave, the first token of each answer not counted
	Plain     float64  `json:"plain_tps"`    // tokens a second without guesses
	Drafted   float64  `json:"draft_tps"`    // with guesses
	Speed     float64  `json:"speed"`        // their ratio: of all times
	Median    float64  `json:"median"`       // median of the ratios of pairs
	Low       float64  `json:"low"`          // the lower quartile of those
	CPU       float64  `json:"cpu"`          // ratio of processor times, which others on the machine disturb less
	CPUMedian float64  `json:"cpu_median"`   // median of those of pairs
	PlainP99  float64  `json:"plain_p99_ms"` // 99th percentile of the times between tokens without guesses
	DraftP99  float64  `json:"draft_p99_ms"` // with guesses
	Drafting  float64  `json:"drafting"`     // part of the time with guesses that making them took
	Build     float64  `json:"build_s"`      // seconds that making the drafter ready took
	Estimated float64  `json:"estimated"`    // ratio that the engine has estimated itself
	Steps     [2]int64 `json:"steps"`        // of the engine, without guesses and with: of answers at a time the longest counts
	Different int      `json:"different"`    // answers that were not the same

	verified, places int
	sides            [2]Side // sums
	ratios, cpus     []float64
}

// table collects rows.
type table struct {
	c     *Config
	rows  map[string]*Row
	order []string
}

// all is the row of all prompts.
const all = "all"

func newTable(c *Config) *table { return &table{c: c, rows: map[string]*Row{}} }

func (t *table) row(category string) *Row {
	r := t.rows[category]
	if r == nil {
		r = &Row{Setting: t.c.Setting, Batch: t.c.Batch, Most: t.c.Most, Category: category}
		t.rows[category], t.order = r, append(t.order, category)
	}
	return r
}

// add enters a pair. Its times are those of its category, if it has one, and of all.
func (t *table) add(batch []Prompt, p *pair) {
	for i := range batch {
		t.row(batch[i].Category).count(&p.Answers[i])
		t.row(all).count(&p.Answers[i])
	}
	if t.c.Rounds == 0 {
		return
	}
	t.row(all).time(p)
	if !t.c.Mixed {
		t.row(batch[0].Category).time(p)
	}
}

// count enters an answer.
func (r *Row) count(o *outcome) {
	r.Prompts++
	r.Tokens += o.Tokens
	r.Guessed, r.Accepted = r.Guessed+o.Guessed, r.Accepted+o.Right
	r.verified, r.places = r.verified+o.Verified, r.places+o.Places
	if o.Different {
		r.Different++
	}
}

// time enters how long a pair took.
func (r *Row) time(p *pair) {
	for i, s := range [2]*Side{&p.Plain, &p.Drafted} {
		sum := &r.sides[i]
		sum.Took, sum.CPU, sum.Saved, sum.Drafting = sum.Took+s.Took, sum.CPU+s.CPU, sum.Saved+s.Saved, sum.Drafting+s.Drafting
		sum.Steps += s.Steps
		sum.Gaps = append(sum.Gaps, s.Gaps...)
	}
	if p.Plain.Took > 0 && p.Drafted.Took > 0 {
		r.ratios = append(r.ratios, p.Plain.Took.Seconds()/p.Drafted.Took.Seconds())
		r.cpus = append(r.cpus, ratio(p.Plain.CPU.Seconds(), p.Drafted.CPU.Seconds()))
	}
}

// finish returns the rows, that of all last.
func (t *table) finish() (out []Row) {
	t.order = append(slices.DeleteFunc(t.order, func(s string) bool { return s == all }), all)
	for _, name := range t.order {
		r := t.row(name)
		r.finish()
		r.share(max(t.c.Rounds, 1))
		out = append(out, *r)
	}
	return out
}

// finish computes what follows from the sums.
func (r *Row) finish() {
	after := float64(r.Tokens - r.Prompts) // the first of each comes with the prompt
	plain, drafted := &r.sides[0], &r.sides[1]
	r.Share = ratio(float64(r.Accepted), float64(r.Guessed))
	r.Alpha = ratio(float64(r.Accepted), float64(r.places))
	r.Length = ratio(float64(r.verified+r.Accepted), float64(r.verified))
	r.PerStep = ratio(after, after-float64(r.Accepted))
	if plain.Took > 0 {
		r.Plain, r.Drafted = ratio(after, plain.Took.Seconds()), ratio(after, drafted.Took.Seconds())
	}
	r.Speed = ratio(r.Drafted, r.Plain)
	r.Steps = [2]int64{plain.Steps, drafted.Steps}
	r.CPU = ratio(plain.CPU.Seconds(), drafted.CPU.Seconds())
	r.Drafting = ratio(drafted.Drafting.Seconds(), drafted.Took.Seconds())
	r.Estimated = ratio((drafted.Took + drafted.Saved).Seconds(), drafted.Took.Seconds())
	if n := len(r.ratios); n > 0 {
		slices.Sort(r.ratios)
		slices.Sort(r.cpus)
		r.Median, r.Low, r.CPUMedian = (r.ratios[(n-1)/2]+r.ratios[n/2])/2, r.ratios[n/4], (r.cpus[(n-1)/2]+r.cpus[n/2])/2
	}
	r.PlainP99, r.DraftP99 = p99(plain.Gaps), p99(drafted.Gaps)
}

// share makes the counts of so many rounds those of one.
func (r *Row) share(rounds int) {
	for _, n := range []*int{&r.Prompts, &r.Tokens, &r.Guessed, &r.Accepted} {
		*n /= rounds
	}
	for i := range r.Steps {
		r.Steps[i] /= int64(rounds)
	}
}

// p99 returns the 99th percentile in milliseconds.
func p99(gaps []time.Duration) float64 {
	if len(gaps) == 0 {
		return 0
	}
	slices.Sort(gaps)
	return gaps[(len(gaps)-1)*99/100].Seconds() * 1e3
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

package sched

import "math/bits"

const (
	lengthBins = 4*24 + 4 // four for each doubling
	promptBins = 12
	tenantBins = 16
	decay      = 1 << 12 // a histogram is halved when it has so many answers
	borrow     = 8       // answers' worth of the common histogram in each
)

// LengthModel learns how long answers become, from those that are finished:
// one histogram for all, and one for each group of tenants and size of prompt.
// Old answers fade. It tells a quantile of the length of an answer, given how
// long it is already.
type LengthModel struct {
	all       histogram
	groups    [tenantBins][promptBins]histogram
	deciles   [10]int64
	finished  int64
	misjudged int64 // sum of |length - expected|
}

type histogram struct {
	count [lengthBins]uint32
	total uint32
}

// NewLengthModel returns a model that has seen no answers.
func NewLengthModel() *LengthModel { return &LengthModel{} }

// Known says whether the model has seen an answer.
func (m *LengthModel) Known() bool { return m.all.total > 0 }

// bin returns the bin of a length: quarters of the range between powers of two.
func bin(n int) int {
	n = max(n, 1)
	e := bits.Len(uint(n)) - 1
	if e < 2 {
		return min(n-1, 3)
	}
	return min(4*(e-1)+(n>>(e-2))&3, lengthBins-1)
}

// binEnd returns the largest length of a bin.
func binEnd(b int) int {
	if b < 4 {
		return b + 1
	}
	e, quarter := b/4+1, b%4
	return (4+quarter+1)<<(e-2) - 1
}

func (h *histogram) add(b int) {
	h.count[b]++
	if h.total++; h.total >= decay {
		h.total = 0
		for i := range h.count {
			h.count[i] /= 2
			h.total += h.count[i]
		}
	}
}

func (m *LengthModel) group(q *Seq) *histogram {
	h := uint32(2166136261)
	for i := range len(q.Tenant) {
		h = (h ^ uint32(q.Tenant[i])) * 16777619
	}
	return &m.groups[h%tenantBins][min(bits.Len(uint(q.Prompt)), promptBins-1)]
}

// weight returns the weight of bin b for the group g: its own answers, and
// those of all as if they were a few more.
func (m *LengthModel) weight(g *histogram, b int) int64 {
	return int64(g.count[b])*int64(m.all.total) + borrow*int64(m.all.count[b])
}

// Quantile returns a length that the answer of q exceeds with a chance of
// 100-percent in a hundred, if it goes on as others did: more than it has now,
// and at most MaxNew, which is also the answer while nothing is known. One that
// is longer than all others is expected to become twice as long.
func (m *LengthModel) Quantile(q *Seq, percent int) int {
	now := q.Generated()
	if m.all.total == 0 {
		return q.MaxNew
	}
	g, first := m.group(q), bin(now+1)
	total := int64(0)
	for b := first; b < lengthBins; b++ {
		total += m.weight(g, b)
	}
	if total == 0 {
		return min(2*now, q.MaxNew)
	}
	sum := int64(0)
	for b := first; b < lengthBins; b++ {
		if sum += m.weight(g, b); sum*100 >= total*int64(percent) {
			return max(min(binEnd(b), q.MaxNew), min(now+1, q.MaxNew))
		}
	}
	return q.MaxNew
}

// Expect returns the median of Quantile.
func (m *LengthModel) Expect(q *Seq) int { return m.Quantile(q, 50) }

// Observe learns from a sequence that is finished.
func (m *LengthModel) Observe(q *Seq) {
	n := q.Generated()
	if n < 1 {
		return
	}
	if m.all.total > 0 {
		m.score(q, n)
	}
	b := bin(n)
	m.all.add(b)
	m.group(q).add(b)
}

// score judges what would have been said of q when it came.
func (m *LengthModel) score(q *Seq, n int) {
	g, b := m.group(q), bin(n)
	below, total := int64(0), int64(0)
	for i := range lengthBins {
		w := m.weight(g, i)
		total += w
		if i < b {
			below += w
		}
	}
	below += m.weight(g, b) / 2
	m.deciles[min(below*10/max(total, 1), 9)]++
	m.finished++
	fresh := Seq{Tenant: q.Tenant, Prompt: q.Prompt, Wanted: q.Prompt, MaxNew: q.MaxNew}
	d := int64(n - m.Expect(&fresh))
	m.misjudged += max(d, -d)
}

// Calibration returns how many answers ended in each tenth of the distribution
// that was expected of them: equal numbers if the expectations are right. It
// also returns the number of answers and the mean distance, in tokens, between
// their lengths and the expected ones.
func (m *LengthModel) Calibration() (deciles [10]int64, answers int64, distance int64) {
	return m.deciles, m.finished, m.misjudged / max(m.finished, 1)
}

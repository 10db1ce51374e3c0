package sim

import (
	"math"
	"math/rand/v2"
	"time"
)

// Load makes workloads. The zero value of a field means none of it.
type Load struct {
	Jobs int
	Rate float64 // arrivals per second, Poisson; 0 means all at once
	Seed uint64

	Prompt, Answer Lengths
	Tenant         string
}

// Lengths is a distribution of lengths.
type Lengths struct {
	Median float64
	Sigma  float64 // of a log-normal distribution; 0 means all are equal
	Max    int     // 0 for no limit

	// Every LongEvery-th is Long instead; 0 for none.
	Long, LongEvery int
}

func (l Lengths) draw(rng *rand.Rand, i int) int {
	if l.LongEvery > 0 && i%l.LongEvery == l.LongEvery-1 {
		return l.Long
	}
	n := max(int(math.Round(l.Median*math.Exp(l.Sigma*rng.NormFloat64()))), 1)
	if l.Max > 0 {
		n = min(n, l.Max)
	}
	return n
}

// Make returns the jobs, in the order of their arrival.
func (l Load) Make() []Job {
	rng := rand.New(rand.NewPCG(l.Seed, 11))
	jobs := make([]Job, l.Jobs)
	at := 0.0
	for i := range jobs {
		if l.Rate > 0 {
			at += rng.ExpFloat64() / l.Rate
		}
		jobs[i] = Job{Arrive: time.Duration(at * float64(time.Second)), Prompt: l.Prompt.draw(rng, i), Answer: l.Answer.draw(rng, i), Tenant: l.Tenant}
	}
	return jobs
}

// ShareGPT has lengths like those of recorded conversations.
func ShareGPT(jobs int, rate float64, seed uint64) []Job {
	return Load{Jobs: jobs, Rate: rate, Seed: seed, Prompt: Lengths{Median: 120, Sigma: 1.2, Max: 1024}, Answer: Lengths{Median: 170, Sigma: 1, Max: 1024}}.Make()
}

// Merge joins workloads by time of arrival.
func Merge(loads ...[]Job) []Job {
	var all []Job
	for {
		best := -1
		for i, l := range loads {
			if len(l) > 0 && (best < 0 || l[0].Arrive < loads[best][0].Arrive) {
				best = i
			}
		}
		if best < 0 {
			return all
		}
		all = append(all, loads[best][0])
		loads[best] = loads[best][1:]
	}
}

package load

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

func newRand(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }

// intrude keeps streams of answers running. Long prompts enter one after the
// other, each when all streams have run undisturbed for a time. The last one's
// first token ends the run.
func (r *runner) intrude(ctx context.Context) {
	w := &r.o.Workload
	r.beside(ctx, func() {
		for i := range w.Intruders {
			if !sleep(ctx, w.After) {
				break
			}
			s := w.long(i)
			due := r.now()
			rec := r.ask(ctx, &said{}, &s.Turns[0])
			rec.Session, rec.Group, rec.Due, rec.Intruder = i, -1, due, true
			r.keep(rec)
		}
	})
}

// agents keeps streams of answers running. When they have run undisturbed for a time,
// all agents come, and the last one's last answer ends the run.
func (r *runner) agents(ctx context.Context) {
	w := &r.o.Workload
	r.beside(ctx, func() {
		if !sleep(ctx, w.After) {
			return
		}
		var wg sync.WaitGroup
		for i := range w.Intruders {
			wg.Go(func() { r.session(ctx, w.agent(i), r.now(), true) })
		}
		wg.Wait()
	})
}

// beside keeps streams of answers running while do runs, which begins when all of them
// show text.
func (r *runner) beside(ctx context.Context, do func()) {
	w := &r.o.Workload
	streams, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	var begun sync.WaitGroup // streams that show text
	begun.Add(w.Streams)
	next := make(chan int)
	go func() {
		for i := 0; ; i++ {
			select {
			case next <- i:
			case <-streams.Done():
				return
			}
		}
	}()
	for range w.Streams {
		wg.Go(func() {
			first := sync.OnceFunc(begun.Done)
			defer first()
			for {
				select {
				case i := <-next:
					r.stream(streams, w.Session(i), first)
				case <-streams.Done():
					return
				}
			}
		})
	}
	begun.Wait()
	do()
	stop()
	wg.Wait()
}

// stream is one answer under way; begun is called for each piece of it.
func (r *runner) stream(ctx context.Context, s Session, begun func()) {
	r.running.Add(1)
	due := r.now()
	rec := r.o.Target.do(ctx, r.now, &said{}, &s.Turns[0], r.o.Timeout, func() { r.pieces.Add(1); begun() })
	r.running.Add(-1)
	rec.Session, rec.Group, rec.Due = s.ID, s.Group, due
	r.keep(rec)
	r.sessions.Add(1)
	if rec.Failure != "" {
		// A server that refuses is not asked a thousand times a second.
		sleep(ctx, 100*time.Millisecond)
	}
}

// Disturbance is what an intruder, or agents, do to the streams that run.
type Disturbance struct {
	Before  Dist    `json:"itl_before_ms"` // of the streams, until the first intruder
	While   Dist    `json:"itl_while_ms"`  // from its request to its first token, or an agent's last one, all together
	TTFT    Dist    `json:"intruder_ttft_ms"`
	Prompt  int     `json:"intruder_prompt_tokens"`
	Slower  float64 `json:"p99_while_over_before"`
	Stalled float64 `json:"longest_gap_ms"`
	Silent  float64 `json:"longest_silence_ms"` // in which an intruder heard nothing, no progress either
}

// disturbance sorts the times between pieces of the streams by whether a long
// prompt was being read, or, if whole, answered.
func disturbance(records []Record, whole bool) *Disturbance {
	type span struct{ from, to time.Duration }
	var spans []span
	var ttft []float64
	d := &Disturbance{}
	for i := range records {
		if q := &records[i]; q.Intruder && q.First > 0 {
			to := q.First
			if whole {
				to = q.Last
			}
			spans = append(spans, span{q.Sent, to})
			ttft = append(ttft, ms(q.First-q.Sent))
			d.Prompt, d.Silent = max(d.Prompt, q.Prompt), max(d.Silent, ms(q.Silent))
		}
	}
	if len(spans) == 0 {
		return d
	}
	first := spans[0].from
	for _, s := range spans {
		first = min(first, s.from)
	}
	var before, while []float64
	for i := range records {
		q := &records[i]
		if q.Intruder || q.Failure != "" {
			continue
		}
		for k := 1; k < len(q.Pieces); k++ {
			from, to := q.Pieces[k-1], q.Pieces[k]
			in := false
			for _, s := range spans {
				in = in || to > s.from && from < s.to
			}
			switch {
			case in:
				while = append(while, ms(to-from))
			case to <= first:
				before = append(before, ms(to-from))
			}
		}
	}
	d.Before, d.While, d.TTFT = DistOf(before), DistOf(while), DistOf(ttft)
	d.Stalled = d.While.Max
	if d.Before.P99 > 0 {
		d.Slower = d.While.P99 / d.Before.P99
	}
	return d
}

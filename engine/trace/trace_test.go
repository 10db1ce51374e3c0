package trace

import (
	"math"
	"testing"
	"time"
)

// To remember a step allocates nothing, what was overwritten is not told, and the sums
// are those of a naive count.
func TestRing(t *testing.T) {
	r := New(40)
	var rows []Row
	for i := range 40 {
		rows = append(rows, Row{ID: "x", Choice: int32(i), Kind: Decode, Tokens: 1, Context: int32(i + 1)})
	}
	steps := int64(0)
	if n := testing.AllocsPerRun(500, func() {
		steps++
		r.Move(Admitted, "y", "", 0)
		r.Record(Step{Took: time.Second}, rows)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	got := r.Steps(0, math.MaxInt)
	if want := rowsKept / 41; len(got) != want || got[len(got)-1].N != steps {
		t.Errorf("%d steps are remembered, the last is %d; want %d and %d", len(got), got[len(got)-1].N, want, steps)
	}
	for _, s := range got {
		if len(s.Rows) != 40 || len(s.Admitted) != 1 || s.Rows[39].Context != 40 || s.Rows[39].Choice != 39 {
			t.Fatalf("%+v", s)
		}
	}
	if r.Steps(steps, 10) != nil || len(r.Steps(steps-5, 2)) != 2 {
		t.Error("steps that were not asked for")
	}
	if got, want := r.Decode(), (Totals{steps, 40 * steps, 820 * steps, time.Duration(steps) * time.Second}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	r.Record(Step{Took: time.Second}, []Row{{Kind: Prefill, Tokens: 3, Context: 9}})
	if r.Decode().Steps != steps || r.Steps(0, 1)[0].Rows[0].keys() != 7+8+9 {
		t.Errorf("%+v, %+v", r.Decode(), r.Steps(0, 1))
	}
	for range 2 * movesKept { // as when as many clients leave at once
		r.Move(Finished, "z", "", 0)
	}
	r.Record(Step{}, rows)
	if s := r.Steps(0, 1)[0]; len(s.Finished) != movesKept || len(s.Rows) != 40 {
		t.Errorf("%d rows, %d ended", len(s.Rows), len(s.Finished))
	}
}

// BenchmarkRecord remembers a step of 32 sequences.
func BenchmarkRecord(b *testing.B) {
	r := New(64)
	rows := make([]Row, 32)
	for i := range rows {
		rows[i] = Row{ID: "some-id", Choice: int32(i), Kind: Decode, Tokens: 1, Context: 1000}
	}
	for b.Loop() {
		r.Record(Step{Took: time.Millisecond}, rows)
	}
}

// BenchmarkSteps looks at 50 steps of 32 sequences.
func BenchmarkSteps(b *testing.B) {
	r := New(64)
	rows := make([]Row, 32)
	for range 100 {
		r.Record(Step{Took: time.Millisecond}, rows)
	}
	for b.Loop() {
		r.Steps(50, 50)
	}
}

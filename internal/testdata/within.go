package testdata

import (
	"testing"
	"time"

	"ridge/internal/cpu"
)

// Within fails the test if do takes more processor time than limit, which should
// be many times what it takes on a slow machine: it is for work that grows out of
// all bounds if it is not bounded. What else runs on the machine does not count,
// but where the system does not tell the processor time of a process.
func Within(t testing.TB, limit time.Duration, what string, do func()) {
	t.Helper()
	begin, used := time.Now(), cpu.Time()
	do()
	took := time.Since(begin)
	if used > 0 {
		took = cpu.Time() - used
	}
	if took > limit {
		t.Errorf("%s took %v of processor time, want at most %v", what, took.Round(time.Millisecond), limit)
	}
}

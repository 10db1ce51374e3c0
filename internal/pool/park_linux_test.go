package pool

import (
	"syscall"
	"testing"
	"time"
)

func processorTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestIdlePoolSleeps(t *testing.T) {
	p := New(4)
	defer p.Close()
	p.Run(&empty{})
	time.Sleep(5 * time.Millisecond)
	before := processorTime(t)
	time.Sleep(200 * time.Millisecond)
	if used := processorTime(t) - before; used > 50*time.Millisecond {
		t.Errorf("an idle pool used %v of processor time in 200 ms", used)
	}
}

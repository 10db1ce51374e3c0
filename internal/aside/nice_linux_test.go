package aside

import (
	"context"
	"testing"

	"golang.org/x/sys/unix"
)

// Work aside gives way, and nothing else does.
func TestGiveWay(t *testing.T) {
	priority := func() int {
		n, err := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
		if err != nil {
			t.Error(err) // not of the test's goroutine
		}
		return 20 - n
	}
	before := priority()
	err := NewLane(1).Run(t.Context(), func(ctx context.Context) error {
		if n := priority(); n != min(before+nice, 19) {
			t.Errorf("aside: nice %d, before %d", n, before)
		}
		return Back(ctx, func() error {
			if n := priority(); n != before {
				t.Errorf("back: nice %d, before %d", n, before)
			}
			return nil
		})
	})
	if n := priority(); err != nil || n != before {
		t.Errorf("after: nice %d, before %d, %v", n, before, err)
	}
}

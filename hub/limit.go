package hub

import (
	"context"
	"sync"
	"time"
)

// limiter shares a byte rate among all connections of one Resolve. A nil
// limiter does not limit.
type limiter struct {
	mu   sync.Mutex
	rate float64   // bytes a second
	next time.Time // when the bytes granted so far are paid for
}

func newLimiter(rate int64) *limiter {
	if rate <= 0 {
		return nil
	}
	return &limiter{rate: float64(rate)}
}

// chunk is the largest read to do at once, so that a slow limit is smooth.
func (l *limiter) chunk(most int) int {
	if l == nil {
		return most
	}
	return min(most, max(512, int(l.rate/20)))
}

// wait accounts for n bytes that arrived and sleeps until they were due.
func (l *limiter) wait(ctx context.Context, n int) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	now := time.Now()
	if l.next.Before(now) {
		l.next = now
	}
	l.next = l.next.Add(time.Duration(float64(n) / l.rate * float64(time.Second)))
	due := l.next
	l.mu.Unlock()
	return sleep(ctx, due.Sub(now))
}

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

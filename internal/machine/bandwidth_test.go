package machine

import (
	"testing"
	"time"
)

func TestReadBandwidth(t *testing.T) {
	for _, threads := range []int{1, 2} {
		if got := ReadBandwidth(threads, 8<<20, 10*time.Millisecond); got < 1e8 {
			t.Errorf("%d threads read %.0f bytes per second", threads, got)
		}
	}
}

func TestSumWordsReadsEverything(t *testing.T) {
	b := make([]byte, 1024)
	for i := 0; i < len(b); i += 8 {
		b[i] = 1
	}
	if got := sumWords(b); got != 128 {
		t.Errorf("sum of 128 words of 1 is %d", got)
	}
}

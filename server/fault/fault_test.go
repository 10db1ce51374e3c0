package fault

import (
	"net/http"
	"testing"
	"time"
)

// Clients are told to try again where that helps soon.
func TestRetryOfLongWaits(t *testing.T) {
	for wait, again := range map[time.Duration]string{time.Second: "true", 10 * time.Hour: "false"} {
		h := http.Header{}
		TooMany(wait, "wait").SetRetry(h)
		if got := h.Get("X-Should-Retry"); got != again {
			t.Errorf("%v: got %s, want %s", wait, got, again)
		}
	}
}

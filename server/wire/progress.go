package wire

import "time"

// Progress says how far a prompt is, with llama-server's names.
type Progress struct {
	Total     int   `json:"total"`
	Cached    int   `json:"cache"`
	Processed int   `json:"processed"` // the cached ones too
	MS        int64 `json:"time_ms"`   // since the first time that it was told
}

// PromptClock tells the progress of one prompt. The zero value is ready.
type PromptClock struct{ begun time.Time }

// Tell returns a report: of total tokens so many are processed, the cached ones too.
func (c *PromptClock) Tell(total, cached, processed int) *Progress {
	if c.begun.IsZero() {
		c.begun = time.Now()
	}
	return &Progress{total, cached, processed, time.Since(c.begun).Milliseconds()}
}

package safetensors

import (
	"path/filepath"
	"strings"
	"testing"

	"ridge/internal/badfiles"
)

// FuzzIndex reads any bytes as the index of a sharded model.
func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"metadata":{"total_size":16,"x":[1,{"y":null}]},"weight_map":{"a":"b.safetensors","\u00e9":"b.safetensors"}}`))
	for _, c := range badfiles.For(badfiles.Safetensors) {
		if strings.HasSuffix(c.Open, indexSuffix) {
			f.Add(c.Files[c.Open])
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := readIndex("hostile", b)
		if err != nil {
			if msg := err.Error(); !strings.HasPrefix(msg, "safetensors: hostile: ") || strings.ContainsAny(msg, "\n\r\x00\x1b") {
				t.Errorf("message %q", msg)
			}
			return
		}
		seen := map[string]bool{}
		for _, e := range entries {
			if seen[e.tensor] || !filepath.IsLocal(e.file) || strings.ContainsAny(e.file, `/\`) {
				t.Errorf("entry %q in %q", e.tensor, e.file)
			}
			seen[e.tensor] = true
		}
	})
}

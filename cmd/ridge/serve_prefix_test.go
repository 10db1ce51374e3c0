package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPrefixFlags(t *testing.T) {
	data := t.TempDir()
	for _, c := range []struct {
		pin, store, want string
		share            float64
		bytes            int64
		folder           string
	}{
		{"50%", "", "", .5, 0, ""}, {"0", "", "", 0, 0, ""}, {"64M", "", "", 0, 64 << 20, ""}, {"1%", "1G", "", .01, 0, "prefixes"},
		{"1%", "1G=" + filepath.Join(data, "own"), "", .01, 0, "own"},
		{"101%", "", `--pin-prefix: expected bytes or 0% to 100%, found "101%"`, 0, 0, ""}, {"x%", "", "--pin-prefix", 0, 0, ""}, {"x", "", "--pin-prefix", 0, 0, ""}, {"NaN%", "", "--pin-prefix", 0, 0, ""},
		{"0", "x", "--prefix-disk: expected a number of bytes", 0, 0, ""}, {"0", "1G=", "--prefix-disk: expected a folder behind =, found nothing", 0, 0, ""},
	} {
		f := prefixFlags{pinPart: c.pin, store: c.store}
		err := f.openPrefixes(data, func(string) {})
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q, %q: got %v, expected %q", c.pin, c.store, err, c.want)
			}
			continue
		}
		if err != nil || f.share != c.share || f.bytes != c.bytes || (f.folder != nil) != (c.folder != "") {
			t.Errorf("%q, %q: got %+v, %v", c.pin, c.store, f, err)
		}
		if c.folder != "" {
			if st, err := os.Stat(filepath.Join(data, c.folder)); err != nil || !st.IsDir() {
				t.Errorf("%q: no folder: %v", c.store, err)
			}
		}
	}
}

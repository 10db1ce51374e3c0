package hub

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"regexp"
)

// contentRange reads "bytes a-b/total" and "bytes */total"; total is -1 for *.
func contentRange(s string) (start, total int64, err error) {
	var end int64
	switch {
	case scan(s, "bytes %d-%d/%d", &start, &end, &total), scan(s, "bytes %d-%d/*", &start, &end):
		if start < 0 || end < start || (total != 0 && total <= end) {
			return 0, 0, fmt.Errorf("Content-Range: bad value %q", s)
		}
		if total == 0 {
			total = -1
		}
		return start, total, nil
	case scan(s, "bytes */%d", &total) && total >= 0:
		return 0, total, nil
	}
	return 0, 0, fmt.Errorf("Content-Range: expected bytes first-last/total, found %q", s)
}

func scan(s, format string, a ...any) bool {
	n, err := fmt.Sscanf(s, format, a...)
	return err == nil && n == len(a)
}

var hashedQuery = regexp.MustCompile(`^sha256-[0-9a-f]{16}$`)

// stripSecrets leaves passwords and signatures out of what is written to disk.
func stripSecrets(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	u.User, u.Fragment = nil, ""
	if u.RawQuery != "" && !hashedQuery.MatchString(u.RawQuery) { // tells two files apart without being kept
		sum := sha256.Sum256([]byte(u.RawQuery))
		u.RawQuery = "sha256-" + hex.EncodeToString(sum[:8])
	}
	return u.String()
}

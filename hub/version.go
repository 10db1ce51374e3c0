package hub

import (
	"regexp"
	"strconv"
	"strings"
)

// version is a package version after PEP 440, as far as ordering and spotting
// pre-releases needs it.
type version struct {
	epoch   int
	release []int
	pre     [2]int // kind (dev-only -1, a 0, b 1, rc 2, none 3), number
	post    int    // -1 none
	dev     int    // large for none: a dev release comes before its release
}

var versionForm = regexp.MustCompile(`^v?(?:(\d{1,9})!)?(\d{1,9}(?:\.\d{1,9})*)` +
	`(?:[-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?(\d{0,9}))?` +
	`(?:[-_.]?(?:post|rev|r)[-_.]?(\d{0,9})|-(\d{1,9}))?` +
	`(?:[-_.]?dev[-_.]?(\d{0,9}))?(?:\+[a-z0-9._-]+)?$`)

const noDev = 1 << 30

func parseVersion(s string) (version, bool) {
	m := versionForm.FindStringSubmatch(strings.ToLower(strings.TrimSpace(s)))
	if m == nil {
		return version{}, false
	}
	v := version{post: -1, dev: noDev, pre: [2]int{3, 0}}
	v.epoch = atoi(m[1])
	for part := range strings.SplitSeq(m[2], ".") {
		v.release = append(v.release, atoi(part))
	}
	for n := len(v.release); n > 1 && v.release[n-1] == 0; n-- { // 1.0 equals 1
		v.release = v.release[:n-1]
	}
	lower := strings.ToLower(s)
	switch m[3] {
	case "a", "alpha":
		v.pre = [2]int{0, atoi(m[4])}
	case "b", "beta":
		v.pre = [2]int{1, atoi(m[4])}
	case "c", "rc", "pre", "preview":
		v.pre = [2]int{2, atoi(m[4])}
	}
	if m[5] != "" || m[6] != "" || strings.Contains(lower, "post") {
		v.post = atoi(m[5] + m[6])
	}
	if strings.Contains(lower, "dev") {
		v.dev = atoi(m[7])
		if m[3] == "" && v.post < 0 {
			v.pre[0] = -1
		}
	}
	return v, true
}

func atoi(s string) int { n, _ := strconv.Atoi(s); return n }

func (v version) prerelease() bool { return v.pre[0] < 3 || v.dev != noDev }

// compare orders versions; negative if v is older than w.
func (v version) compare(w version) int {
	if v.epoch != w.epoch {
		return v.epoch - w.epoch
	}
	for i := range max(len(v.release), len(w.release)) {
		a, b := 0, 0
		if i < len(v.release) {
			a = v.release[i]
		}
		if i < len(w.release) {
			b = w.release[i]
		}
		if a != b {
			return a - b
		}
	}
	for _, d := range [...]int{v.pre[0] - w.pre[0], v.pre[1] - w.pre[1], v.post - w.post, v.dev - w.dev} {
		if d != 0 {
			return d
		}
	}
	return 0
}

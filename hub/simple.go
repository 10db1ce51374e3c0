package hub

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"mime"
	"net/url"
	"regexp"
	"strings"
)

const (
	simpleAccept = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
	maxLinks     = 200_000
)

// wheel is one wheel file that an index or a folder offers.
type wheel struct {
	filename string
	url      string // where to fetch it, with the index's credentials if it has the same host
	local    string // its path, for a wheel on this machine; then url is ""
	sha256   string // "" if the index does not tell
	size     int64  // -1 if the index does not tell
	version  version
	verText  string
	yanked   bool
	anyOS    bool // py3-none-any, or the like
}

// parseSimple reads a project's page of the simple API, JSON (PEP 691) or HTML
// (PEP 503), into the wheels of the project. base is the page's final URL.
func parseSimple(body []byte, contentType string, base *url.URL, project string) ([]wheel, error) {
	mediaType, _, _ := mime.ParseMediaType(contentType)
	if strings.HasSuffix(mediaType, "json") || bytes.HasPrefix(body, []byte("{")) {
		return parseSimpleJSON(body, base, project)
	}
	return parseSimpleHTML(body, base, project)
}

func parseSimpleJSON(body []byte, base *url.URL, project string) ([]wheel, error) {
	var page struct {
		Meta struct {
			Version string `json:"api-version"`
		} `json:"meta"`
		Files []struct {
			Filename string            `json:"filename"`
			URL      string            `json:"url"`
			Hashes   map[string]string `json:"hashes"`
			Size     *int64            `json:"size"`
			Yanked   any               `json:"yanked"`
		} `json:"files"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, fmt.Errorf("%s: not a JSON page of the simple API: %w", cleanURL(base), err)
	}
	if v := page.Meta.Version; v != "" && !strings.HasPrefix(v, "1.") {
		return nil, fmt.Errorf("%s: api-version: expected 1.x, found %q", cleanURL(base), v)
	}
	var out []wheel
	for _, f := range page.Files {
		w, ok := newWheel(f.Filename, f.URL, base, project)
		if !ok {
			continue
		}
		if s := strings.ToLower(f.Hashes["sha256"]); hexSHA256.MatchString(s) {
			w.sha256 = s
		}
		if f.Size != nil && *f.Size >= 0 {
			w.size = *f.Size
		}
		switch y := f.Yanked.(type) {
		case bool:
			w.yanked = y
		case string:
			w.yanked = true
		}
		out = append(out, w)
	}
	return out, nil
}

var (
	anchor   = regexp.MustCompile(`(?is)<a\s([^>]*)>([^<]*)</a`)
	baseTag  = regexp.MustCompile(`(?is)<base\s([^>]*)>`)
	htmlAttr = regexp.MustCompile(`(?is)([a-z][a-z0-9-]*)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+))?`)
)

// attributes reads the attributes of a tag.
func attributes(s string) map[string]string {
	out := map[string]string{}
	for _, m := range htmlAttr.FindAllStringSubmatch(s, 32) {
		out[strings.ToLower(m[1])] = html.UnescapeString(strings.Trim(m[2], `"'`))
	}
	return out
}

// parseSimpleHTML reads the links of a page; it serves pip's find-links pages
// as well.
func parseSimpleHTML(body []byte, base *url.URL, project string) ([]wheel, error) {
	text := string(body)
	if m := baseTag.FindStringSubmatch(text); m != nil {
		if u, err := base.Parse(attributes(m[1])["href"]); err == nil {
			base = u
		}
	}
	var out []wheel
	for _, m := range anchor.FindAllStringSubmatch(text, maxLinks) {
		attr := attributes(m[1])
		u, err := base.Parse(strings.TrimSpace(attr["href"]))
		if err != nil {
			continue
		}
		name := u.Path[strings.LastIndexByte(u.Path, '/')+1:]
		w, ok := newWheel(name, u.String(), base, project)
		if !ok {
			continue
		}
		if s, ok := strings.CutPrefix(strings.ToLower(u.Fragment), "sha256="); ok && hexSHA256.MatchString(s) {
			w.sha256 = s
		}
		_, w.yanked = attr["data-yanked"]
		out = append(out, w)
	}
	return out, nil
}

// newWheel reads a wheel's file name. It reports false for what is no wheel of
// the project.
func newWheel(filename, rawURL string, base *url.URL, project string) (wheel, bool) {
	stem, ok := strings.CutSuffix(filename, ".whl")
	if !ok || safeName(filename) != nil || strings.ContainsRune(filename, '/') {
		return wheel{}, false
	}
	parts := strings.Split(stem, "-")
	if len(parts) < 5 || normalizeProject(parts[0]) != project {
		return wheel{}, false
	}
	v, ok := parseVersion(parts[1])
	if !ok {
		return wheel{}, false
	}
	w := wheel{filename: filename, size: -1, version: v, verText: parts[1], anyOS: parts[len(parts)-1] == "any"}
	if rawURL == "" {
		return w, true
	}
	u, err := base.Parse(rawURL)
	if err != nil {
		return wheel{}, false
	}
	u.Fragment, u.RawFragment = "", ""
	switch {
	case u.Scheme == "file":
		w.local = fileURLPath(u)
	case u.Scheme == "http" || u.Scheme == "https":
		if base.Scheme == "https" && u.Scheme == "http" {
			return wheel{}, false // a page fetched safely must not lead to an unsafe file
		}
		if u.User == nil && u.Host == base.Host && u.Scheme == base.Scheme {
			u.User = base.User
		}
		w.url = u.String()
	default:
		return wheel{}, false
	}
	return w, true
}

package hub

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"ridge/internal/builtin"
)

type kind int

const (
	kindFile kind = iota
	kindCatalog
	kindHF
	kindOllama
	kindPyPI
	kindURL
	kindBuiltin // part of the program
	kindBare    // a lone word that the catalogue does not have
)

// reference is a parsed model name.
type reference struct {
	kind kind
	text string // canonical spelling; equal texts name the same thing

	entry *Entry // kindCatalog

	repo, rev, sel string // kindHF: "org/repo", revision ("" = main), file, quant or ""
	short          string // kindHF: the name as it was written without hf:, which may be one of Ollama's; else ""

	host, model, tag string // kindOllama: registry host, "namespace/name", tag

	project, version, member string // kindPyPI: normalised name, "" = newest, "" = the only one

	url, sum string // kindURL: without fragment; sha256 or ""

	path string // kindFile

	builtin builtin.Model // kindBuiltin
}

var (
	hfPart     = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,95}$`)
	hfRev      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,199}$`)
	hfSel      = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._ +=()/-]{0,499}$`)
	ollamaPart = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,79}$`)
	ollamaHost = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,250}(:[0-9]{1,5})?$`)
	pypiName   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,198}[A-Za-z0-9])?$`)
	pypiVer    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.!+_-]{0,63}$`)
	hexSHA256  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	nameRuns   = regexp.MustCompile(`[-_.]+`)
	bareName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(:[A-Za-z0-9][A-Za-z0-9._-]*)?$`)
)

const ollamaDefaultHost = "registry.ollama.ai"

// parseRef reads a model name. What looks like a path is one; a catalogue name
// wins over a file of the same name in the working directory; a file that
// exists wins over an org/repo of the same spelling.
func parseRef(s string) (reference, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return reference{}, errors.New("hub: empty model name")
	}
	scheme, rest, _ := strings.Cut(s, ":")
	switch strings.ToLower(scheme) {
	case "hf":
		return parseHF(s, rest)
	case "ollama":
		return parseOllama(s, rest)
	case pypiScheme:
		return parsePyPI(s, rest)
	case "http", "https":
		return parseURL(s)
	case "file":
		return parseFileURL(s)
	}
	if looksLikePath(s) {
		return fileRef(s)
	}
	if b, ok := builtin.Lookup(strings.TrimSuffix(s, ":latest")); ok {
		return reference{kind: kindBuiltin, text: b.Path, builtin: b}, nil
	}
	if e := lookupCatalog(s); e != nil {
		return reference{kind: kindCatalog, text: e.Name, entry: e}, nil
	}
	if _, err := os.Stat(s); err == nil {
		return fileRef(s)
	}
	if r, known, err := parseHost(s); known {
		return r, err
	}
	if strings.HasSuffix(strings.ToLower(s), ".gguf") {
		return fileRef(s)
	}
	if strings.Count(s, "/") == 1 {
		r, err := parseHF(s, s)
		r.short = s
		return r, err
	}
	if bareName.MatchString(s) {
		return reference{kind: kindBare, text: s}, nil
	}
	return reference{}, fmt.Errorf("hub: %q: not a model name: expected a catalogue name, hf:org/repo[:file or quant], "+
		"ollama:name[:tag], pypi:package[/file], https://… or the path of a GGUF file or safetensors folder", s)
}

// parseHost reads names that begin with a place that is known, as they are
// written for other programs: hf.co/org/repo:Q4_1, library/name:tag,
// registry.ollama.ai/library/name:tag. known is false of other names.
func parseHost(s string) (r reference, known bool, err error) {
	host, rest, _ := strings.Cut(s, "/")
	if rest == "" {
		return r, false, nil
	}
	switch strings.ToLower(host) {
	case "hf.co", "huggingface.co", "www.huggingface.co":
		r, err = parseHFPath(s, rest)
	case "library":
		r, err = parseOllama(s, rest)
	case ollamaDefaultHost:
		r, err = parseOllama(s, ollamaDefaultHost+"/"+rest)
	case "ollama.com", "www.ollama.com":
		r, err = parseOllama(s, strings.TrimPrefix(rest, "library/"))
	default:
		return r, false, nil
	}
	return r, true, err
}

func looksLikePath(s string) bool {
	for _, p := range []string{"/", "./", "../", "~/", `\`, `.\`, `..\`} {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return s == "." || s == ".." || filepath.VolumeName(s) != ""
}

func fileRef(s string) (reference, error) {
	if rest, ok := strings.CutPrefix(s, "~/"); ok {
		s = filepath.Join(homeDir(), rest)
	}
	p, err := filepath.Abs(s)
	if err != nil {
		return reference{}, fmt.Errorf("hub: %s: %w", s, err)
	}
	return reference{kind: kindFile, text: p, path: p}, nil
}

func parseFileURL(s string) (reference, error) {
	u, err := url.Parse(s)
	if err != nil || u.Path == "" || (u.Host != "" && u.Host != "localhost") {
		return reference{}, fmt.Errorf("hub: %q: expected file:///path", s)
	}
	return fileRef(filepath.FromSlash(u.Path))
}

// parseHF reads org/repo[@revision][:file or quant] and org/repo/file.
func parseHF(whole, s string) (reference, error) {
	bad := func(why string) (reference, error) {
		return reference{}, fmt.Errorf("hub: %q: %s: expected hf:org/repo[@revision][:file or quant]", whole, why)
	}
	left, sel, hasSel := strings.Cut(s, ":")
	left, rev, hasRev := strings.Cut(left, "@")
	parts := strings.SplitN(left, "/", 3)
	if len(parts) < 2 || !hfPart.MatchString(parts[0]) || !hfPart.MatchString(parts[1]) || strings.Contains(left, "..") {
		return bad("bad repository name")
	}
	if len(parts) == 3 {
		if hasSel {
			return bad("both a path and a selection after the colon")
		}
		sel, hasSel = parts[2], true
	}
	if hasRev && (!hfRev.MatchString(rev) || strings.Contains(rev, "..")) {
		return bad("bad revision")
	}
	if hasSel && (!hfSel.MatchString(sel) || safeName(sel) != nil) {
		return bad("bad file or quant")
	}
	if rev == "main" {
		rev = ""
	}
	if strings.EqualFold(sel, "latest") { // Ollama's word for no choice
		sel = ""
	}
	r := reference{kind: kindHF, repo: parts[0] + "/" + parts[1], rev: rev, sel: sel}
	if !isFileSel(sel) {
		r.sel = strings.ToUpper(sel)
	}
	r.text = "hf:" + r.repo
	if rev != "" {
		r.text += "@" + rev
	}
	if r.sel != "" {
		r.text += ":" + r.sel
	}
	return r, nil
}

// isFileSel tells a file name from a quant name.
func isFileSel(sel string) bool {
	return strings.ContainsRune(sel, '/') || strings.HasSuffix(strings.ToLower(sel), ".gguf")
}

// parseOllama reads [host/][namespace/]name[:tag].
func parseOllama(whole, s string) (reference, error) {
	r := reference{kind: kindOllama, host: ollamaDefaultHost, tag: "latest"}
	parts := strings.Split(strings.TrimPrefix(s, "//"), "/")
	last := &parts[len(parts)-1]
	if name, tag, ok := strings.Cut(*last, ":"); ok {
		*last, r.tag = name, tag
	}
	switch len(parts) {
	case 1:
		r.model = "library/" + parts[0]
	case 2:
		r.model = parts[0] + "/" + parts[1]
	case 3:
		r.host, r.model = parts[0], parts[1]+"/"+parts[2]
	}
	ns, name, _ := strings.Cut(r.model, "/")
	if !ollamaPart.MatchString(ns) || !ollamaPart.MatchString(name) || !ollamaPart.MatchString(r.tag) ||
		!ollamaHost.MatchString(r.host) || strings.Contains(s, "..") {
		return reference{}, fmt.Errorf("hub: %q: expected ollama:[host/][namespace/]name[:tag]", whole)
	}
	r.text = "ollama:" + ollamaShort(r.host, r.model) + ":" + r.tag
	return r, nil
}

// ollamaShort leaves out the default host and namespace, as Ollama prints names.
func ollamaShort(host, model string) string {
	if host != ollamaDefaultHost {
		return host + "/" + model
	}
	return strings.TrimPrefix(model, "library/")
}

// parsePyPI reads package[==version][/member].
func parsePyPI(whole, s string) (reference, error) {
	name, member, hasMember := strings.Cut(s, "/")
	name, version, hasVersion := strings.Cut(name, "==")
	if !pypiName.MatchString(name) || (hasVersion && !pypiVer.MatchString(version)) ||
		(hasMember && safeName(member) != nil) {
		return reference{}, fmt.Errorf("hub: %q: expected pypi:package[==version][/file]", whole)
	}
	r := reference{kind: kindPyPI, project: normalizeProject(name), version: version, member: member}
	r.text = pypiScheme + ":" + r.project
	if version != "" {
		r.text += "==" + version
	}
	if member != "" {
		r.text += "/" + member
	}
	return r, nil
}

// normalizeProject is the spelling of PEP 503.
func normalizeProject(name string) string {
	return strings.ToLower(nameRuns.ReplaceAllString(name, "-"))
}

// parseURL reads https://host/path/model.gguf[#sha256=hex]. Pages of the
// Hugging Face hub and of the Ollama library become references to those, so
// that tokens, mirrors and checksums apply.
func parseURL(s string) (reference, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return reference{}, fmt.Errorf("hub: %q: not a URL", s)
	}
	switch strings.ToLower(u.Hostname()) {
	case "huggingface.co", "hf.co", "www.huggingface.co":
		return parseHFPage(s, u)
	case "ollama.com", "www.ollama.com":
		return parseOllama(s, strings.TrimPrefix(strings.Trim(u.Path, "/"), "library/"))
	}
	r := reference{kind: kindURL}
	if sum, ok := strings.CutPrefix(u.Fragment, "sha256="); ok {
		if r.sum = strings.ToLower(sum); !hexSHA256.MatchString(r.sum) {
			return reference{}, fmt.Errorf("hub: %q: bad sha256: expected 64 hex digits, found %d characters", s, len(sum))
		}
	}
	u.Fragment, u.RawFragment = "", ""
	r.url = u.String()
	r.text = stripSecrets(r.url)
	if name := urlFileName(u); !strings.HasSuffix(strings.ToLower(name), ".gguf") {
		return reference{}, fmt.Errorf("hub: %q: expected a URL that ends in .gguf, found file name %q", s, name)
	}
	return r, nil
}

// urlFileName is the last element of the URL's path, or "" if that is no
// usable file name.
func urlFileName(u *url.URL) string {
	name := u.Path[strings.LastIndexByte(u.Path, '/')+1:]
	if safeName(name) != nil {
		return ""
	}
	return name
}

// parseHFPage reads the address of a repository or file on the hub's site.
func parseHFPage(whole string, u *url.URL) (reference, error) {
	return parseHFPath(whole, u.Path)
}

// parseHFPath reads the path of such an address.
func parseHFPath(whole, p string) (reference, error) {
	p = strings.Trim(p, "/")
	parts := strings.SplitN(p, "/", 5)
	if len(parts) >= 4 && (parts[2] == "resolve" || parts[2] == "blob" || parts[2] == "tree" || parts[2] == "raw") {
		s := parts[0] + "/" + parts[1] + "@" + parts[3]
		if len(parts) == 5 {
			s += ":" + parts[4]
		}
		return parseHF(whole, s)
	}
	return parseHF(whole, p)
}

// safeName refuses a slash-separated name that could leave the folder it is
// put in, or that some file system reads as something else.
func safeName(name string) error {
	bad := func(why string) error { return fmt.Errorf("unsafe file name %q: %s", name, why) }
	if name == "" || len(name) > 1024 {
		return bad("empty or too long")
	}
	for _, c := range name {
		if c < 0x20 || c == 0x7f || c == 0xfffd || strings.ContainsRune(`\:*?"<>|`, c) {
			return bad("forbidden character")
		}
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || len(part) > 255 {
			return bad("path traversal or empty element")
		}
		if strings.HasSuffix(part, ".") || strings.HasSuffix(part, " ") {
			return bad("element ends in a dot or blank")
		}
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return bad("not a local path")
	}
	return nil
}

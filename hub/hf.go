package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// Environment of the Hugging Face hub: HF_ENDPOINT (or llama.cpp's
// MODEL_ENDPOINT) names a mirror, HF_TOKEN or the file HF_TOKEN_PATH a token,
// HF_HUB_OFFLINE forbids asking it.

func hfEndpoint() string {
	e := strings.TrimRight(firstEnv("MODEL_ENDPOINT", "HF_ENDPOINT"), "/")
	if e == "" {
		return "https://huggingface.co"
	}
	return e
}

func hfHome() string {
	if h := os.Getenv("HF_HOME"); h != "" {
		return h
	}
	return filepath.Join(cacheHome(), "huggingface")
}

func hfToken() string {
	if t := firstEnv("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"); t != "" {
		return strings.TrimSpace(t)
	}
	file := firstEnv("HF_TOKEN_PATH")
	if file == "" {
		file = filepath.Join(hfHome(), "token")
	}
	b, err := readSmall(file, 4096)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// hfFile is a file of a repository.
type hfFile struct {
	name   string
	size   int64 // -1: not told
	sha256 string
	git    string
}

var (
	gitID  = regexp.MustCompile(`^[0-9a-f]{40}$`)
	commit = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)
)

// planHF lists the repository at the wanted revision and picks the files.
func (c *client) planHF(ctx context.Context, r reference) (*plan, error) {
	if envTrue("HF_HUB_OFFLINE") {
		return nil, fmt.Errorf("HF_HUB_OFFLINE is set: %w", ErrOffline)
	}
	endpoint := hfEndpoint()
	header := http.Header{}
	if t := hfToken(); t != "" {
		header.Set("Authorization", "Bearer "+t)
	}
	rev := r.rev
	if rev == "" {
		rev = "main"
	}
	info, err := c.hfInfo(ctx, endpoint, header, r.repo, rev)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(info.files))
	byName := map[string]hfFile{}
	for i, f := range info.files {
		names[i], byName[f.name] = f.name, f
	}
	chosen, open, err := hfPick(names, r.sel)
	if err != nil {
		return nil, fmt.Errorf("repository %s: %w", r.repo, err)
	}
	p := &plan{source: r.text, revision: info.SHA, license: info.license(), open: open}
	for _, name := range chosen {
		if err := safeName(name); err != nil {
			return nil, err
		}
		f := byName[name]
		local := name
		if open != "." {
			local = path.Base(name)
		}
		obj := object{
			url:  endpoint + "/" + r.repo + "/resolve/" + url.PathEscape(info.SHA) + "/" + escapePath(name),
			http: c.plain, header: header, size: f.size, sha256: f.sha256, git: f.git,
		}
		p.files = append(p.files, planFile{name: local, size: f.size, sha256: f.sha256, pieces: []piece{{obj: obj, raw: local, size: f.size}}})
	}
	if p.open != "." {
		p.open = p.files[0].name
	}
	return p, nil
}

// hfPick chooses the files that a selection means: GGUF shards, or with open
// "." a safetensors folder.
func hfPick(names []string, sel string) (chosen []string, open string, err error) {
	if strings.EqualFold(sel, "safetensors") {
		if s := pickSafetensors(names); s != nil {
			return s, ".", nil
		}
		return nil, "", errors.New("no safetensors model in it")
	}
	chosen, err = pickGGUF(names, sel)
	if err != nil {
		return nil, "", err
	}
	if chosen != nil {
		return chosen, "file", nil
	}
	if s := pickSafetensors(names); s != nil {
		return s, ".", nil
	}
	return nil, "", fmt.Errorf("no GGUF file and no safetensors model with config.json in it: found %s", brief(names))
}

// hfInfo is the answer of /api/models/{repo}/revision/{rev}.
type hfInfo struct {
	SHA      string          `json:"sha"`
	Tags     []string        `json:"tags"`
	CardData json.RawMessage `json:"cardData"`
	Siblings []struct {
		Name   string `json:"rfilename"`
		Size   *int64 `json:"size"`
		BlobID string `json:"blobId"`
		LFS    *struct {
			SHA256 string `json:"sha256"`
			Size   int64  `json:"size"`
		} `json:"lfs"`
	} `json:"siblings"`
	files []hfFile
}

func (i *hfInfo) license() string {
	var card struct {
		License any `json:"license"`
	}
	if json.Unmarshal(i.CardData, &card) == nil {
		if s, ok := card.License.(string); ok {
			return s
		}
	}
	for _, t := range i.Tags {
		if l, ok := strings.CutPrefix(t, "license:"); ok {
			return l
		}
	}
	return ""
}

func (c *client) hfInfo(ctx context.Context, endpoint string, header http.Header, repo, rev string) (*hfInfo, error) {
	info := &hfInfo{}
	_, err := c.documentJSON(ctx, c.plain, endpoint+"/api/models/"+repo+"/revision/"+url.PathEscape(rev)+"?blobs=true", header, info)
	if err != nil {
		return nil, hfAccess(err, repo, rev, header)
	}
	if !commit.MatchString(info.SHA) {
		return nil, fmt.Errorf("repository %s: sha: expected a commit id, found %q", repo, info.SHA)
	}
	for _, s := range info.Siblings {
		f := hfFile{name: s.Name, size: -1}
		if s.Size != nil {
			f.size = *s.Size
		}
		if s.LFS != nil && hexSHA256.MatchString(s.LFS.SHA256) {
			f.sha256, f.size = s.LFS.SHA256, s.LFS.Size
		} else if gitID.MatchString(s.BlobID) {
			f.git = s.BlobID
		}
		if f.size < 0 { // a mirror that does not tell sizes here
			info.files, err = c.hfTree(ctx, endpoint, header, repo, info.SHA)
			return info, err
		}
		info.files = append(info.files, f)
	}
	return info, nil
}

// hfTree lists a commit's files page by page.
func (c *client) hfTree(ctx context.Context, endpoint string, header http.Header, repo, sha string) ([]hfFile, error) {
	next := endpoint + "/api/models/" + repo + "/tree/" + sha + "?recursive=true"
	var out []hfFile
	for page := 0; next != ""; page++ {
		if page >= 50 {
			return nil, fmt.Errorf("repository %s: more than 50 pages of files", repo)
		}
		var items []struct {
			Type string `json:"type"`
			Path string `json:"path"`
			OID  string `json:"oid"`
			Size int64  `json:"size"`
			LFS  *struct {
				OID  string `json:"oid"`
				Size int64  `json:"size"`
			} `json:"lfs"`
		}
		resp, err := c.documentJSON(ctx, c.plain, next, header, &items)
		if err != nil {
			return nil, hfAccess(err, repo, sha, header)
		}
		for _, it := range items {
			if it.Type != "file" || it.Size < 0 {
				continue
			}
			f := hfFile{name: it.Path, size: it.Size}
			if it.LFS != nil && hexSHA256.MatchString(it.LFS.OID) && it.LFS.Size >= 0 {
				f.sha256, f.size = it.LFS.OID, it.LFS.Size
			} else if gitID.MatchString(it.OID) {
				f.git = it.OID
			}
			out = append(out, f)
		}
		if next, err = nextPage(resp); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// nextPage reads Link: <url>; rel="next". A token must not follow it to
// another host.
func nextPage(resp *http.Response) (string, error) {
	for link := range strings.SplitSeq(resp.Header.Get("Link"), ",") {
		target, params, ok := strings.Cut(link, ">")
		target, isURL := strings.CutPrefix(strings.TrimSpace(target), "<")
		if !ok || !isURL || !strings.Contains(params, `rel="next"`) {
			continue
		}
		u, err := resp.Request.URL.Parse(target)
		if err != nil {
			return "", fmt.Errorf("the Link header: %w", err)
		}
		if u.Host != resp.Request.URL.Host || u.Scheme != resp.Request.URL.Scheme {
			return "", fmt.Errorf("the Link header: next page is on another host: %s", cleanURL(u))
		}
		return u.String(), nil
	}
	return "", nil
}

// hfAccess explains the hub's refusals: it answers 401 for what does not exist
// as well as for what is private.
func hfAccess(err error, repo, rev string, header http.Header) error {
	var se *statusError
	if !errors.As(err, &se) {
		return err
	}
	token := "set HF_TOKEN"
	if header.Get("Authorization") != "" {
		token = "the token in use has no access to it"
	}
	switch se.code {
	case http.StatusUnauthorized:
		return fmt.Errorf("repository %s does not exist, or is private (%s): HTTP 401", repo, token)
	case http.StatusForbidden:
		return fmt.Errorf("repository %s: access must be granted on its page first (%s): HTTP 403", repo, token)
	case http.StatusNotFound:
		return fmt.Errorf("repository %s, revision %s: not found: HTTP 404", repo, rev)
	}
	return err
}

// escapePath escapes each element of a slash-separated path.
func escapePath(p string) string {
	parts := strings.Split(p, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

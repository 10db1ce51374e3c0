package hub

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
)

// planURL plans a GGUF file at a plain address; of a split file, all shards.
func (c *client) planURL(ctx context.Context, r reference) (*plan, error) {
	u, err := url.Parse(r.url)
	if err != nil {
		return nil, err
	}
	shards, err := shardsOf(urlFileName(u))
	if err != nil {
		return nil, err
	}
	if len(shards) > 1 && r.sum != "" {
		return nil, fmt.Errorf("a split file has no single sha256: leave out #sha256=")
	}
	p := &plan{source: r.text, open: shards[0]}
	for _, name := range shards {
		v := *u
		if len(shards) > 1 {
			v.Path, v.RawPath = path.Join(path.Dir(u.Path), name), ""
		}
		obj := object{url: v.String(), http: c.plain, size: -1, sha256: r.sum}
		if obj.size, err = c.remoteSize(ctx, obj); err != nil {
			return nil, err
		}
		p.files = append(p.files, planFile{name: name, size: obj.size, sha256: r.sum, pieces: []piece{{obj: obj, raw: name, size: obj.size}}})
	}
	return p, nil
}

// remoteSize asks for the length of an object without its bytes; -1 if the
// server does not tell.
func (c *client) remoteSize(ctx context.Context, obj object) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, obj.url, nil)
	if err != nil {
		return -1, err
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := obj.http.Do(req)
	if err != nil {
		return -1, reason(err)
	}
	resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		return resp.ContentLength, nil
	case http.StatusMethodNotAllowed, http.StatusNotImplemented, http.StatusForbidden, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return -1, nil // the download itself will tell
	}
	return -1, newStatusError(resp)
}

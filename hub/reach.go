package hub

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// reachTime bounds the search for a network, a name service that does not
// answer included.
const reachTime = 1500 * time.Millisecond

// Reachable reports whether one of the places that the model ref can be
// downloaded from answers, in at most a second and a half. Any answer counts,
// an error's as well; a machine without a network says no at once.
func Reachable(ctx context.Context, ref string, o Options) bool {
	if o.offline() {
		return false
	}
	r, err := parseRef(ref)
	if err != nil {
		return false
	}
	cands, err := r.candidates()
	if err != nil {
		return false
	}
	c, err := newClient(o)
	if err != nil {
		return false
	}
	defer c.close()
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	asked := map[string]*http.Client{}
	for _, cand := range cands {
		for _, root := range c.roots(cand.ref) {
			if u, err := url.Parse(root); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
				h := c.plain
				if cand.ref.kind == kindPyPI {
					h = c.pip
				}
				asked[u.Scheme+"://"+u.Host] = h
			}
		}
	}
	answers := make(chan bool, len(asked))
	for root, h := range asked {
		go func() { answers <- answersAt(ctx, h, root) }()
	}
	for range asked {
		if <-answers {
			return true
		}
	}
	return false
}

// roots are addresses of the server that a reference is fetched from.
func (c *client) roots(r reference) []string {
	switch r.kind {
	case kindHF:
		return []string{hfEndpoint()}
	case kindOllama:
		return []string{"https://" + r.host}
	case kindPyPI:
		return append(c.pipConf.indexes, c.pipConf.findLinks...)
	case kindURL:
		return []string{r.url}
	}
	return nil
}

func answersAt(ctx context.Context, h *http.Client, root string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, root, nil)
	if err != nil {
		return false
	}
	req.Header.Set("User-Agent", userAgent)
	resp, err := h.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return true
}

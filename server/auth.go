package server

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/server/internal/keys"
	"ridge/server/page"
	"ridge/server/watch"
)

// public are the routes that need no key: what balancers and monitors ask.
func public(r *http.Request) bool {
	switch r.URL.Path {
	case "/health", "/ready", "/live", "/metrics", "/ping", "/", "/api/version", "/version":
		return r.Method == http.MethodGet || r.Method == http.MethodHead
	}
	return strings.HasPrefix(r.URL.Path, page.Prefix) // the page asks for a key itself
}

// authorize finds out whose request it is and counts it in.
func (s *Server) authorize(r *http.Request) (release func(), err *fault.Error) {
	if s.keys.Empty() || public(r) {
		return func() {}, nil
	}
	secret := r.Header.Get("X-Api-Key")
	if scheme, bearer, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		secret = strings.TrimSpace(bearer)
	}
	if secret == "" {
		return nil, &fault.Error{Status: http.StatusUnauthorized, Type: "authentication_error", Code: "invalid_api_key", Message: "expected an API key in the Authorization header (Bearer KEY) or in X-Api-Key, found none"}
	}
	key, ok := s.keys.Find(secret)
	if !ok {
		return nil, &fault.Error{Status: http.StatusUnauthorized, Type: "authentication_error", Code: "invalid_api_key", Message: "the API key is not known"}
	}
	caller.Note(r.Context(), func(l *caller.Record) { l.Key = key.Name })
	use := func(prompt, answer int) { key.Use(time.Now(), prompt, answer) }
	*r = *r.WithContext(caller.WithAccount(r.Context(), &caller.Account{Name: key.Name, Weight: key.Weight, Admin: key.Admin || s.keys.Single(), Use: use, Priority: func(asked int) int { return max(asked, key.Priority) }}))
	if r.Method == http.MethodGet {
		return func() {}, nil // looking costs nothing
	}
	end, e := key.Begin(time.Now())
	if e != nil {
		var l *keys.LimitError
		errors.As(e, &l)
		return nil, fault.TooMany(l.RetryAfter, "%v", e)
	}
	return end, nil
}

// keyList is what is told of the keys.
func (s *Server) keyList() []watch.Key {
	if s.keys.Empty() {
		return nil
	}
	now, single := time.Now(), s.keys.Single()
	var out []watch.Key
	for _, k := range s.keys.List() {
		u := k.Used()
		out = append(out, watch.Key{Name: k.Name, Tenant: k.Name, Admin: k.Admin || single, Requests: u.Requests, Prompt: u.Prompt, Generated: u.Answer, Today: k.Today(now),
			Limits: watch.KeyLimits{Requests: k.Limits.Requests, Tokens: k.Limits.Tokens, Day: k.Limits.Day, Parallel: k.Limits.Parallel, Weight: k.Weight, Priority: k.Priority}})
	}
	return out
}

package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"ridge/server/internal/keys"
)

// public are the routes that need no key: what balancers and monitors ask.
func public(r *http.Request) bool {
	switch r.URL.Path {
	case "/health", "/ready", "/live", "/metrics", "/ping", "/", "/api/version", "/version":
		return r.Method == http.MethodGet || r.Method == http.MethodHead
	}
	return false
}

// authorize finds out whose request it is and counts it in.
func (s *Server) authorize(r *http.Request) (release func(), err *apiError) {
	if s.keys.Empty() || public(r) {
		return func() {}, nil
	}
	secret := r.Header.Get("X-Api-Key")
	if scheme, bearer, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		secret = strings.TrimSpace(bearer)
	}
	if secret == "" {
		return nil, &apiError{Status: http.StatusUnauthorized, Type: "authentication_error", Code: "invalid_api_key", Message: "expected an API key in the Authorization header (Bearer KEY) or in X-Api-Key, found none"}
	}
	key, ok := s.keys.Find(secret)
	if !ok {
		return nil, &apiError{Status: http.StatusUnauthorized, Type: "authentication_error", Code: "invalid_api_key", Message: "the API key is not known"}
	}
	note(r.Context(), func(l *requestLog) { l.key = key.Name })
	*r = *r.WithContext(context.WithValue(r.Context(), keyKey, key))
	if r.Method == http.MethodGet {
		return func() {}, nil // looking costs nothing
	}
	end, e := key.Begin(time.Now())
	if e != nil {
		var l *keys.LimitError
		errors.As(e, &l)
		return nil, tooMany(l.RetryAfter, "%v", e)
	}
	return end, nil
}

const keyKey ctxKey = 1

// keyOf is the key of a request, nil if the server has no keys.
func keyOf(ctx context.Context) *keys.Key {
	k, _ := ctx.Value(keyKey).(*keys.Key)
	return k
}

// charge puts a request's owner into a plan.
func (p *plan) charge(ctx context.Context) {
	if k := keyOf(ctx); k != nil {
		p.req.Tenant, p.req.Weight = k.Name, k.Weight
		p.req.Priority = max(p.req.Priority, k.Priority)
	}
	if o, ok := ctx.Value(batchKey).(string); ok {
		p.req.Tenant, p.req.Priority = o, p.req.Priority+batchPriority
	}
	if p.req.ID == "" {
		p.req.ID = requestID(ctx)
	}
}

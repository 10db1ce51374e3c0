package anthropic

import "ridge/server/wire"

// API is Anthropic's API.
type API struct{ *wire.Door }

// New returns the API.
func New(d *wire.Door) *API { return &API{d} }

// Routes are the API's, by their patterns.
func (s *API) Routes() map[string]wire.Handler {
	return map[string]wire.Handler{
		"POST /v1/messages":              s.messages,
		"POST /v1/messages/count_tokens": s.countTokens,
	}
}

// Bodies are values of the types that routes read, by their patterns.
func Bodies() map[string]any {
	return map[string]any{"POST /v1/messages": request{}, "POST /v1/messages/count_tokens": request{}}
}

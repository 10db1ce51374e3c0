package watch

import (
	"net/http"

	"ridge/server/caller"
	"ridge/server/wire"
)

// Keys is the answer of GET /ridge/keys: never a key itself.
type Keys struct {
	Keys []Key `json:"keys"`
}

// Key is what a key was used for since the server's start, and what it may do.
type Key struct {
	Name      string    `json:"name"`
	Tenant    string    `json:"tenant"`
	Admin     bool      `json:"admin"`
	Requests  int64     `json:"requests"` // that may cost something
	Prompt    int64     `json:"prompt_tokens"`
	Generated int64     `json:"generated_tokens"`
	Today     int64     `json:"tokens_today"` // UTC
	Limits    KeyLimits `json:"limits"`
}

// KeyLimits are what a key may do at most; 0 for any number.
type KeyLimits struct {
	Requests int `json:"requests_per_minute"`
	Tokens   int `json:"tokens_per_minute"`
	Day      int `json:"tokens_per_day"`
	Parallel int `json:"parallel"`
	Weight   int `json:"weight"`
	Priority int `json:"priority"`
}

// keys answers GET /ridge/keys.
func (s *API) keys(w http.ResponseWriter, r *http.Request) error {
	out := Keys{[]Key{}}
	if s.Keys != nil {
		for _, k := range s.Keys() {
			if caller.Sees(r.Context(), k.Tenant) {
				out.Keys = append(out.Keys, k)
			}
		}
	}
	wire.WriteJSON(w, http.StatusOK, &out)
	return nil
}

package watch

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"ridge/server/caller"
	"ridge/server/wire"
)

// Requests is the answer of GET /ridge/requests: those that run or wait, and the last
// that are over, newest first.
type Requests struct {
	Requests []Request `json:"requests"`
}

// Request is a generation as the server saw it.
type Request struct {
	ID        string  `json:"id"`
	At        float64 `json:"at"` // when it came, in seconds of Unix time
	Route     string  `json:"route,omitempty"`
	Model     string  `json:"model"`
	Tenant    string  `json:"tenant"`
	State     string  `json:"state"`            // running, waiting, swapped, paused, or done
	Status    int     `json:"status,omitempty"` // of HTTP, when it is done
	Prompt    int     `json:"prompt_tokens"`
	Cached    int     `json:"cached_tokens"`
	Generated int     `json:"generated_tokens"`
	Drafted   int     `json:"drafted"`  // tokens that were guessed and computed, and those that a grammar forced
	Accepted  int     `json:"accepted"` // of these, those that came true: of the forced ones all
	First     float64 `json:"first_token_s"`
	Total     float64 `json:"total_s"`
	Finish    string  `json:"finish,omitempty"`
	Client    string  `json:"client,omitempty"` // as it names itself
	Text      string  `json:"prompt,omitempty"` // with --log-prompts
	Answer    string  `json:"answer,omitempty"` // with --log-prompts
}

const (
	requestsKept = 200
	textKept     = 4096 // bytes of a prompt, and of an answer
	clientKept   = 120  // bytes of a client's name
)

// log remembers the last requests.
type log struct {
	mu   sync.Mutex
	ring [requestsKept]Request
	n    int // so far
}

// sender is where a request that is under way goes, and who sent it.
type sender struct{ route, client string }

// Begin notes a request that is under way, until the function that it returns is called.
func (s *API) Begin(r *http.Request, id string) (end func()) {
	if r.Method != http.MethodPost {
		return func() {}
	}
	x := &sender{r.URL.Path, head(r.UserAgent(), clientKept)}
	s.live.Store(id, x)
	return func() { s.live.CompareAndDelete(id, x) } // another one may have the same id
}

// Done notes a request that is over, if it had an answer generated. took is its time in
// all.
func (s *API) Done(r *http.Request, l *caller.Record, status int, took time.Duration) {
	if l.Model == "" || l.Begun.IsZero() {
		return
	}
	x := Request{ID: l.ID, At: float64(l.Arrived.UnixMicro()) / 1e6, Route: r.URL.Path, Model: l.Model, Tenant: l.Key, State: "done", Status: status,
		Prompt: l.Prompt, Cached: l.Cached, Generated: l.Tokens, Drafted: l.Forced + l.Guessed, Accepted: l.Forced + l.Right, First: l.TTFT.Seconds(), Total: took.Seconds(),
		Client: head(r.UserAgent(), clientKept), Text: head(l.PromptText, textKept), Answer: head(l.AnswerText, textKept)}
	if len(l.Finishes) > 0 {
		x.Finish = l.Finishes[0]
	}
	s.past.mu.Lock()
	defer s.past.mu.Unlock()
	s.past.ring[s.past.n%requestsKept] = x
	s.past.n++
}

// head is a copy of the beginning of a text, so that the rest can go.
func head(text string, most int) string {
	return string([]byte(text[:min(len(text), most)]))
}

// requests answers GET /ridge/requests.
func (s *API) requests(w http.ResponseWriter, r *http.Request) error {
	n, err := last(r, requestsKept, requestsKept)
	if err != nil {
		return err
	}
	ctx, out := r.Context(), Requests{[]Request{}}
	now := time.Now()
	for _, m := range s.Models.Loaded() {
		st := m.Stats()
		for i := range st.Sequences {
			q := &st.Sequences[i]
			if q.Choice > 0 {
				continue
			}
			id, tenant := caller.Shown(ctx, q.Tenant, q.ID)
			x := Request{ID: id, At: float64(now.Add(-q.Age).UnixMicro()) / 1e6, Model: m.Info().Name, Tenant: tenant, State: q.State,
				Prompt: q.Prompt, Cached: q.Cached, Generated: q.Tokens, Total: q.Age.Seconds()}
			if from, ok := s.live.Load(q.ID); ok {
				x.Route = from.(*sender).route
				if caller.Sees(ctx, q.Tenant) {
					x.Client = from.(*sender).client
				}
			}
			out.Requests = append(out.Requests, x)
		}
	}
	s.past.mu.Lock()
	for i := s.past.n - 1; i >= max(0, s.past.n-requestsKept); i-- {
		out.Requests = append(out.Requests, s.past.ring[i%requestsKept])
	}
	s.past.mu.Unlock()
	for i := range out.Requests {
		if x := &out.Requests[i]; x.State == "done" && !caller.Sees(ctx, x.Tenant) {
			x.ID, _ = caller.Shown(ctx, x.Tenant, x.ID)
			x.Tenant, x.Client, x.Text, x.Answer = "", "", "", ""
		}
	}
	slices.SortStableFunc(out.Requests, func(a, b Request) int { return int(b.At*1e3) - int(a.At*1e3) })
	out.Requests = out.Requests[:min(n, len(out.Requests))]
	wire.WriteJSON(w, http.StatusOK, &out)
	return nil
}

package watch

import (
	"context"
	"net/http"
	"time"

	"ridge/server/caller"
	"ridge/server/run"
	"ridge/server/wire"
)

// Status is the answer of GET /ridge/status: what the server is doing now, and
// counters since its start from which speeds are differences.
type Status struct {
	Version  string        `json:"version"`
	Now      time.Time     `json:"now"`
	Uptime   float64       `json:"uptime_seconds"`
	Draining bool          `json:"draining"`
	Models   []ModelStatus `json:"models"` // the loaded ones
}

// ModelStatus describes a loaded model.
type ModelStatus struct {
	Name    string     `json:"name"`
	Arch    string     `json:"arch"`
	Quant   string     `json:"quant"`
	Act     string     `json:"activations"` // that quantized matrices read
	Params  int64      `json:"parameters"`
	Threads int        `json:"threads"`
	Context int        `json:"context"`
	Load    float64    `json:"load_seconds"`
	Expires *time.Time `json:"expires_at"` // when it is unloaded if nobody uses it; null while in use, or for never

	Running   int              `json:"running"` // sequences
	Waiting   int              `json:"waiting"` // requests
	Paused    int              `json:"paused"`  // of these, those whose client reads slowly
	Submitted int64            `json:"submitted"`
	Finished  map[string]int64 `json:"finished"` // answers, by how they ended

	PromptTokens    int64   `json:"prompt_tokens"` // computed; those that were found are not
	GeneratedTokens int64   `json:"generated_tokens"`
	CachedTokens    int64   `json:"cached_tokens"` // of prompts, found in the prefix cache
	LookedUp        int64   `json:"lookup_tokens"` // of prompts, looked for there
	Evicted         int64   `json:"evicted_pages"`
	DraftTokens     int64   `json:"draft_tokens"`
	DraftAccepted   int64   `json:"draft_accepted_tokens"`
	DraftBytes      int64   `json:"draft_bytes,omitempty"`         // of what guesses are looked up in
	DraftSaved      float64 `json:"draft_saved_seconds,omitempty"` // by guesses, as estimated
	Preemptions     int64   `json:"preemptions"`
	Recomputed      int64   `json:"recomputed_tokens"`
	Shed            int64   `json:"shed"` // sequences whose deadline could not be met
	Steps           int64   `json:"steps"`
	Busy            float64 `json:"step_seconds"`
	Kernels         float64 `json:"kernel_seconds"`
	StepError       float64 `json:"step_prediction_error"` // mean, see sched.Accuracy
	StepErrorMedian float64 `json:"step_prediction_error_median"`

	Memory    MemoryStatus     `json:"kv"`
	Swap      SwapStatus       `json:"swap"`
	Prefixes  PrefixStatus     `json:"prefixes"`
	Sequences []SequenceStatus `json:"sequences"` // the running ones, then those that wait, in order; at most some hundred
}

// MemoryStatus is what the memory for keys and values is used for, in slots of
// one token. Used, Waste, Cached and Free add up to Slots.
type MemoryStatus struct {
	Type       string `json:"type"` // of the elements
	PageTokens int    `json:"page_tokens"`
	Pages      int    `json:"pages"`
	PageBytes  int64  `json:"page_bytes"`
	Slots      int    `json:"slots"`
	Used       int    `json:"used"`   // hold a token of a running sequence
	Waste      int    `json:"waste"`  // held without one
	Cached     int    `json:"cached"` // only the prefix cache holds them: they are given when needed
	Free       int    `json:"free"`
	Shared     int    `json:"shared_pages"` // more pages that running sequences would hold without sharing

	SurePages   int   `json:"sure_pages"`      // pages that the model can have whatever others do
	HeldBytes   int64 `json:"held_bytes"`      // memory that the model has now
	Taken       int64 `json:"chunks_taken"`    // pieces of memory taken from the budget
	Given       int64 `json:"chunks_returned"` // pieces given back
	BudgetBytes int64 `json:"budget_bytes"`    // of all models together; 0 if the model has memory of its own
	BudgetUsed  int64 `json:"budget_used"`     // what all models have now
}

// SwapStatus is what became of preempted sequences that were written out.
type SwapStatus struct {
	Now       int   `json:"sequences"` // that lie there
	RAMBytes  int64 `json:"ram_bytes"`
	DiskBytes int64 `json:"disk_bytes"`
	Out       int64 `json:"out"`
	In        int64 `json:"in"`
	Failures  int64 `json:"failures"` // computed again instead
}

// PrefixStatus is what is kept of beginnings of prompts that come again.
type PrefixStatus struct {
	Pinned  int   `json:"pinned_pages"` // that the prefix cache lets go last
	Files   int   `json:"files"`        // of this model
	Bytes   int64 `json:"disk_bytes"`   // of all models
	Hits    int64 `json:"disk_hits"`
	Tokens  int64 `json:"disk_tokens"` // read in place of being computed
	Written int64 `json:"files_written"`
	Refused int64 `json:"files_refused"` // damaged, or not what they should be
}

// SequenceStatus describes a sequence.
type SequenceStatus struct {
	ID       string  `json:"id"` // of the request
	Choice   int     `json:"choice"`
	State    string  `json:"state"`    // running, waiting, swapped or paused
	Position int     `json:"position"` // among those that wait, else -1
	Tenant   string  `json:"tenant"`
	Priority int     `json:"priority"`
	Prompt   int     `json:"prompt_tokens"`
	Cached   int     `json:"cached_tokens"`   // of the prompt, found in the prefix cache
	Known    int     `json:"known_tokens"`    // of the prompt, that another one begins with, too: the next is the first that differs
	Computed int     `json:"computed_tokens"` // keys and values that are there
	Tokens   int     `json:"generated_tokens"`
	Max      int     `json:"max_tokens"`
	Pages    int     `json:"pages"`
	Age      float64 `json:"age_seconds"`
}

// status answers GET /ridge/status.
func (s *API) status(w http.ResponseWriter, r *http.Request) error {
	wire.WriteJSON(w, http.StatusOK, s.statusFor(r.Context()))
	return nil
}

// statusFor is what the caller of a request may know of all models.
func (s *API) statusFor(ctx context.Context) *Status {
	now := time.Now()
	st := &Status{Version: s.Version, Now: now, Uptime: now.Sub(s.started).Seconds(), Draining: s.Draining(), Models: []ModelStatus{}}
	for _, m := range s.Models.Loaded() {
		x := statusOf(m)
		if t := s.Models.Expiry(m); !t.IsZero() {
			x.Expires = &t
		}
		for i := range x.Sequences {
			q := &x.Sequences[i]
			q.ID, q.Tenant = caller.Shown(ctx, q.Tenant, q.ID)
		}
		st.Models = append(st.Models, x)
	}
	return st
}

// statusOf describes m.
func statusOf(m *run.Model) ModelStatus {
	st := m.Stats()
	x := ModelStatus{
		Name: m.Info().Name, Arch: m.Info().Arch, Quant: m.Info().Quant, Act: m.Info().Act.String(), Params: m.Info().Parameters, Threads: m.Info().Workers, Context: m.Info().Context,
		Load:    m.LoadTime().Seconds(),
		Running: st.Sched.Running, Waiting: st.Waiting, Paused: st.Paused, Submitted: st.Submitted, Finished: map[string]int64{},
		PromptTokens: st.Sched.PromptTokens, GeneratedTokens: st.Tokens, CachedTokens: st.Tree.HitTokens, LookedUp: st.Tree.HitTokens + st.Tree.MissTokens,
		Evicted: st.Tree.Evicted, DraftTokens: st.Guessed, DraftAccepted: st.Right, DraftBytes: st.DraftBytes, DraftSaved: st.Saved.Seconds(), Preemptions: st.Sched.Recomputes + st.Sched.SwapOuts, Recomputed: st.Sched.LostTokens, Shed: st.Sched.Shed,
		Steps: st.Steps, Busy: st.Busy.Seconds(), Kernels: st.Kernels.Seconds(), StepError: st.Predicted.Mean, StepErrorMedian: st.Predicted.Median,
		Memory: MemoryStatus{
			Type: m.Info().KV, PageTokens: m.Info().PageTokens, Pages: st.Pool.Pages, PageBytes: st.Pool.PageBytes, Slots: st.Usage.Slots, Used: st.Usage.Used,
			Waste: st.Usage.Internal, Cached: st.Usage.Cached, Free: st.Usage.Free, Shared: st.Pool.Shared,
			SurePages: st.Pool.Sure, HeldBytes: st.Pool.HeldBytes, Taken: st.Pool.Taken, Given: st.Pool.Given, BudgetBytes: st.Pool.Budget.Bytes, BudgetUsed: st.Pool.Budget.Used,
		},
		Swap: SwapStatus{
			Now: st.Sched.Swapped, RAMBytes: st.Swap.RAMBytes, DiskBytes: st.Swap.DiskBytes, Out: st.Sched.SwapOuts, In: st.Sched.SwapIns, Failures: st.Swap.Failures,
		},
		Prefixes:  PrefixStatus(st.Prefixes),
		Sequences: []SequenceStatus{},
	}
	for f, n := range st.Finished {
		x.Finished[string(f)] += n
	}
	for i := range st.Sequences {
		q := &st.Sequences[i]
		x.Sequences = append(x.Sequences, SequenceStatus{
			ID: q.ID, Choice: q.Choice, State: q.State, Position: q.Position, Tenant: q.Tenant, Priority: q.Priority, Prompt: q.Prompt,
			Cached: q.Cached, Known: q.Known, Computed: q.Computed, Tokens: q.Tokens, Max: q.Max, Pages: q.Pages, Age: q.Age.Seconds(),
		})
	}
	return x
}

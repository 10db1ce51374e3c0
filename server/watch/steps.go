package watch

import (
	"context"
	"net/http"
	"time"

	"ridge/engine"
	"ridge/engine/trace"
	"ridge/server/caller"
	"ridge/server/run"
	"ridge/server/wire"
)

// Steps are steps of a model, oldest first: the answer of GET /ridge/steps, and an
// event of GET /ridge/events.
type Steps struct {
	Model string `json:"model"`
	Steps []Step `json:"steps"`
}

// Step is what one step of the engine computed.
type Step struct {
	N         int64     `json:"n"`         // the engine's first one is 1
	At        float64   `json:"at"`        // when it began, in seconds of Unix time
	Took      float64   `json:"took"`      // seconds
	Predicted float64   `json:"predicted"` // seconds that it was expected to take; 0 if that was not known yet
	Kernels   float64   `json:"kernels"`   // seconds of it in the model
	Budget    int       `json:"budget"`    // tokens that it could have had
	Rows      []StepRow `json:"rows"`      // a run of tokens of one sequence each
	Waiting   int       `json:"waiting"`   // requests whose computation had not begun
	Paused    int       `json:"paused"`    // requests whose client reads slowly
	Preempted []string  `json:"preempted"` // ids of requests whose sequences lost their memory before it
	Admitted  []string  `json:"admitted"`  // and of those that got some
	Finished  []string  `json:"finished"`  // ids of requests that were complete with it, or since the step before
}

// StepRow is a run of tokens of a sequence in a step.
type StepRow struct {
	ID      string `json:"id"` // of the request
	Choice  int32  `json:"choice"`
	Kind    string `json:"kind"`    // prefill; decode; draft: the next token and those that are known or guessed behind it
	Tokens  int32  `json:"tokens"`  // rows of the step
	Context int32  `json:"context"` // tokens of the sequence that are computed then
}

// mostSteps bounds the steps of an answer: the engine remembers no more.
const mostSteps = 256

// steps answers GET /ridge/steps.
func (s *API) steps(w http.ResponseWriter, r *http.Request) error {
	n, err := last(r, 120, mostSteps)
	if err != nil {
		return err
	}
	m, err := s.model(r)
	if err != nil {
		return err
	}
	out := Steps{m.Info().Name, []Step{}}
	if e := m.Engine(); e != nil {
		out.Steps = stepsFor(r.Context(), e.Trace().Steps(0, n))
	}
	wire.WriteJSON(w, http.StatusOK, &out)
	return nil
}

// stepsFor is what the caller of a request may know of steps.
func stepsFor(ctx context.Context, in []trace.Step) []Step {
	out := make([]Step, 0, len(in))
	for i := range in {
		x := &in[i]
		y := Step{N: x.N, At: float64(x.At.UnixMicro()) / 1e6, Took: x.Took.Seconds(), Predicted: x.Predicted.Seconds(), Kernels: x.Kernels.Seconds(),
			Budget: x.Budget, Waiting: x.Waiting, Paused: x.Paused, Rows: []StepRow{},
			Preempted: idsFor(ctx, x.Preempted), Admitted: idsFor(ctx, x.Admitted), Finished: idsFor(ctx, x.Finished)}
		for _, row := range x.Rows {
			id, _ := caller.Shown(ctx, row.Tenant, row.ID)
			y.Rows = append(y.Rows, StepRow{id, row.Choice, row.Kind.String(), row.Tokens, row.Context})
		}
		out = append(out, y)
	}
	return out
}

func idsFor(ctx context.Context, rows []trace.Row) []string {
	ids := []string{}
	for _, r := range rows {
		id, _ := caller.Shown(ctx, r.Tenant, r.ID)
		ids = append(ids, id)
	}
	return ids
}

// How often a stream of events tells what.
const (
	stepsEvery  = 200 * time.Millisecond
	statusEvery = 5  // times that
	pingEvery   = 75 // times that
)

// events answers GET /ridge/events: the status at once and every second, and the
// steps of all models as they come, a few times a second. It ends when the client
// leaves, or when the server takes no more requests.
func (s *API) events(w http.ResponseWriter, r *http.Request) error {
	ctx, e := r.Context(), s.Events(w, r)
	tick := time.NewTicker(stepsEvery)
	defer tick.Stop()
	seen := map[*engine.Engine]int64{}
	for _, m := range s.Models.Loaded() {
		if eng := m.Engine(); eng != nil {
			seen[eng] = lastOf(eng.Trace().Steps(0, 1))
		}
	}
	for n := 0; !s.Draining(); n++ {
		if n%statusEvery == 0 {
			if err := e.Named("status", s.statusFor(ctx)); err != nil {
				return nil // the client is gone
			}
		}
		if n%pingEvery == pingEvery-1 {
			if err := e.Comment("ping"); err != nil {
				return nil
			}
		}
		if err := s.newSteps(ctx, e, s.Models.Loaded(), seen); err != nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// newSteps sends the steps of models that were not seen yet.
func (s *API) newSteps(ctx context.Context, e *wire.Events, models []*run.Model, seen map[*engine.Engine]int64) error {
	for _, m := range models {
		eng := m.Engine()
		if eng == nil {
			continue
		}
		steps := eng.Trace().Steps(seen[eng], mostSteps)
		if len(steps) == 0 {
			continue
		}
		seen[eng] = lastOf(steps)
		if err := e.Named("steps", &Steps{m.Info().Name, stepsFor(ctx, steps)}); err != nil {
			return err
		}
	}
	return nil
}

// lastOf is the number of the last of steps, 0 if there are none.
func lastOf(steps []trace.Step) int64 {
	if len(steps) == 0 {
		return 0
	}
	return steps[len(steps)-1].N
}

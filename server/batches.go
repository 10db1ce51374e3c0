package server

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sort"
	"sync"
	"time"

	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/server/internal/folder"
	"ridge/server/wire"
)

// batches runs batch jobs, one after the other, behind the requests of people
// who wait. All of a job is on disk: a server that ends in the middle goes on
// with it when it starts again, and does no line twice.
type batches struct {
	s      *Server
	dir    string
	wake   chan struct{}
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}
	pause  time.Duration // before the next try where the disk is full

	mu sync.Mutex // of the descriptions on disk
}

// batch is the object batch.
type batch struct {
	ID         string          `json:"id"`
	Object     string          `json:"object"`
	Endpoint   string          `json:"endpoint"`
	Errors     any             `json:"errors"`
	Input      string          `json:"input_file_id"`
	Window     string          `json:"completion_window"`
	Status     string          `json:"status"`
	Output     *string         `json:"output_file_id"`
	ErrorFile  *string         `json:"error_file_id"`
	Created    int64           `json:"created_at"`
	InProgress *int64          `json:"in_progress_at"`
	Expires    int64           `json:"expires_at"`
	Finalizing *int64          `json:"finalizing_at"`
	Completed  *int64          `json:"completed_at"`
	Failed     *int64          `json:"failed_at"`
	Expired    *int64          `json:"expired_at"`
	Cancelling *int64          `json:"cancelling_at"`
	Cancelled  *int64          `json:"cancelled_at"`
	Counts     batchCounts     `json:"request_counts"`
	Metadata   json.RawMessage `json:"metadata"`
	Owner      string          `json:"owner,omitempty"` // not shown
}

type batchCounts struct {
	Total     int `json:"total"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
}

func (b batch) shown() batch {
	b.Owner = ""
	return b
}

func (b *batch) over() bool {
	return slices.Contains([]string{"completed", "failed", "expired", "cancelled"}, b.Status)
}

// batchEndpoints are the routes that a batch's lines may ask.
var batchEndpoints = []string{"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses"}

// Limits of batches.
const (
	maxBatchLines  = 50000
	batchAtOnce    = 8
	batchPriority  = 100 // class of their requests: behind all others
	batchWindow    = 24 * time.Hour
	maxBatchErrors = 20
	batchPause     = 10 * time.Second
)

// openBatches opens the folder of files and goes on with the batches in it.
func openBatches(s *Server, dir string) (*batches, error) {
	entries, err := folder.Open(dir)
	if err != nil {
		return nil, err
	}
	b := &batches{s: s, dir: dir, wake: make(chan struct{}, 1), done: make(chan struct{}), pause: batchPause}
	b.sweep(entries)
	b.ctx, b.cancel = context.WithCancel(context.Background())
	go b.work()
	return b, nil
}

// stop ends the work. What is unfinished is done after the next start.
func (b *batches) stop() {
	b.cancel()
	<-b.done
}

// work runs one batch after the other, the oldest first.
func (b *batches) work() {
	defer close(b.done)
	for b.ctx.Err() == nil {
		next, err := b.next()
		if err != nil {
			b.s.log.Error("batches cannot be read", "error", b.s.logged(err))
		}
		if next != nil {
			err := b.run(next)
			switch {
			case err == nil || b.ctx.Err() != nil:
			case fault.DiskFull(err): // what is done is kept; the rest waits
				b.s.log.Error("the disk is full: a batch waits", "batch", next.ID, "error", b.s.logged(err))
				b.rest()
			default:
				b.s.log.Error("batch failed", "batch", next.ID, "error", b.s.logged(err))
				b.fail(next, err)
			}
			continue
		}
		select {
		case <-b.wake:
		case <-b.ctx.Done():
		}
	}
}

// next is the oldest batch that is not over.
func (b *batches) next() (*batch, error) {
	ids, err := b.list("batch-")
	if err != nil {
		return nil, err
	}
	var oldest *batch
	for _, id := range ids {
		var x batch
		if err := b.readMeta(id, &x); err != nil {
			b.s.log.Warn("a batch's description cannot be read", "batch", id, "error", b.s.logged(err))
			continue
		}
		if !x.over() && (oldest == nil || x.Created < oldest.Created) {
			oldest = &x
		}
	}
	return oldest, nil
}

// change changes a batch's description, on disk first.
func (b *batches) change(id string, f func(*batch)) (batch, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var x batch
	if err := b.readMeta(id, &x); err != nil {
		return x, err
	}
	f(&x)
	return x, b.writeMeta(id, &x)
}

func (b *batches) fail(x *batch, why error) {
	_, err := b.change(x.ID, func(x *batch) {
		x.Status, x.Failed = "failed", unix()
		x.Errors = batchErrors(why)
	})
	if err != nil {
		b.s.log.Error("a batch's description cannot be written", "batch", x.ID, "error", b.s.logged(err))
		b.rest() // do not try in a loop
	}
}

// rest waits until it is worth to try again.
func (b *batches) rest() {
	select {
	case <-time.After(b.pause):
	case <-b.ctx.Done():
	}
}

func batchErrors(errs ...error) any {
	type one struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Param   any    `json:"param"`
		Line    any    `json:"line"`
	}
	var data []one
	for _, e := range errs {
		data = append(data, one{Code: "invalid_request", Message: e.Error()})
	}
	return map[string]any{"object": "list", "data": data}
}

func unix() *int64 {
	n := time.Now().Unix()
	return &n
}

// get is the description of a batch that owner may see.
func (b *batches) get(id, owner string) (batch, error) {
	var x batch
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.readMeta(id, &x); err != nil {
		return x, err
	}
	if x.Owner != owner || x.Object != "batch" {
		return x, fault.NotFound("no batch has the id %q", id)
	}
	return x, nil
}

// batchRequest is the body of POST /v1/batches.
type batchRequest struct {
	Input    string          `json:"input_file_id"`
	Endpoint string          `json:"endpoint"`
	Window   string          `json:"completion_window"`
	Metadata json.RawMessage `json:"metadata"`
}

func (s *Server) postBatch(w http.ResponseWriter, r *http.Request) error {
	if err := s.enabled(); err != nil {
		return err
	}
	var b batchRequest
	err := wire.DecodeBody(r, &b)
	if err == nil && !slices.Contains(batchEndpoints, b.Endpoint) {
		err = fault.BadRequest("endpoint", "expected one of %v, found %q", batchEndpoints, b.Endpoint)
	}
	if err == nil && b.Window != "24h" {
		err = fault.BadRequest("completion_window", "expected 24h, found %q", b.Window)
	}
	if err == nil {
		_, err = s.batches.file(b.Input, caller.Owner(r.Context()))
	}
	if err != nil {
		return err
	}
	x := batch{ID: caller.NewID("batch-"), Object: "batch", Endpoint: b.Endpoint, Input: b.Input, Window: b.Window, Status: "validating", Created: time.Now().Unix(),
		Expires: time.Now().Add(batchWindow).Unix(), Metadata: b.Metadata, Owner: caller.Owner(r.Context())}
	s.batches.mu.Lock()
	err = s.batches.writeMeta(x.ID, &x)
	s.batches.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case s.batches.wake <- struct{}{}:
	default:
	}
	wire.WriteJSON(w, http.StatusOK, x.shown())
	return nil
}

func (s *Server) listBatches(w http.ResponseWriter, r *http.Request) error {
	if err := s.enabled(); err != nil {
		return err
	}
	all, err := s.batches.list("batch-")
	if err != nil {
		return err
	}
	out := []batch{}
	for _, id := range all {
		if x, err := s.batches.get(id, caller.Owner(r.Context())); err == nil {
			out = append(out, x.shown())
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Created > out[j].Created })
	wire.WriteJSON(w, http.StatusOK, map[string]any{"object": "list", "data": out, "has_more": false})
	return nil
}

func (s *Server) getBatch(w http.ResponseWriter, r *http.Request) error {
	if err := s.enabled(); err != nil {
		return err
	}
	x, err := s.batches.get(r.PathValue("id"), caller.Owner(r.Context()))
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, x.shown())
	return nil
}

func (s *Server) cancelBatch(w http.ResponseWriter, r *http.Request) error {
	if err := s.enabled(); err != nil {
		return err
	}
	x, err := s.batches.get(r.PathValue("id"), caller.Owner(r.Context()))
	if err == nil {
		x, err = s.batches.change(x.ID, func(x *batch) {
			if !x.over() {
				x.Status, x.Cancelling = "cancelling", unix()
			}
		})
	}
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, x.shown())
	return nil
}

package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"ridge/server/caller"
	"ridge/server/wire"
)

// batchLine is a line of a batch's input.
type batchLine struct {
	ID     string          `json:"custom_id"`
	Method string          `json:"method"`
	URL    string          `json:"url"`
	Body   json.RawMessage `json:"body"`
}

// run runs a batch, or the rest of one.
func (b *batches) run(x *batch) error {
	lines, err := b.readLines(x)
	if err != nil {
		return err
	}
	out, done, err := b.openOutput(x)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := b.change(x.ID, func(x *batch) {
		if x.Status == "validating" {
			x.Status, x.InProgress = "in_progress", unix()
		}
		x.Counts = done.counts
		x.Counts.Total = len(lines)
	}); err != nil {
		return err
	}
	ctx, cancel := context.WithDeadline(b.ctx, time.Unix(x.Expires, 0))
	defer cancel()
	if err := b.runLines(ctx, x, lines, out, done); err != nil {
		return err
	}
	if b.ctx.Err() != nil {
		return nil // later
	}
	return b.finish(x, len(lines), ctx.Err() != nil)
}

// readLines reads and checks a batch's input.
func (b *batches) readLines(x *batch) ([]batchLine, error) {
	path, err := b.path(x.Input, ".data")
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the input file is gone: %w", err)
	}
	defer f.Close()
	var (
		lines []batchLine
		errs  []error
		seen  = map[string]bool{}
		in    = bufio.NewScanner(f)
	)
	in.Buffer(nil, int(b.s.o.MaxBodyBytes)+1024)
	for n := 1; in.Scan(); n++ {
		if len(bytes.TrimSpace(in.Bytes())) == 0 {
			continue
		}
		var l batchLine
		switch err := json.Unmarshal(in.Bytes(), &l); {
		case err != nil:
			errs = append(errs, fmt.Errorf("line %d: not valid JSON: %w", n, err))
		case l.ID == "" || seen[l.ID]:
			errs = append(errs, fmt.Errorf("line %d: custom_id: expected one that no other line has, found %q", n, l.ID))
		case l.Method != http.MethodPost || l.URL != x.Endpoint:
			errs = append(errs, fmt.Errorf("line %d: expected POST %s, found %s %s", n, x.Endpoint, l.Method, l.URL))
		case len(lines) >= maxBatchLines:
			errs = append(errs, fmt.Errorf("line %d: expected at most %d lines", n, maxBatchLines))
		}
		if len(errs) >= maxBatchErrors {
			break
		}
		seen[l.ID] = true
		lines = append(lines, l)
	}
	if err := in.Err(); err != nil {
		errs = append(errs, err)
	}
	if len(lines) == 0 && len(errs) == 0 {
		errs = append(errs, errors.New("expected at least one line, found none"))
	}
	return lines, errors.Join(errs...)
}

// batchProgress is what a batch has done.
type batchProgress struct {
	mu     sync.Mutex
	ids    map[string]bool
	counts batchCounts
	err    error // of writing; what comes after it would follow half a line
}

// batchResult is a line of a batch's output.
type batchResult struct {
	ID       string         `json:"id"`
	CustomID string         `json:"custom_id"`
	Response *batchResponse `json:"response"`
	Error    any            `json:"error"`
}

type batchResponse struct {
	Status    int             `json:"status_code"`
	RequestID string          `json:"request_id"`
	Body      json.RawMessage `json:"body"`
}

// openOutput opens the file of results, and reads what is in it from a run
// before. A line that was cut off is dropped.
func (b *batches) openOutput(x *batch) (*os.File, *batchProgress, error) {
	path, err := b.path(x.ID, ".results")
	if err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, err
	}
	p := &batchProgress{ids: map[string]bool{}}
	in := bufio.NewReader(f)
	whole := int64(0)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) { // results are there that cannot be read now
			f.Close()
			return nil, nil, err
		}
		var r batchResult
		if err != nil || json.Unmarshal(line, &r) != nil {
			break
		}
		whole += int64(len(line))
		p.ids[r.CustomID] = true
		if r.ok() {
			p.counts.Completed++
		} else {
			p.counts.Failed++
		}
	}
	if err = f.Truncate(whole); err == nil {
		_, err = f.Seek(whole, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, p, nil
}

func (r *batchResult) ok() bool { return r.Response != nil && r.Response.Status < 400 }

// runLines runs the lines that have no result yet.
func (b *batches) runLines(ctx context.Context, x *batch, lines []batchLine, out *os.File, p *batchProgress) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	slots := make(chan struct{}, batchAtOnce)
	for _, l := range lines {
		if p.ids[l.ID] {
			continue
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		if now, err := b.get(x.ID, x.Owner); err != nil || now.Status == "cancelling" {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			r := b.runLine(ctx, x, &l)
			if r == nil {
				return
			}
			if err := p.write(out, r); err != nil {
				cancel(err)
				return
			}
			_, err := b.change(x.ID, func(x *batch) {
				p.mu.Lock() // what is counted now: the account of another line may be entered before
				defer p.mu.Unlock()
				x.Counts.Completed, x.Counts.Failed = p.counts.Completed, p.counts.Failed
			})
			if err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// write adds a result, so that it survives whatever comes.
func (p *batchProgress) write(out *os.File, r *batchResult) error {
	line, err := wire.EncodeJSON(r)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return p.err
	}
	if _, p.err = out.Write(append(line, '\n')); p.err != nil {
		return p.err
	}
	if p.err = out.Sync(); p.err != nil {
		return p.err
	}
	if r.ok() {
		p.counts.Completed++
	} else {
		p.counts.Failed++
	}
	return nil
}

// runLine asks the server itself. nil means that the batch is to stop.
func (b *batches) runLine(ctx context.Context, x *batch, l *batchLine) *batchResult {
	id := caller.NewID("req_")
	r := &batchResult{ID: caller.NewID("batch_req_"), CustomID: l.ID}
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 10*time.Second) {
		status, body := b.ask(ctx, id, x, l)
		if ctx.Err() != nil {
			return nil
		}
		switch status { // what others or a full disk keep from being done is done later
		case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusInsufficientStorage:
		default:
			if !json.Valid(body) {
				body, _ = wire.EncodeJSON(string(body)) // strings encode
			}
			r.Response = &batchResponse{status, id, body}
			return r
		}
		select { // others come first
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

func (b *batches) ask(ctx context.Context, id string, x *batch, l *batchLine) (int, []byte) {
	body := withoutStream(l.Body)
	ctx = caller.WithRecord(caller.WithAccount(ctx, &caller.Account{Name: x.Owner, Patient: true, Priority: func(asked int) int { return asked + batchPriority }}), &caller.Record{ID: id})
	r, err := http.NewRequestWithContext(ctx, l.Method, l.URL, bytes.NewReader(body))
	if err != nil {
		return http.StatusBadRequest, []byte(`{"error":{"message":"the line's url cannot be used","type":"invalid_request_error","param":"url","code":null}}`)
	}
	w := &recorder{header: http.Header{}, status: http.StatusOK}
	func() {
		defer func() {
			if p := recover(); p != nil {
				b.s.log.Error("panic", "request", id, "panic", b.s.logged(fmt.Errorf("%v", p)))
				w.status, w.body = http.StatusInternalServerError, wire.Buffer(`{"error":{"message":"internal error","type":"server_error","param":null,"code":"internal_error"}}`)
			}
		}()
		b.s.mux.ServeHTTP(w, r)
	}()
	return w.status, w.body
}

// withoutStream drops a line's wish for a stream.
func withoutStream(body json.RawMessage) []byte {
	var m map[string]json.RawMessage
	if json.Unmarshal(body, &m) != nil || m["stream"] == nil {
		return body
	}
	delete(m, "stream")
	delete(m, "stream_options")
	b, err := wire.EncodeJSON(m)
	if err != nil {
		return body
	}
	return b
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	wrote  bool
	body   wire.Buffer
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(status int) {
	if !w.wrote {
		w.status, w.wrote = status, true
	}
}

func (w *recorder) Write(p []byte) (int, error) {
	w.wrote = true
	return w.body.Write(p)
}

// finish turns the results into files.
func (b *batches) finish(x *batch, total int, expired bool) error {
	if _, err := b.change(x.ID, func(x *batch) { x.Finalizing = unix() }); err != nil {
		return err
	}
	path, err := b.path(x.ID, ".results")
	if err != nil {
		return err
	}
	good, goodN, err := b.split(path, x, true)
	if err != nil {
		return err
	}
	bad, badN, err := b.split(path, x, false)
	defer func() {
		for _, id := range []*string{good, bad} {
			if err != nil && id != nil {
				_ = b.removeFile(*id) // the next try makes them again
			}
		}
	}()
	if err != nil {
		return err
	}
	_, err = b.change(x.ID, func(x *batch) {
		x.Output, x.ErrorFile = good, bad
		x.Counts = batchCounts{total, goodN, badN}
		switch {
		case x.Status == "cancelling":
			x.Status, x.Cancelled = "cancelled", unix()
		case expired:
			x.Status, x.Expired = "expired", unix()
		default:
			x.Status, x.Completed = "completed", unix()
		}
	})
	if err == nil {
		_ = os.Remove(path) // its content is in the files now
	}
	return err
}

// split stores the good or the bad results as a file; nil if there are none.
func (b *batches) split(path string, x *batch, good bool) (*string, int, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	var keep bytes.Buffer
	n := 0
	for in := bufio.NewReader(f); ; {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, 0, err
		}
		var r batchResult
		if json.Unmarshal(line, &r) == nil && r.ok() == good {
			keep.Write(line)
			n++
		}
	}
	if n == 0 {
		return nil, 0, nil
	}
	name, purpose := x.ID+"_output.jsonl", "batch_output"
	if !good {
		name = x.ID + "_error.jsonl"
	}
	stored, err := b.store(&keep, name, purpose, x.Owner)
	if err != nil {
		return nil, 0, err
	}
	return &stored.ID, n, nil
}

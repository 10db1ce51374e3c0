package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// object is a run of bytes of something remote.
type object struct {
	url    string
	http   *http.Client
	header http.Header // authorization; sent only to the URL's own host
	off    int64       // where the bytes start in the remote thing; > 0 needs ranges
	size   int64       // how many there are; -1: all of it, length unknown
	sha256 string      // of these bytes; "" unknown
	git    string      // git blob id (sha1) of these bytes, where that is all the source tells

	// checkedLater says that what is made of the bytes is checked by a sum of
	// its own, so that no version tag is needed to go on with a part of them.
	checkedLater bool
}

func (o *object) checked() bool { return o.sha256 != "" || o.git != "" || o.checkedLater }

const (
	maxFailures      = 6   // failures in a row without a byte in between
	maxTotalFailures = 100 // failures of one fetch
	readBuffer       = 256 << 10
)

// saveEvery is how much time's worth of bytes a killed process can lose.
var saveEvery = time.Second

var (
	errStalled       = errors.New("no data for too long")
	errRangesIgnored = errors.New("the server ignores byte ranges")
	errChanged       = errors.New("the file at the source changed during the download")
)

// checksumError says that whole content is not what it should be.
type checksumError struct{ what, want, got string }

func (e *checksumError) Error() string {
	return fmt.Sprintf("%s: checksum: expected %s, found %s", e.what, e.want, e.got)
}

// fetch brings obj into path+".incomplete", going on from what an earlier run
// left there, checks it and returns its sha256. The state file beside it then
// says that it is complete, so that doing it again costs nothing.
func (c *client) fetch(ctx context.Context, obj object, path string, m meter) (string, error) {
	redone := map[string]bool{}
	for {
		sum, err := c.fetchOnce(ctx, obj, path, m)
		var ce *checksumError
		kind := ""
		switch {
		case errors.Is(err, errChanged):
			kind = "changed"
		case errors.As(err, &ce):
			kind = "checksum"
		}
		if kind == "" || redone[kind] || ctx.Err() != nil {
			return sum, err
		}
		// Once from the beginning: the kept part may be what is wrong.
		redone[kind] = true
		removePartial(path)
		m.set(0)
	}
}

func (c *client) fetchOnce(ctx context.Context, obj object, path string, m meter) (string, error) {
	st := loadState(path, obj)
	if st == nil {
		removePartial(path)
		st = newState(obj)
	}
	if st.Sum != "" {
		m.set(st.Size)
		return st.Sum, nil
	}
	f, err := os.OpenFile(path+incompleteSuffix, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return "", err
	}
	defer f.Close()
	d := &download{c: c, obj: obj, path: path, f: f, st: st, m: m}
	m.set(st.present())
	if err := d.run(ctx); err != nil {
		// What has no record cannot be gone on from: it would only take room. One
		// that is some moments old will do.
		if st.present() == 0 || d.recordLast() != nil && loadState(path, obj) == nil {
			f.Close()
			removePartial(path)
		}
		return "", err
	}
	if err := f.Sync(); err != nil {
		return "", err
	}
	sum, err := c.verify(f, st.Size, obj, filepath.Base(path))
	if err != nil {
		var ce *checksumError
		if errors.As(err, &ce) {
			f.Close()
			removePartial(path)
		}
		return "", err
	}
	st.Sum = sum
	return sum, st.save(path)
}

// download is one run of fetching an object. Its workers share the state.
type download struct {
	c    *client
	obj  object
	path string
	f    *os.File
	m    meter

	mu       sync.Mutex
	st       *fetchState
	busy     map[int]bool
	noRanges bool
	row, all int // failures in a row and in total
	saved    time.Time
}

// run fetches all missing bytes: first one request that finds out the size and
// whether ranges work, then parallel workers.
func (d *download) run(ctx context.Context) error {
	d.busy = map[int]bool{}
	if d.st.Size >= 0 {
		if err := d.checkSpace(); err != nil {
			return err
		}
	}
	if err := d.worker(ctx, true); err != nil || d.st.complete() {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workers := d.c.o.Connections
	if workers <= 0 {
		workers = 4
	}
	workers = min(workers, 32, len(d.st.Have))
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			if err := d.worker(ctx, false); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if !d.st.complete() {
		return fmt.Errorf("%s: stopped early: expected %d bytes, found %d", filepath.Base(d.path), d.st.Size, d.st.present())
	}
	return nil
}

// worker takes segment after segment. The lead worker stops after the first
// success that leaves a known size and working ranges.
func (d *download) worker(ctx context.Context, lead bool) error {
	for {
		seg, ok := d.take(lead)
		if !ok {
			return nil
		}
		before := d.progress()
		err := d.request(ctx, seg, lead)
		d.release(seg)
		if err == nil {
			d.mu.Lock()
			d.row = 0
			stop := lead && d.st.Size >= 0 && !d.noRanges
			d.mu.Unlock()
			if stop {
				return nil
			}
			continue
		}
		if err := d.afterFailure(ctx, err, d.progress() > before); err != nil {
			return err
		}
	}
}

// afterFailure decides whether to try again, and waits before that.
func (d *download) afterFailure(ctx context.Context, err error, moved bool) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	d.mu.Lock()
	if moved {
		d.row = 0
	}
	d.row++
	d.all++
	row, all, started := d.row, d.all, d.st.present() > 0 || moved
	d.mu.Unlock()
	switch {
	case errors.Is(err, errChanged), errors.As(err, new(*spaceError)), errors.As(err, new(*os.PathError)):
		return err
	case !transient(err), !started && (noConnection(err) || timedOut(err) && row >= 2):
		return reason(err)
	case row >= maxFailures, all >= maxTotalFailures:
		return fmt.Errorf("given up after %d failures, the last: %w", all, reason(err))
	}
	pause := min(retryPause<<(row-1), 8*time.Second)
	var se *statusError
	if errors.As(err, &se) {
		pause = max(pause, se.retryAfter)
	}
	return sleep(ctx, pause)
}

func (d *download) progress() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.st.present()
}

// take reserves a segment with missing bytes; -1 stands for an object of
// unknown size.
func (d *download) take(lead bool) (int, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.st.Size < 0 {
		return -1, lead
	}
	for i, h := range d.st.Have {
		if h < d.st.segmentLen(i) && !d.busy[i] {
			d.busy[i] = true
			return i, true
		}
	}
	return 0, false
}

func (d *download) release(seg int) {
	d.mu.Lock()
	delete(d.busy, seg)
	d.mu.Unlock()
}

// request asks for the missing bytes of one segment and writes what comes.
func (d *download) request(ctx context.Context, seg int, lead bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(d.c.patience, func() { cancel(errStalled) })
	defer watchdog.Stop()

	lo, want := int64(0), minSegment
	d.mu.Lock()
	if seg >= 0 {
		lo = int64(seg)*d.st.Segment + d.st.Have[seg]
		want = d.st.segmentLen(seg) - d.st.Have[seg]
	}
	d.mu.Unlock()
	h := http.Header{"Accept-Encoding": {"identity"}}
	for k, v := range d.obj.header {
		h[k] = v
	}
	h.Set("Range", fmt.Sprintf("bytes=%d-%d", d.obj.off+lo, d.obj.off+lo+want-1))
	resp, err := get(ctx, d.obj.http, d.obj.url, h)
	if err != nil {
		return orCause(ctx, err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusPartialContent:
		if seg, err = d.acceptRange(resp, seg, lo); err != nil {
			return err
		}
	case http.StatusOK:
		if !lead || d.obj.off > 0 {
			return errRangesIgnored
		}
		return orCause(ctx, d.stream(ctx, resp, watchdog))
	case http.StatusRequestedRangeNotSatisfiable:
		return d.refusedRange(resp)
	default:
		return newStatusError(resp)
	}
	return orCause(ctx, d.copySegment(ctx, resp.Body, seg, lo, watchdog))
}

// acceptRange checks the header of a 206 answer against what is known, or
// learns the size and the version from the first one.
func (d *download) acceptRange(resp *http.Response, seg int, lo int64) (int, error) {
	start, total, err := contentRange(resp.Header.Get("Content-Range"))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", cleanURL(resp.Request.URL), err)
	}
	if start != d.obj.off+lo {
		return 0, fmt.Errorf("%s: Content-Range: expected start %d, found %d", cleanURL(resp.Request.URL), d.obj.off+lo, start)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if seg < 0 {
		if total < 0 {
			return 0, fmt.Errorf("%s: Content-Range gives no total size", cleanURL(resp.Request.URL))
		}
		d.st.setSize(total)
		if err := d.checkSpaceLocked(); err != nil {
			return 0, err
		}
		seg = 0 // the lead worker is alone: nothing to reserve
	} else if total >= 0 && d.obj.off == 0 && total != d.st.Size {
		return 0, fmt.Errorf("%w: size: expected %d, found %d", errChanged, d.st.Size, total)
	}
	return seg, d.sameVersion(resp)
}

// sameVersion compares the ETag with that of the first answer. With a known
// sha256 the check at the end is the better one, and servers behind one name
// do not always agree on tags.
func (d *download) sameVersion(resp *http.Response) error {
	tag := resp.Header.Get("ETag")
	if tag == "" {
		if m := resp.Header.Get("Last-Modified"); m != "" {
			tag = "modified " + m
		}
	}
	if d.st.ETag == "" {
		d.st.ETag = tag
	}
	if !d.obj.checked() && tag != d.st.ETag {
		return fmt.Errorf("%w: version: expected %s, found %s", errChanged, d.st.ETag, tag)
	}
	return nil
}

// refusedRange handles a 416: an empty file, or one shorter than it was.
func (d *download) refusedRange(resp *http.Response) error {
	_, total, err := contentRange(resp.Header.Get("Content-Range"))
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil && total == 0 && d.st.Size <= 0 {
		d.st.setSize(0)
		return nil
	}
	if d.st.present() > 0 {
		return errChanged
	}
	return newStatusError(resp)
}

// stream takes the whole object from a server without ranges. A break means
// starting over.
func (d *download) stream(ctx context.Context, resp *http.Response, watchdog *time.Timer) error {
	d.mu.Lock()
	d.noRanges = true
	n := resp.ContentLength
	if d.st.Size >= 0 && n >= 0 && n != d.st.Size {
		d.mu.Unlock()
		return fmt.Errorf("%w: size: expected %d, found %d", errChanged, d.st.Size, n)
	}
	if d.st.Size < 0 && n >= 0 {
		d.st.setSize(n)
		if err := d.checkSpaceLocked(); err != nil {
			d.mu.Unlock()
			return err
		}
	}
	clear(d.st.Have)
	d.st.ETag = ""
	d.mu.Unlock()
	d.m.set(0)
	got, err := d.copyBody(ctx, resp.Body, 0, d.st.Size, watchdog, d.filled)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.st.Size < 0 { // chunked: the end of the body is the end of the file
		d.st.setSize(got)
		d.st.fill(got)
	}
	if got != d.st.Size {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// filled notes that the first n bytes are there.
func (d *download) filled(_, n int64) {
	if d.st.Size >= 0 {
		d.st.fill(n)
	}
}

func (st *fetchState) fill(n int64) {
	for i := range st.Have {
		st.Have[i] = max(0, min(st.segmentLen(i), n-int64(i)*st.Segment))
	}
}

func (d *download) copySegment(ctx context.Context, body io.Reader, seg int, lo int64, watchdog *time.Timer) error {
	end := int64(seg)*d.st.Segment + d.st.segmentLen(seg)
	got, err := d.copyBody(ctx, body, lo, end-lo, watchdog, func(n, _ int64) { d.st.Have[seg] += n })
	if err == nil && got == 0 {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// copyBody writes at most most bytes (-1: all) of body at lo of the file and
// calls note(n new, total so far), under the lock, as they arrive.
func (d *download) copyBody(ctx context.Context, body io.Reader, lo, most int64, watchdog *time.Timer, note func(n, total int64)) (int64, error) {
	if most >= 0 {
		body = io.LimitReader(body, most)
	}
	buf := make([]byte, d.c.limit.chunk(readBuffer))
	var got int64
	for {
		watchdog.Reset(d.c.stall)
		n, err := body.Read(buf)
		if n > 0 {
			if _, werr := d.f.WriteAt(buf[:n], lo+got); werr != nil {
				return got, werr
			}
			got += int64(n)
			d.mu.Lock()
			note(int64(n), got)
			d.saveSometimes()
			d.mu.Unlock()
			d.m.add(int64(n))
			watchdog.Stop() // waiting for the rate limit is no stall
			if err := d.c.limit.wait(ctx, n); err != nil {
				return got, err
			}
		}
		if err == io.EOF {
			return got, nil
		}
		if err != nil {
			return got, err
		}
	}
}

func (d *download) checkSpace() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.checkSpaceLocked()
}

func (d *download) checkSpaceLocked() error {
	return needSpace(filepath.Dir(d.path), d.st.Size-d.st.present())
}

// orCause replaces the error of a cancelled request by the reason it was
// cancelled for.
func orCause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

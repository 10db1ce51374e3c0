package server

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"ridge/server/fault"
)

// smallBody is the size of bodies up to which those that are large leave room:
// clients with small requests are served beside clients with large ones.
const smallBody = 256 << 10

// bodies bounds the memory of the bodies of all requests under way. A request
// takes several times its body while it is read: as bytes, as JSON, as text.
type bodies struct {
	most int64 // bytes; 0 for any number
	used atomic.Int64
}

// take reserves n bytes for a body of so many in all, and reports whether there
// was room for them. Large bodies leave a quarter to small ones.
func (b *bodies) take(n, size int64) bool {
	most := b.most
	if most == 0 {
		b.used.Add(n)
		return true
	}
	if size > smallBody {
		most -= most / 4
	}
	for {
		used := b.used.Load()
		if used > 0 && used+n > most {
			return false
		}
		if b.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// errNoRoom is what the client is told whose body must wait.
func (b *bodies) errNoRoom() error {
	return fault.TooMany(time.Second, "the bodies of the requests under way take the memory that there is for them, %d bytes", b.most)
}

// body is a request's body on its way in: it has a limit of bytes, of time and
// of memory together with all others.
type body struct {
	in      io.ReadCloser
	rc      *http.ResponseController
	all     *bodies // nil: the handler keeps nothing of it in memory
	read    int64
	taken   int64
	unknown bool // how long it is
	timed   bool
}

// bodyStep is what a body of unknown length reserves at a time.
const bodyStep = 256 << 10

// Read reads on. The deadline goes once the body is read: the connection is
// watched for the client's leaving. After an error it stays: net/http reads on
// before it answers.
func (b *body) Read(p []byte) (int, error) {
	if b.all != nil && b.unknown && b.read >= b.taken {
		if !b.all.take(bodyStep, b.read+bodyStep) {
			return 0, b.all.errNoRoom()
		}
		b.taken += bodyStep
	}
	n, err := b.in.Read(p)
	b.read += int64(n)
	if err == io.EOF && b.timed {
		_ = b.rc.SetReadDeadline(time.Time{})
	}
	return n, err
}

func (b *body) Close() error { return b.in.Close() }

// release gives back what the body has reserved.
func (b *body) release() {
	if b.all != nil {
		b.all.used.Add(-b.taken)
	}
}

// boundTime gives a request's body a time to arrive in, whether or not somebody
// reads it: net/http reads what is left of it before it answers.
func (s *Server) boundTime(w http.ResponseWriter, r *http.Request) bool {
	if r.ContentLength == 0 || s.o.BodyTimeout <= 0 {
		return false
	}
	return http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.o.BodyTimeout)) == nil // writers of tests have no deadlines
}

// takeBody bounds and decodes the body of a request that is admitted. release
// must be called when the request is over.
func (s *Server) takeBody(w http.ResponseWriter, r *http.Request, timed bool) (release func(), err error) {
	limit := s.bodyLimit(r)
	b := &body{in: http.MaxBytesReader(w, r.Body, limit), rc: http.NewResponseController(w), timed: timed, unknown: r.ContentLength < 0}
	release = b.release
	if r.URL.Path != "/v1/files" { // they go to the disk as they come
		b.all = &s.bodies
	}
	n := max(0, r.ContentLength)
	switch {
	case n > limit:
		err = &http.MaxBytesError{Limit: limit}
	case b.all != nil && n > 0 && !b.all.take(n, n):
		err = b.all.errNoRoom()
	case b.all != nil:
		b.taken = n
	}
	if err != nil {
		return release, err
	}
	r.Body = b
	switch coding := strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding"))); coding {
	case "", "identity":
	case "gzip", "x-gzip":
		r.Body, r.ContentLength = &unzipped{in: b, all: b, limit: limit}, -1
		r.Header.Del("Content-Encoding")
	default:
		w.Header().Set("Accept-Encoding", "gzip")
		return release, &fault.Error{Status: http.StatusUnsupportedMediaType, Type: "invalid_request_error", Code: "unsupported_encoding", Message: "Content-Encoding: expected gzip or none"}
	}
	return release, nil
}

// The rest of a body whose request is answered is read for so long, so many bytes
// at a time, with a pause after each: about 50 MB in a second.
const (
	restTime  = 5 * time.Second
	restStep  = 256 << 10
	restPause = 5 * time.Millisecond
)

// turnAway answers a request whose body is not taken, before the client has sent it.
// One that listens stops sending; one that sends everything first would lose the
// answer if the connection was closed at once, so what it sends is read for a while.
func (s *Server) turnAway(w *watchedWriter, r *http.Request, err error) {
	rc := http.NewResponseController(w)
	if r.ProtoMajor != 1 || r.ContentLength >= 0 && r.ContentLength <= restStep || rc.EnableFullDuplex() != nil {
		writeError(w, r, err) // net/http reads so much itself
		return
	}
	w.Header().Set("Connection", "close")
	writeError(w, r, err)
	if rc.Flush() != nil || r.Header.Get("Expect") != "" { // asked before it sends
		return
	}
	for end := time.Now().Add(restTime); time.Now().Before(end) && r.Context().Err() == nil; time.Sleep(restPause) {
		if _, err := io.CopyN(io.Discard, r.Body, restStep); err != nil {
			return
		}
	}
}

// unzipped is what a compressed body says. Its limits are those of a body that
// is not.
type unzipped struct {
	in    io.ReadCloser
	all   *body
	z     *gzip.Reader
	read  int64
	limit int64
}

func (u *unzipped) Read(p []byte) (int, error) {
	if u.z == nil {
		z, err := gzip.NewReader(u.in)
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, err
		}
		u.z = z
	}
	n, err := u.z.Read(p)
	u.read += int64(n)
	if u.read > u.limit {
		return 0, &http.MaxBytesError{Limit: u.limit}
	}
	if all := u.all.all; all != nil && u.read > u.all.taken {
		more := max(bodyStep, u.read-u.all.taken)
		if !all.take(more, u.read) {
			return 0, all.errNoRoom()
		}
		u.all.taken += more
	}
	return n, err
}

func (u *unzipped) Close() error { return u.in.Close() }

// bodyLimit is the most bytes that a request may have.
func (s *Server) bodyLimit(r *http.Request) int64 {
	if r.URL.Path == "/v1/files" {
		return s.o.MaxFileBytes
	}
	return s.o.MaxBodyBytes
}

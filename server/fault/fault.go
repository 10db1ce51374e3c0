package fault

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"ridge/engine"
	"ridge/model"
	"ridge/text/grammar"
)

// Error is an answer other than the one asked for. Each dialect writes it
// in its own form.
type Error struct {
	Status     int
	Type       string // OpenAI's error type
	Code       string // OpenAI's error code, or ""
	Param      string // the field of the request that is wrong, or ""
	Message    string
	RetryAfter time.Duration // when it is worth to try again; 0 for never
	// Tokens and Context are those of a prompt that does not fit, 0 in other errors.
	Tokens, Context int

	logged string // Message without what the client wrote; "": it has none outside of quotes
}

// Error is what the client reads.
func (e *Error) Error() string { return e.Message }

// BadRequest is a 400 about a field of the request.
func BadRequest(param, format string, a ...any) *Error {
	msg, logged := texts(false, format, a)
	if param != "" {
		msg, logged = param+": "+msg, param+": "+logged
	}
	return &Error{Status: http.StatusBadRequest, Type: "invalid_request_error", Param: param, Message: msg, logged: logged}
}

// Unsupported is a 400 about something that this model or server cannot do.
func Unsupported(param, format string, a ...any) *Error {
	e := BadRequest(param, format, a...)
	e.Code = "unsupported"
	return e
}

// NotImplemented is a 501 about something that this server does not offer.
func NotImplemented(format string, a ...any) *Error {
	msg, logged := texts(false, format, a)
	return &Error{Status: http.StatusNotImplemented, Type: "not_supported_error", Message: msg, logged: logged}
}

// NotFound is a 404.
func NotFound(format string, a ...any) *Error {
	msg, logged := texts(false, format, a)
	return &Error{Status: http.StatusNotFound, Type: "not_found_error", Message: msg, logged: logged}
}

// ModelNotFound is a 404 about the name of a model.
func ModelNotFound(name string) *Error {
	e := NotFound("model: expected one that this server has (GET /v1/models lists them), found %q", name)
	e.Code, e.Param = "model_not_found", "model"
	return e
}

// Unavailable is a 503. It is worth to try again after retry; 0 for never.
func Unavailable(retry time.Duration, format string, a ...any) *Error {
	msg, logged := texts(true, format, a)
	return &Error{Status: http.StatusServiceUnavailable, Type: "unavailable_error", Message: msg, RetryAfter: retry, logged: logged}
}

// TooMany is a 429. It is worth to try again after retry.
func TooMany(retry time.Duration, format string, a ...any) *Error {
	msg, logged := texts(true, format, a)
	return &Error{Status: http.StatusTooManyRequests, Type: "rate_limit_error", Code: "rate_limit_exceeded", Message: msg, RetryAfter: retry, logged: logged}
}

// CodeContext is OpenAI's code for prompts that do not fit.
const CodeContext = "context_length_exceeded"

// codeInternal is that of errors that nobody foresaw.
const codeInternal = "internal_error"

// StatusClientGone is logged for clients that went away; nobody reads it.
const StatusClientGone = 499

// As turns any error of a request into one that can be shown. What
// nobody foresaw is a 500 without details: those are in the log.
func As(err error) *Error {
	var (
		api     *Error
		ctxErr  *engine.ContextError
		full    *engine.QueueFullError
		request *engine.RequestError
		gram    *grammar.Error
	)
	switch {
	case errors.As(err, &api):
		return api
	case errors.As(err, &ctxErr):
		// Clients look for OpenAI's words and for Anthropic's in the message to
		// tell this error from others.
		e := BadRequest("", "prompt is too long: %d tokens > %d maximum. This model's maximum context length is %[2]d tokens, and nothing is cut without being asked: shorten the prompt", ctxErr.Tokens, ctxErr.Context)
		if ctxErr.AtLeast {
			e.Message += " (it has at least so many)"
		}
		e.Code, e.Tokens, e.Context = CodeContext, ctxErr.Tokens, ctxErr.Context
		return e
	case errors.As(err, &full):
		return TooMany(full.RetryAfter, "the server is busy: %d requests wait, as many as may", full.Position)
	case errors.As(err, &request):
		return BadRequest(request.Field, "%v", request.Err)
	case errors.As(err, &gram):
		return BadRequest("response_format", "%v", gram)
	case errors.Is(err, engine.ErrDraining), errors.Is(err, engine.ErrClosed):
		return Unavailable(5*time.Second, "the server is shutting down")
	case errors.Is(err, model.ErrChanged):
		return Unavailable(time.Second, "the model's file was changed while it was in use; the next request loads it again")
	case DiskFull(err):
		return &Error{Status: http.StatusInsufficientStorage, Type: "server_error", Code: "disk_full", Message: "the server's disk is full: nothing was stored"}
	case errors.Is(err, engine.ErrDeadline):
		e := Unavailable(time.Second, "deadline_ms: the first token cannot be there in time: others come before it")
		e.Code, e.Param = "deadline_exceeded", "deadline_ms"
		return e
	case errors.Is(err, engine.ErrNoToken):
		return &Error{Status: http.StatusUnprocessableEntity, Type: "invalid_request_error", Code: "no_token_allowed", Message: "the grammar, the biases and the model's vocabulary leave no token that may come next"}
	case errors.As(err, new(*engine.NonFiniteError)):
		return &Error{Status: http.StatusInternalServerError, Type: "server_error", Code: "model_not_finite", Message: strings.TrimPrefix(err.Error(), "engine: ") + ": the model's file is damaged, or is read in another way than it was made for"}
	case errors.Is(err, engine.ErrSlowReader):
		return &Error{Status: http.StatusRequestTimeout, Type: "invalid_request_error", Code: "slow_reader", Message: "the answer was not read in time"}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Status: http.StatusGatewayTimeout, Type: "server_error", Code: "timeout", Message: "the request took longer than this server allows"}
	case errors.Is(err, context.Canceled):
		return &Error{Status: StatusClientGone, Type: "server_error", Code: "cancelled", Message: "the request was cancelled"}
	}
	return &Error{Status: http.StatusInternalServerError, Type: "server_error", Code: codeInternal, Message: "internal error"}
}

// DiskFull reports whether something could not be written for want of room.
func DiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// longestRetry is the longest wait that clients are told to sit out. They wait
// as they like if it is longer, so that a quota of a day would only be asked for
// again and again.
const longestRetry = time.Minute

// setRetry sets the headers that clients obey before they try again.
func (e *Error) SetRetry(h http.Header) {
	switch {
	case e.RetryAfter > 0:
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
		h.Set("Retry-After-Ms", strconv.FormatInt(e.RetryAfter.Milliseconds(), 10))
		h.Set("X-Should-Retry", strconv.FormatBool(e.RetryAfter <= longestRetry))
	case e.Status >= 500 || e.Status == http.StatusRequestTimeout:
		h.Set("X-Should-Retry", "false")
	}
}

// Excerpt shows the start of what a client sent: JSON as it is, anything else
// in quotes.
func Excerpt(b []byte) string {
	const most = 40
	b = bytes.TrimSpace(b)
	if json.Valid(b) && utf8.Valid(b) {
		var c bytes.Buffer
		_ = json.Compact(&c, b) // it is valid
		b = c.Bytes()
		if len(b) <= most {
			return string(b)
		}
		return strings.ToValidUTF8(string(b[:most]), "") + "…"
	}
	if len(b) > most {
		return strconv.Quote(string(b[:most])) + "…"
	}
	return strconv.Quote(string(b))
}

package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ridge/engine"
	"ridge/model"
	"ridge/text/grammar"
)

// apiError is an answer other than the one asked for. Each dialect writes it
// in its own form.
type apiError struct {
	Status     int
	Type       string // OpenAI's error type
	Code       string // OpenAI's error code, or ""
	Param      string // the field of the request that is wrong, or ""
	Message    string
	RetryAfter time.Duration // when it is worth to try again; 0 for never
}

func (e *apiError) Error() string { return e.Message }

// badRequest is a 400 about a field of the request.
func badRequest(param, format string, a ...any) *apiError {
	msg := fmt.Sprintf(format, a...)
	if param != "" {
		msg = param + ": " + msg
	}
	return &apiError{Status: http.StatusBadRequest, Type: "invalid_request_error", Param: param, Message: msg}
}

// unsupported is a 400 about something that this model or server cannot do.
func unsupported(param, format string, a ...any) *apiError {
	e := badRequest(param, format, a...)
	e.Code = "unsupported"
	return e
}

func notImplemented(format string, a ...any) *apiError {
	return &apiError{Status: http.StatusNotImplemented, Type: "not_supported_error", Message: fmt.Sprintf(format, a...)}
}

func notFound(format string, a ...any) *apiError {
	return &apiError{Status: http.StatusNotFound, Type: "not_found_error", Message: fmt.Sprintf(format, a...)}
}

func modelNotFound(name string) *apiError {
	e := notFound("model: expected one that this server has (GET /v1/models lists them), found %q", name)
	e.Code, e.Param = "model_not_found", "model"
	return e
}

func unavailable(retry time.Duration, format string, a ...any) *apiError {
	return &apiError{Status: http.StatusServiceUnavailable, Type: "unavailable_error", Message: fmt.Sprintf(format, a...), RetryAfter: retry}
}

func tooMany(retry time.Duration, format string, a ...any) *apiError {
	return &apiError{Status: http.StatusTooManyRequests, Type: "rate_limit_error", Code: "rate_limit_exceeded", Message: fmt.Sprintf(format, a...), RetryAfter: retry}
}

// codeContext is OpenAI's code for prompts that do not fit.
const codeContext = "context_length_exceeded"

// promptField is the field of a path's requests that has the prompt.
func promptField(path string) string {
	switch {
	case strings.Contains(path, "embed"), strings.HasSuffix(path, "/responses"):
		return "input"
	case strings.Contains(path, "/chat"), dialectOf(path) == anthropic:
		return "messages"
	case strings.Contains(path, "rerank"):
		return "documents"
	case strings.HasSuffix(path, "/score"):
		return "text_2"
	}
	return "prompt"
}

// statusClientGone is logged for clients that went away; nobody reads it.
const statusClientGone = 499

// asAPIError turns any error of a request into one that can be shown. What
// nobody foresaw is a 500 without details: those are in the log.
func asAPIError(err error) *apiError {
	var (
		api     *apiError
		ctxErr  *engine.ContextError
		full    *engine.QueueFullError
		request *engine.RequestError
		gram    *grammar.Error
		size    *http.MaxBytesError
	)
	switch {
	case errors.As(err, &api):
		return api
	case errors.As(err, &ctxErr):
		// Clients look for OpenAI's words and for Anthropic's in the message to
		// tell this error from others.
		e := badRequest("", "prompt is too long: %d tokens > %d maximum. This model's maximum context length is %[2]d tokens, and nothing is cut without being asked: shorten the prompt", ctxErr.Tokens, ctxErr.Context)
		e.Code = codeContext
		return e
	case errors.As(err, &full):
		return tooMany(full.RetryAfter, "the server is busy: %d requests wait, as many as may", full.Position)
	case errors.As(err, &request):
		return badRequest(request.Field, "%v", request.Err)
	case errors.As(err, &gram):
		return badRequest("response_format", "%v", gram)
	case errors.As(err, &size):
		return &apiError{Status: http.StatusRequestEntityTooLarge, Type: "invalid_request_error", Code: "request_too_large", Message: fmt.Sprintf("the request's body has more than %d bytes", size.Limit)}
	case errors.Is(err, engine.ErrDraining), errors.Is(err, engine.ErrClosed):
		return unavailable(5*time.Second, "the server is shutting down")
	case errors.Is(err, model.ErrChanged):
		return unavailable(time.Second, "the model's file was changed while it was in use; the next request loads it again")
	case diskFull(err):
		return &apiError{Status: http.StatusInsufficientStorage, Type: "server_error", Code: "disk_full", Message: "the server's disk is full: nothing was stored"}
	case errors.Is(err, engine.ErrDeadline):
		return unavailable(time.Second, "the deadline of the first token cannot be met")
	case errors.Is(err, engine.ErrNoToken):
		return &apiError{Status: http.StatusUnprocessableEntity, Type: "invalid_request_error", Code: "no_token_allowed", Message: "the grammar, the biases and the model's vocabulary leave no token that may come next"}
	case errors.Is(err, engine.ErrSlowReader):
		return &apiError{Status: http.StatusRequestTimeout, Type: "invalid_request_error", Code: "slow_reader", Message: "the answer was not read in time"}
	case errors.Is(err, context.DeadlineExceeded):
		return &apiError{Status: http.StatusGatewayTimeout, Type: "server_error", Code: "timeout", Message: "the request took longer than this server allows"}
	case errors.Is(err, context.Canceled):
		return &apiError{Status: statusClientGone, Type: "server_error", Code: "cancelled", Message: "the request was cancelled"}
	}
	return &apiError{Status: http.StatusInternalServerError, Type: "server_error", Code: "internal_error", Message: "internal error"}
}

// diskFull reports whether something could not be written for want of room.
func diskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// longestRetry is the longest wait that clients are told to sit out. They wait
// as they like if it is longer, so that a quota of a day would only be asked for
// again and again.
const longestRetry = time.Minute

// setRetry sets the headers that clients obey before they try again.
func (e *apiError) setRetry(h http.Header) {
	switch {
	case e.RetryAfter > 0:
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
		h.Set("Retry-After-Ms", strconv.FormatInt(e.RetryAfter.Milliseconds(), 10))
		h.Set("X-Should-Retry", strconv.FormatBool(e.RetryAfter <= longestRetry))
	case e.Status >= 500 || e.Status == http.StatusRequestTimeout:
		h.Set("X-Should-Retry", "false")
	}
}

// openAI is the error as OpenAI's API has it. Param and code are null and not
// absent where there is none.
func (e *apiError) openAI() any {
	type inner struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    any     `json:"code"`
	}
	in := inner{Message: e.Message, Type: e.Type}
	if e.Param != "" {
		in.Param = &e.Param
	}
	switch {
	case e.Code != "":
		in.Code = e.Code
	case e.Type == "unavailable_error":
		in.Code = e.Status // as llama-server does
	}
	return struct {
		Error inner `json:"error"`
	}{in}
}

// ollama is the error as Ollama's API has it.
func (e *apiError) ollama() any {
	return struct {
		Error string `json:"error"`
	}{e.Message}
}

// anthropic is the error as Anthropic's API has it.
func (e *apiError) anthropic(requestID string) any {
	typ := "api_error"
	if e.Status < 500 {
		typ = "invalid_request_error"
	}
	switch e.Status {
	case http.StatusUnauthorized:
		typ = "authentication_error"
	case http.StatusForbidden:
		typ = "permission_error"
	case http.StatusNotFound:
		typ = "not_found_error"
	case http.StatusRequestEntityTooLarge:
		typ = "request_too_large"
	case http.StatusTooManyRequests:
		typ = "rate_limit_error"
	case http.StatusServiceUnavailable, 529:
		typ = "overloaded_error"
	}
	type inner struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	return struct {
		Type      string `json:"type"`
		Error     inner  `json:"error"`
		RequestID string `json:"request_id"`
	}{"error", inner{typ, e.Message}, requestID}
}

// dialect is the API that a route belongs to.
type dialect int

const (
	openAI dialect = iota
	ollama
	anthropic
)

// dialectOf tells which API's errors a path wants.
func dialectOf(path string) dialect {
	switch {
	case len(path) >= 5 && path[:5] == "/api/":
		return ollama
	case len(path) >= 12 && path[:12] == "/v1/messages":
		return anthropic
	}
	return openAI
}

// writeError answers with an error in the dialect of the request's path.
func writeError(w http.ResponseWriter, r *http.Request, err error) {
	e := asAPIError(err)
	note(r.Context(), func(l *requestLog) { l.err = err })
	if e.Code == codeContext {
		e.Param = promptField(r.URL.Path)
	}
	status := e.Status
	e.setRetry(w.Header())
	var body any
	switch dialectOf(r.URL.Path) {
	case ollama:
		body = e.ollama()
	case anthropic:
		if status == http.StatusServiceUnavailable {
			status = 529
		}
		body = e.anthropic(requestID(r.Context()))
	default:
		body = e.openAI()
	}
	writeJSON(w, status, body)
}

// writeJSON answers with a JSON body.
func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := encodeJSON(v)
	if err != nil {
		// Every body is made of types that encode; a failure is a bug here.
		status, b = http.StatusInternalServerError, []byte(`{"error":{"message":"internal error","type":"server_error","param":null,"code":"internal_error"}}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b) // a client that is gone is noticed elsewhere
}

// encodeJSON encodes v without escapes for HTML, which nobody asked for.
func encodeJSON(v any) ([]byte, error) {
	var b bytesBuffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return b[:len(b)-1], nil
}

// bytesBuffer is the least that an encoder writes to.
type bytesBuffer []byte

func (b *bytesBuffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

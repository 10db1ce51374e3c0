package engine

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrDraining is returned by Submit once Drain was called.
	ErrDraining = errors.New("engine: no new requests are taken: the engine is draining")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("engine: closed")
	// ErrDeadline ends a request whose deadline could not be met any more.
	ErrDeadline = errors.New("engine: the deadline of the first token cannot be met")
	// ErrSlowReader ends a request whose events were not read in time.
	ErrSlowReader = errors.New("engine: the request's events were not read")
	// ErrNoToken ends an answer when no token is allowed to come next.
	ErrNoToken = errors.New("engine: sampling: expected a token that may come next, found that all are forbidden")
)

// NonFiniteError ends an answer when the model gives NaN or infinities in place of
// numbers: its file, or what its description says, is wrong.
type NonFiniteError struct {
	// Where has the first part of the network whose output is not finite, such as
	// "layer 3 of 12"; "" if that could not be found out.
	Where string
}

func (e *NonFiniteError) Error() string {
	where := ""
	if e.Where != "" {
		where = "; the first come out of " + e.Where
	}
	return "engine: logits: expected numbers, found NaN or infinities" + where
}

// RequestError says what is wrong with a request.
type RequestError struct {
	Field string
	Err   error
}

func (e *RequestError) Error() string { return "engine: request: " + e.Field + ": " + e.Err.Error() }

// Unwrap returns what is wrong with the field.
func (e *RequestError) Unwrap() error { return e.Err }

// ContextError says that a prompt does not fit. It is never cut silently.
type ContextError struct {
	Tokens  int  // of the prompt
	Context int  // the most a prompt can have
	AtLeast bool // the prompt has so many or more
}

func (e *ContextError) Error() string {
	return fmt.Sprintf("engine: prompt: expected at most %d tokens, what the context and the page pool hold, found %d", e.Context, e.Tokens)
}

// QueueFullError says that too many requests wait.
type QueueFullError struct {
	Position   int           // that the request would have had: how many wait before it
	RetryAfter time.Duration // when a place is expected to be free
}

func (e *QueueFullError) Error() string {
	return fmt.Sprintf("engine: queue: %d requests wait, as many as may; try again in %v", e.Position, e.RetryAfter)
}

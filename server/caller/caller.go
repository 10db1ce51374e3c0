package caller

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// Record is what is known of a request when it ends: one line of the log.
type Record struct {
	ID, Model, Key string
	Err            error
	Prompt, Cached int
	Known          int // tokens of the prompt that another one begins with, too
	Tokens         int
	Forced         int    // of these, those that were not drawn
	Guessed, Right int    // tokens that were guessed, and those of them that came true
	PromptText     string // if prompts are logged
	AnswerText     string // the first one, if prompts are logged
	TTFT, Queue    time.Duration
	Finishes       []string
	Decode         time.Duration
	Begun          time.Time // when the first generation was submitted
	Arrived        time.Time
	Deadline       *time.Duration // of the first token after that, as a header says; nil: none does
	Stream         bool           // the answer is one
	Truncated      int            // tokens of prompts that were cut off, since the client said so
	Ignored        []string       // fields of the body that nobody reads, and those that could not be followed
	Left           []string       // what of the request the model does not get

	Fits func(text []byte) error // why a text, as JSON has it, is too long for any prompt; nil: nothing is known
}

type ctxKey int

const (
	recordKey ctxKey = iota
	accountKey
)

// Note writes into the request's log entry.
func Note(ctx context.Context, f func(*Record)) {
	if l, ok := ctx.Value(recordKey).(*Record); ok {
		f(l)
	}
}

// RequestID is the id of the request that ctx belongs to.
func RequestID(ctx context.Context) (id string) {
	Note(ctx, func(l *Record) { id = l.ID })
	return id
}

// NewID returns a prefix and random letters.
func NewID(prefix string) string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + hex.EncodeToString(b[:])
}

// WithRecord returns a context of a request with the given record.
func WithRecord(ctx context.Context, r *Record) context.Context {
	return context.WithValue(ctx, recordKey, r)
}

// Account is who a request counts for.
type Account struct {
	Name     string                   // the tenant
	Weight   int                      // its share under fair scheduling; 0 for the usual one
	Patient  bool                     // no deadline holds but those that its requests name
	Admin    bool                     // it may see the requests of others, and change what all have
	Priority func(asked int) int      // of its requests, given the one that they ask for
	Use      func(prompt, answer int) // is told the tokens that a generation took; nil for nobody
}

// WithAccount returns a context of a request that counts for an account.
func WithAccount(ctx context.Context, a *Account) context.Context {
	return context.WithValue(ctx, accountKey, a)
}

// AccountOf is the account of a request, nil if there is none.
func AccountOf(ctx context.Context) *Account {
	a, _ := ctx.Value(accountKey).(*Account)
	return a
}

// Owner is whose request it is, "" if it counts for nobody.
func Owner(ctx context.Context) string {
	if a := AccountOf(ctx); a != nil {
		return a.Name
	}
	return ""
}

// Sees says whether the caller of a request may know ids and texts of the requests of
// a tenant.
func Sees(ctx context.Context, tenant string) bool {
	a := AccountOf(ctx)
	return a == nil || a.Admin || a.Name == tenant
}

// secret makes the names of requests that others may not know.
var secret = func() (b [sha256.Size]byte) {
	_, _ = rand.Read(b[:]) // never fails
	return b
}()

// Shown is what the caller of a request may know of a request of a tenant: its id and
// the tenant, or in place of the id a name that says nothing and stays the same.
func Shown(ctx context.Context, tenant, id string) (string, string) {
	if Sees(ctx, tenant) {
		return id, tenant
	}
	h := hmac.New(sha256.New, secret[:])
	h.Write([]byte(tenant + "\n" + id))
	return "other-" + hex.EncodeToString(h.Sum(nil)[:6]), ""
}

// Administers says whether the caller of a request may change what all have.
func Administers(ctx context.Context) bool {
	a := AccountOf(ctx)
	return a == nil || a.Admin
}

// CleanID takes over a client's request id if it is harmless.
func CleanID(id string) string {
	ok := id != "" && len(id) <= 128 && !strings.ContainsFunc(id, func(c rune) bool {
		return (c < '0' || c > '9') && (c|32 < 'a' || c|32 > 'z') && !strings.ContainsRune("-_.:/", c)
	})
	if !ok {
		return NewID("req_")
	}
	return id
}

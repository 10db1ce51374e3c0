// Package keys knows who may use a server, and how much.
//
// A key file has one key per line, with its limits behind it:
//
//	sk-secret  name=alice  requests=60  tokens=20000  day=1000000  parallel=4  weight=2  priority=1
//	sha256:2c26b4...  name=bob  admin=1
//
// A key with admin=1 sees what others do, and loads and unloads models. requests and tokens are per minute, day is the tokens of a day (UTC),
// parallel the requests at one time; what is absent is unlimited. A key may be
// given by its SHA-256, so that the file does not tell it. # begins a comment.
// The file is read again when it changes; a file that is wrong then changes
// nothing until it is right.
package keys

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Limits of a key. 0 means none.
type Limits struct {
	Requests int // per minute
	Tokens   int // per minute, of prompts and answers
	Day      int // tokens of a day
	Parallel int // requests at one time
}

// Key is somebody who may use the server.
type Key struct {
	Name     string
	Limits   Limits
	Weight   int  // share under fair scheduling, 0 for 1
	Priority int  // class, lower comes first
	Admin    bool // may see the requests of others, and change what all have

	mu       sync.Mutex
	requests bucket
	tokens   bucket
	today    int64 // tokens of the day
	day      int64 // its number
	running  int
	used     Used
}

// Used is what was done with a key.
type Used struct{ Requests, Prompt, Answer int64 }

// Set is a set of keys. It may be used by several goroutines.
type Set struct {
	mu      sync.Mutex
	keys    map[[32]byte]*Key
	fixed   map[[32]byte]*Key
	path    string
	stamp   string
	checked time.Time
	notify  func(error)
	now     func() time.Time
}

// recheck is how often the file is looked at.
const recheck = 2 * time.Second

// New returns the set of the given keys and those in the file at path ("" for
// none). notify, if not nil, is told when the file was read again, with an
// error if it could not be used.
func New(given []string, path string, notify func(error)) (*Set, error) {
	s := &Set{fixed: map[[32]byte]*Key{}, path: path, notify: notify, now: time.Now}
	for i, k := range given {
		if k == "" {
			return nil, errors.New("keys: expected a key, found an empty one")
		}
		s.fixed[sha256.Sum256([]byte(k))] = &Key{Name: "key" + strconv.Itoa(i+1)}
	}
	s.keys = s.fixed
	if path != "" {
		if err := s.read(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Empty reports whether there are no keys: then everybody may use the server.
func (s *Set) Empty() bool { return s == nil || s.path == "" && len(s.fixed) == 0 }

// Single reports whether there is one key only: then nobody's requests are hidden
// from anybody.
func (s *Set) Single() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.keys) == 1
}

// Find returns the key with the given secret.
func (s *Set) Find(secret string) (*Key, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now(); s.path != "" && now.Sub(s.checked) >= recheck {
		s.checked = now
		s.reload()
	}
	// The lookup is by hash: its time tells nothing of the key.
	k, ok := s.keys[sha256.Sum256([]byte(secret))]
	return k, ok
}

// reload reads the file again if it changed.
func (s *Set) reload() {
	stamp, err := stampOf(s.path)
	if err == nil && stamp == s.stamp {
		return
	}
	if err == nil {
		err = s.read()
	}
	if s.notify != nil {
		s.notify(err)
	}
}

// Reload reads the file again, if there is one, whether or not it seems to have
// changed.
func (s *Set) Reload() {
	if s.path == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stamp = ""
	s.reload()
}

func stampOf(path string) (string, error) {
	st, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("keys: %w", err)
	}
	return fmt.Sprint(st.ModTime().UnixNano(), st.Size()), nil
}

func (s *Set) read() error {
	stamp, err := stampOf(s.path)
	if err != nil {
		return err
	}
	s.stamp = stamp // a file that is wrong is not read again until it changes
	f, err := os.Open(s.path)
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	defer f.Close()
	keys := map[[32]byte]*Key{}
	for k, v := range s.fixed {
		keys[k] = v
	}
	old := map[string]*Key{}
	for _, k := range s.keys {
		old[k.Name] = k
	}
	sc := bufio.NewScanner(f)
	for n := 1; sc.Scan(); n++ {
		line, _, _ := strings.Cut(sc.Text(), "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		hash, k, err := parse(fields)
		if err != nil {
			return fmt.Errorf("keys: %s: line %d: %w", s.path, n, err)
		}
		if k.Name == "" {
			k.Name = "line" + strconv.Itoa(n)
		}
		if o := old[k.Name]; o != nil { // what was used stays used
			o.mu.Lock()
			k.today, k.day, k.requests, k.tokens, k.running, k.used = o.today, o.day, o.requests, o.tokens, 0, o.used
			o.mu.Unlock()
		}
		keys[hash] = k
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("keys: %s: %w", s.path, err)
	}
	s.keys = keys
	return nil
}

func parse(fields []string) (hash [32]byte, k *Key, err error) {
	k = &Key{}
	if h, ok := strings.CutPrefix(fields[0], "sha256:"); ok {
		b, err := hex.DecodeString(h)
		if err != nil || len(b) != len(hash) {
			return hash, nil, errors.New("sha256: expected 64 hexadecimal digits")
		}
		copy(hash[:], b)
	} else {
		hash = sha256.Sum256([]byte(fields[0]))
	}
	for _, f := range fields[1:] {
		name, value, _ := strings.Cut(f, "=")
		if name == "name" && value != "" {
			k.Name = value
			continue
		}
		if name == "admin" {
			if value != "0" && value != "1" {
				return hash, nil, fmt.Errorf("admin: expected 0 or 1, found %q", value)
			}
			k.Admin = value == "1"
			continue
		}
		n, err := strconv.Atoi(value)
		dst := map[string]*int{
			"requests": &k.Limits.Requests, "tokens": &k.Limits.Tokens, "day": &k.Limits.Day, "parallel": &k.Limits.Parallel,
			"weight": &k.Weight, "priority": &k.Priority,
		}[name]
		if dst == nil || err != nil || n < 0 {
			return hash, nil, fmt.Errorf("expected name=..., or admin, requests, tokens, day, parallel, weight or priority with a number, found %q", f)
		}
		*dst = n
	}
	return hash, k, nil
}

// LimitError says which limit of a key is reached.
type LimitError struct {
	Limit      string
	RetryAfter time.Duration
}

func (e *LimitError) Error() string { return "the key's limit is reached: " + e.Limit }

// Begin counts a request in. The function it returns counts it out.
func (k *Key) Begin(now time.Time) (end func(), err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.Limits
	k.newDay(now)
	switch {
	case l.Parallel > 0 && k.running >= l.Parallel:
		return nil, &LimitError{fmt.Sprintf("%d requests at one time", l.Parallel), time.Second}
	case l.Day > 0 && k.today >= int64(l.Day):
		return nil, &LimitError{fmt.Sprintf("%d tokens of a day", l.Day), untilTomorrow(now)}
	}
	if wait := k.tokens.wait(now, l.Tokens, 0); wait > 0 {
		return nil, &LimitError{fmt.Sprintf("%d tokens a minute", l.Tokens), wait}
	}
	if wait := k.requests.wait(now, l.Requests, 1); wait > 0 {
		return nil, &LimitError{fmt.Sprintf("%d requests a minute", l.Requests), wait}
	}
	k.requests.take(1)
	k.running++
	k.used.Requests++
	var once sync.Once
	return func() {
		once.Do(func() {
			k.mu.Lock()
			k.running--
			k.mu.Unlock()
		})
	}, nil
}

// Use counts tokens of a prompt and of its answer.
func (k *Key) Use(now time.Time, prompt, answer int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	tokens := prompt + answer
	k.used.Prompt += int64(prompt)
	k.used.Answer += int64(answer)
	k.newDay(now)
	k.today += int64(tokens)
	k.tokens.wait(now, k.Limits.Tokens, 0)
	k.tokens.take(float64(tokens))
}

// Used returns what was done with the key so far.
func (k *Key) Used() Used {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.used
}

// List returns the keys by name.
func (s *Set) List() []*Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Collect(maps.Values(s.keys))
	slices.SortFunc(out, func(a, b *Key) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Today returns the tokens used since midnight UTC.
func (k *Key) Today(now time.Time) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.newDay(now)
	return k.today
}

func (k *Key) newDay(now time.Time) {
	if d := now.Unix() / 86400; d != k.day {
		k.day, k.today = d, 0
	}
}

func untilTomorrow(now time.Time) time.Duration {
	return time.Duration(86400-now.Unix()%86400) * time.Second
}

// bucket lets so many things pass a minute, and as many at once. It may go
// into debt: how many tokens a request takes is known when it is over.
type bucket struct {
	left float64
	at   time.Time
}

// wait fills the bucket up to now and returns how long it takes until it holds
// need, and more than nothing.
func (b *bucket) wait(now time.Time, perMinute int, need float64) time.Duration {
	if perMinute <= 0 {
		return 0
	}
	rate := float64(perMinute) / 60
	if b.at.IsZero() {
		b.left = float64(perMinute)
	} else if d := now.Sub(b.at).Seconds(); d > 0 {
		b.left = min(b.left+d*rate, float64(perMinute))
	}
	b.at = now
	if need = max(need, 1); b.left >= need {
		return 0
	}
	return time.Duration((need - b.left) / rate * float64(time.Second))
}

func (b *bucket) take(n float64) { b.left -= n }

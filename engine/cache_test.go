package engine

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"ridge/kvcache"
	"ridge/sched"
)

// Prompts that come at the same time and begin alike are computed once as far
// as they are.
func TestCommonPrefixAtOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 7))
	prefix := randomTokens(r, 96, 128)
	cfg := sched.Config{Split: true, MaxTokens: 48, MaxSeqs: 16}
	e := start(t, openTiny(t, "llama", 64), Options{Sched: &cfg})
	var streams []*Stream
	for range 6 {
		streams = append(streams, submit(t, e, Request{Tokens: append(slices.Clone(prefix), randomTokens(r, 5, 128)...), MaxTokens: 3}))
	}
	cached := 0
	for _, s := range streams {
		_, info := read(t, s, 1)
		cached += info.Cached
	}
	st := e.Stats().Sched
	if most := int64(96 + 6*5 + 100); st.PromptTokens > most || cached < 6*101-int(most) {
		t.Errorf("%d tokens of prompts computed, %d cached, want at most %d computed of %d", st.PromptTokens, cached, most, 6*101)
	}
}

// What one tenant has computed is not found by another, nor under another salt.
func TestTenantsShareNothing(t *testing.T) {
	e := start(t, openTiny(t, "llama", 64), Options{})
	q := Request{Tokens: randomTokens(rand.New(rand.NewPCG(1, 2)), 60, 128), MaxTokens: 1}
	who := []struct{ tenant, salt string }{{"", ""}, {"a", ""}, {"", "a"}, {"b", ""}, {"ab", ""}, {"a", "b"}, {"", "none"}, {"1:a", ""}, {"none", ""}}
	for _, w := range who {
		q.Tenant, q.CacheSalt = w.tenant, w.salt
		if _, info := ask(t, e, q); info.Cached != 0 {
			t.Errorf("%q: %d tokens of another tenant were found", w, info.Cached)
		}
		if _, info := ask(t, e, q); info.Cached != 59 {
			t.Errorf("%q: %d of its own tokens were found, want 59", w, info.Cached)
		}
	}
}

// What is read of a file is read in parts: an answer under way goes on between them, as
// a lone one. An engine that ends meanwhile holds nothing of it.
func TestReadBesideAnswers(t *testing.T) {
	q := Request{Tokens: randomTokens(rand.New(rand.NewPCG(5, 1)), 110, 128), MaxTokens: 1}
	var file bytes.Buffer
	e := start(t, openTiny(t, "llama", 64), Options{})
	ask(t, e, q)
	if _, err := e.SaveSession(t.Context(), &file, Session{Tokens: q.Tokens}); err != nil {
		t.Fatal(err)
	}
	for _, closed := range []bool{false, true} {
		m := openTiny(t, "llama", 64)
		r := long(40)
		want := alone(t, m, r)
		e := start(t, m, Options{})
		release := hold(t, e)
		between, steps := make(chan int, 1), 0
		e.leastRead, e.readShare, e.readPart = 0, time.Hour, 1
		e.inject = func() {
			if len(e.readings) > 0 {
				steps++
			} else if steps > 0 {
				between <- steps
				steps, e.inject = 0, nil
			}
			if closed && steps == 2 { // the loop sees it behind this step
				e.closing = true
			}
		}
		s := submit(t, e, r)
		var tokens []int32
		loaded := make(chan error, 1)
		go func() {
			var err error
			tokens, err = e.LoadSession(t.Context(), bytes.NewReader(file.Bytes()), Session{})
			loaded <- err
		}()
		until(t, "both are there", func() bool { return inbox(e) == 2 })
		release()
		err := <-loaded
		if closed {
			<-e.done
			if !errors.Is(err, ErrClosed) || e.endErr != nil {
				t.Errorf("%v, and at the end %v", err, e.endErr)
			}
			continue
		}
		if err != nil || len(tokens) < 109 {
			t.Errorf("%d tokens: %v", len(tokens), err)
		}
		if got, _ := read(t, s, 1); !same(&got[0], &want) {
			t.Errorf("got %v, want %v", got[0].tokens, want.tokens)
		}
		if n := <-between; n < 5 {
			t.Errorf("%d steps were made while the file was read", n)
		}
		if err := e.Check(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A session is written in parts: requests go on meanwhile, and give what they give
// alone. The file is the one that is written in one part.
func TestSaveBesideAnswers(t *testing.T) {
	q := Request{Tokens: randomTokens(rand.New(rand.NewPCG(5, 1)), 110, 128), MaxTokens: 1}
	m := openTiny(t, "llama", 64)
	r := long(40)
	want := alone(t, m, r)
	e := start(t, m, Options{})
	ask(t, e, q)
	var whole, file bytes.Buffer
	if _, err := e.SaveSession(t.Context(), &whole, Session{Tokens: q.Tokens}); err != nil {
		t.Fatal(err)
	}
	release := hold(t, e)
	steps, during := 0, 0
	e.leastRead, e.readPart = 0, 1
	e.inject = func() { steps++ }
	s := submit(t, e, r)
	saved := make(chan error, 1)
	go func() {
		_, err := e.SaveSession(t.Context(), &file, Session{Tokens: q.Tokens})
		saved <- errors.Join(err, e.call(t.Context(), func() { during = steps }))
	}()
	until(t, "both are there", func() bool { return inbox(e) == 2 })
	release()
	if err := <-saved; err != nil || !bytes.Equal(file.Bytes(), whole.Bytes()) {
		t.Errorf("%v; %d bytes, want the same %d", err, file.Len(), whole.Len())
	}
	if during < 5 {
		t.Errorf("%d steps were made while the file was written", during)
	}
	if got, _ := read(t, s, 1); !same(&got[0], &want) {
		t.Errorf("got %v, want %v", got[0].tokens, want.tokens)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.SaveSession(ctx, &file, Session{Tokens: q.Tokens}); !errors.Is(err, context.Canceled) && err != nil {
		t.Error(err)
	}
	if err := e.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestSessions(t *testing.T) {
	q := long(20)
	q.Tenant = "a"
	m := openTiny(t, "llama", 20)
	want := alone(t, m, q)
	e := start(t, m, Options{})
	got, _ := ask(t, e, q)
	all := append(slices.Clone(q.Tokens), got[0].tokens...)
	var file bytes.Buffer
	s := Session{Tokens: all, Tenant: "a"}
	n, err := e.SaveSession(t.Context(), &file, s)
	if err != nil || n != len(all)-1 {
		t.Fatalf("saved %d of %d tokens: %v", n, len(all), err)
	}

	m = openTiny(t, "llama", 20)
	e = start(t, m, Options{})
	own := m.Fingerprint()
	other := bytes.Replace(file.Bytes(), []byte(own), []byte(strings.Repeat("0", len(own))), 1)
	if _, err := e.LoadSession(t.Context(), bytes.NewReader(other), s); err == nil || !strings.Contains(err.Error(), "expected one saved with the weights that are loaded") && !errors.Is(err, kvcache.ErrSnapshot) {
		t.Errorf("load for another model: %v", err)
	}
	if _, err := e.LoadSession(t.Context(), bytes.NewReader(file.Bytes()[:file.Len()/2]), s); !errors.Is(err, kvcache.ErrSnapshot) {
		t.Errorf("load of half a file: %v", err)
	}
	if tokens, err := e.LoadSession(t.Context(), &file, Session{Tenant: "a"}); err != nil || !slices.Equal(tokens, all[:n]) {
		t.Fatalf("loaded %v: %v, want %v", tokens, err, all[:n])
	}
	next := Request{Tokens: all[:10], MaxTokens: 13, Tenant: "a"}
	more, info := ask(t, e, next)
	if info.Cached != 9 || !slices.Equal(more[0].tokens, want.tokens[7:]) {
		t.Errorf("%d tokens were found, got %v, want %v", info.Cached, more[0].tokens, want.tokens[7:])
	}
	if err := e.Check(t.Context()); err != nil {
		t.Error(err)
	}
	e = start(t, openTiny(t, "llama", 20), Options{NoPrefixCache: true})
	if _, err := e.SaveSession(t.Context(), &file, s); err == nil {
		t.Error("a session was saved without a prefix cache")
	}
}

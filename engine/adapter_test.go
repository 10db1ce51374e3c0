package engine

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ridge/model"
)

const tinyAdapters = "../internal/tinymodel/adapters/"

// someAdapters returns adapters of tiny llama, the first of which is none.
func someAdapters(t *testing.T, e *Engine) []*model.Adapter {
	t.Helper()
	var read []*model.Adapter
	for _, name := range []string{"llama", "llama-rs"} {
		a, err := e.ReadAdapter(tinyAdapters + name)
		if err != nil {
			t.Fatal(err)
		}
		read = append(read, a)
	}
	return []*model.Adapter{nil, read[0], read[1], read[0].Scaled(0.5), read[0].With(read[1])}
}

// Requests with different adapters are computed together, and each gets what it gets
// alone; none finds what was computed with another adapter.
func TestAdapters(t *testing.T) {
	q := Request{Tokens: randomTokens(rand.New(rand.NewPCG(3, 4)), 50, 128), MaxTokens: 8, IgnoreEOS: true}
	var want []answer
	lone := start(t, openTiny(t, "llama", 64), Options{NoPrefixCache: true})
	for _, a := range someAdapters(t, lone) {
		q.Adapter = a
		got, _ := ask(t, lone, q)
		want = append(want, got[0])
	}
	e := start(t, openTiny(t, "llama", 64), Options{})
	if _, err := e.Submit(context.Background(), q); err == nil || !strings.Contains(err.Error(), "adapter: expected one that was read for the model") {
		t.Errorf("an adapter of another model: %v", err)
	}
	all := someAdapters(t, e)
	for round, cached := range []int{0, 49} {
		var streams []*Stream
		for _, a := range all {
			q.Adapter = a
			streams = append(streams, submit(t, e, q))
		}
		for i, s := range streams {
			got, info := read(t, s, 1)
			if !same(&got[0], &want[i]) {
				t.Errorf("round %d, adapter %d: another answer than alone", round, i)
			}
			if info.Cached != cached {
				t.Errorf("round %d, adapter %d: %d tokens were found, want %d", round, i, info.Cached, cached)
			}
		}
	}
	if same(&want[0], &want[1]) || same(&want[1], &want[2]) {
		t.Error("adapters change no answer")
	}
	if got := tenantOf(saltOf(adaptedSalt(all[1].ID, salt("bob", "s")), 128)); got != "bob" {
		t.Errorf("tenant of a salt with an adapter: %q, want bob", got)
	}
}

// A session that was saved with an adapter is only loaded with it.
func TestAdapterSessions(t *testing.T) {
	e := start(t, openTiny(t, "llama", 64), Options{})
	a, err := e.ReadAdapter(tinyAdapters + "llama")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	q := Request{Tokens: randomTokens(rand.New(rand.NewPCG(3, 5)), 40, 128), MaxTokens: 1, Adapter: a}
	ask(t, e, q)
	if n, err := e.SaveSession(ctx, new(bytes.Buffer), Session{Tokens: q.Tokens}); err != nil || n != 0 {
		t.Errorf("%d tokens saved without the adapter, %v", n, err)
	}
	var file bytes.Buffer
	if n, err := e.SaveSession(ctx, &file, Session{Tokens: q.Tokens, Adapter: a.ID}); err != nil || n != 40 {
		t.Fatalf("%d tokens saved, %v", n, err)
	}
	if err := e.ForgetPrefixes(ctx); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"", a.Scaled(2).ID} {
		if _, err := e.LoadSession(ctx, bytes.NewReader(file.Bytes()), Session{Adapter: other}); err == nil || !strings.Contains(err.Error(), "session: adapter: expected one saved with") {
			t.Errorf("with another adapter: %v", err)
		}
	}
	if _, err := e.LoadSession(ctx, bytes.NewReader(file.Bytes()), Session{Adapter: a.ID}); err != nil {
		t.Fatal(err)
	}
	if _, info := ask(t, e, q); info.Cached != 39 {
		t.Errorf("%d tokens were found, want 39", info.Cached)
	}
	q.Adapter = nil
	if _, info := ask(t, e, q); info.Cached != 0 {
		t.Errorf("%d tokens were found without the adapter", info.Cached)
	}
}

// What is on the disk of prompts' beginnings is found again after a restart by the
// adapter that it was computed with, and by no other.
func TestAdapterPrefixesOnDisk(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	dir := t.TempDir()
	common := randomTokens(r, 70, 128)
	open := func() (*Engine, *model.Adapter) {
		store, _ := prefixDisk(t, dir, "llama", 1<<30)
		e := start(t, openTiny(t, "llama", 64), Options{Prefixes: store, PinShare: .5})
		a, err := e.ReadAdapter(tinyAdapters + "llama")
		if err != nil {
			t.Fatal(err)
		}
		return e, a
	}
	prompt := func(a *model.Adapter) Request {
		return Request{Tokens: append(slices.Clone(common), randomTokens(r, 7, 128)...), MaxTokens: 2, Breakpoints: []Breakpoint{{70, true}}, Adapter: a}
	}
	e, a := open()
	ask(t, e, prompt(a))
	until(t, "the prefix is written", func() bool { return e.Stats().Prefixes.Written == 1 })
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e, a = open()
	for _, other := range []*model.Adapter{nil, a.Scaled(0.5)} {
		if _, info := ask(t, e, prompt(other)); info.Cached != 0 {
			t.Errorf("%d tokens were found by another adapter", info.Cached)
		}
	}
	if _, info := ask(t, e, prompt(a)); info.Cached != 70 {
		t.Errorf("%d tokens were found, want 70", info.Cached)
	}
}

package engine

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ridge/kvcache"
	"ridge/sched"
)

// prefixDisk returns the part of a model of a folder, and where it is told of
// files that cannot be used.
func prefixDisk(t *testing.T, dir, identity string, most int64) (PrefixStore, *[]error) {
	t.Helper()
	refused := new([]error)
	d := &PrefixDisk{Bytes: most, Dir: dir, Warn: func(_ string, why error) { *refused = append(*refused, why) }}
	s, err := d.Store(identity)
	if err != nil {
		t.Fatal(err)
	}
	return s, refused
}

// prefixFiles are the files of a folder.
func prefixFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// What is common to prompts is on the disk after a restart, whatever layers the
// model has, and the answers are those of a lone sequence. Another tenant does not
// find it.
func TestPrefixesSurvive(t *testing.T) {
	for _, name := range append([]string{"llama", "llama-rope-dynamic-long", "deepseek3"}, slices.Concat(windowed, stateful)...) {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(8, 1))
			dir := t.TempDir()
			ref := openTiny(t, name, 64)
			vocab := ref.Config().Vocab
			common := randomTokens(r, 70, vocab)
			prompt := func() Request {
				return Request{Tokens: append(slices.Clone(common), randomTokens(r, 7, vocab)...), MaxTokens: 4, Breakpoints: []Breakpoint{{70, true}}}
			}
			cfg := sched.Config{Split: true, MaxTokens: 32, MaxSeqs: 8}
			open := func() (*Engine, *[]error) {
				store, refused := prefixDisk(t, dir, name, 1<<30)
				return start(t, openTiny(t, name, 64), Options{Sched: &cfg, Prefixes: store, PinShare: .5}), refused
			}
			q := prompt()
			want := alone(t, ref, q)
			e, _ := open()
			expect(t, "cold", e, q, &want, 0)
			until(t, "the prefix is written", func() bool { return e.Stats().Prefixes.Written == 1 })
			q = prompt()
			want = alone(t, ref, q)
			expect(t, "second", e, q, &want, 70)
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e, refused := open()
			q = prompt()
			want = alone(t, ref, q)
			q.Tenant = "other"
			expect(t, "another tenant", e, q, &want, 0)
			q.Tenant = ""
			expect(t, "restarted", e, q, &want, 70)
			q = prompt()
			want = alone(t, ref, q)
			expect(t, "found", e, q, &want, 70)
			st := e.Stats().Prefixes
			if st.Hits != 1 || st.Tokens != 70 || st.Refused != 0 || st.Files < 1 || st.Bytes == 0 || st.Pinned == 0 || len(*refused) > 0 {
				t.Errorf("stats %+v, refused %v", st, *refused)
			}
			if err := e.Check(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Files that were changed, cut, or are another's are refused and computed again.
func TestPrefixesRefused(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 2))
	dir := t.TempDir()
	ref := openTiny(t, "llama", 64)
	var prompts []Request
	for range 2 {
		prompts = append(prompts, Request{Tokens: randomTokens(r, 100, 128), MaxTokens: 4, Breakpoints: []Breakpoint{{90, true}}})
	}
	open := func() (*Engine, *[]error) {
		store, refused := prefixDisk(t, dir, "llama", 1<<30)
		return start(t, openTiny(t, "llama", 64), Options{Prefixes: store}), refused
	}
	e, _ := open()
	for _, q := range prompts {
		ask(t, e, q)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	files := prefixFiles(t, dir)
	if len(files) != 2 {
		t.Fatalf("found the files %q", files)
	}
	whole := map[string][]byte{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		whole[f] = b
	}
	a, b := whole[files[0]], whole[files[1]]
	flipped := slices.Clone(a)
	flipped[len(a)/2] ^= 4
	for what, content := range map[string][]byte{"": a, "checksum": flipped, "end": a[:len(a)-9], "it ends in its header": a[:9], "tokens": b, "it does not start": []byte("no snapshot, but some text")} {
		if err := os.WriteFile(files[0], content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(files[1], b, 0o600); err != nil {
			t.Fatal(err)
		}
		e, refused := open()
		found := 0
		for _, q := range prompts {
			want := alone(t, ref, q)
			got, info := ask(t, e, q)
			if !same(&got[0], &want) {
				t.Errorf("%s: got %v, expected %v", what, got[0].tokens, want.tokens)
			}
			found += info.Cached
		}
		if what == "" {
			if len(*refused) != 0 || found != 180 {
				t.Errorf("whole files: %d tokens found, refused %v", found, *refused)
			}
		} else if len(*refused) != 1 || !strings.Contains((*refused)[0].Error(), what) || found != 90 || e.Stats().Prefixes.Refused != 1 {
			t.Errorf("%s: %d tokens found, refused %v", what, found, *refused)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// Of another identity nothing is found.
	store, _ := prefixDisk(t, dir, "another", 1<<30)
	if len(store.Lengths()) != 0 {
		t.Errorf("another model has prefixes of %v tokens", store.Lengths())
	}
}

// The folder is bounded: what was not used for longest goes.
func TestPrefixDiskIsBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 3))
	dir := t.TempDir()
	var most int64
	for i := range 2 {
		if i == 1 {
			dir = t.TempDir()
		}
		limit := most*5/2 + int64(1-i)<<30
		store, _ := prefixDisk(t, dir, "llama", limit)
		e := start(t, openTiny(t, "llama", 64), Options{Prefixes: store})
		for k := range int64(4) {
			ask(t, e, Request{Tokens: randomTokens(r, 100, 128), MaxTokens: 1, Breakpoints: []Breakpoint{{90, true}}})
			until(t, "it is written", func() bool { return e.Stats().Prefixes.Written == k+1 })
			if most == 0 {
				most = e.Stats().Prefixes.Bytes
			}
		}
		if st := e.Stats().Prefixes; i == 1 && (st.Bytes > limit || len(prefixFiles(t, dir)) != 2) {
			t.Errorf("%d bytes of at most %d, files %q", st.Bytes, limit, prefixFiles(t, dir))
		}
	}
}

// What is pinned stays while other prompts fill the memory, and goes when a
// sequence needs all of it.
func TestPinnedPrefixes(t *testing.T) {
	for _, name := range []string{"llama", "gemma3"} {
		for _, share := range []float64{0, .5} {
			r := rand.New(rand.NewPCG(8, 4))
			e := start(t, openTiny(t, name, 24), Options{PinShare: share})
			vocab := e.m.Config().Vocab
			q := Request{Tokens: randomTokens(r, 80, vocab), MaxTokens: 1, Breakpoints: []Breakpoint{{70, true}}}
			ask(t, e, q)
			for range 12 {
				ask(t, e, Request{Tokens: randomTokens(r, 100, vocab), MaxTokens: 1})
			}
			if _, info := ask(t, e, q); (info.Cached >= 70) != (share > 0) {
				t.Errorf("%s: with %g of the pages for pins %d tokens were found", name, share, info.Cached)
			}
			long := Request{Tokens: randomTokens(r, min(e.limits.pool, e.limits.context)-8, vocab), MaxTokens: 4}
			if got, _ := ask(t, e, long); len(got[0].tokens) != 4 {
				t.Errorf("%s: a sequence that needs all pages got %d tokens", name, len(got[0].tokens))
			}
			if err := e.Check(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

// Where prompts leave each other twice a prefix is kept that no request names.
func TestLearnedPrefixes(t *testing.T) {
	t.Run("unnamed", func(t *testing.T) { learnedPrefixes(t, 3, false) })
	t.Run("ends named", func(t *testing.T) { learnedPrefixes(t, 3, true) })
	t.Run("two", func(t *testing.T) { learnedPrefixes(t, 2, true) })
}

// learnedPrefixes asks n prompts that begin alike; named are breakpoints at their ends,
// as Claude Code sends them, soon after what they share. What two have alike is written
// at the end of the engine, and at once if it is three.
func learnedPrefixes(t *testing.T, n int, named bool) {
	r := rand.New(rand.NewPCG(8, 5))
	dir := t.TempDir()
	common := randomTokens(r, 103, 128)
	ref := openTiny(t, "llama", 64)
	prompt := func(i int) Request { // the first token of their own differs for sure
		q := Request{Tokens: append(append(slices.Clone(common), int32(i)), randomTokens(r, 7, 128)...), MaxTokens: 2}
		if named {
			q.Breakpoints = []Breakpoint{{Tokens: len(q.Tokens)}}
		}
		return q
	}
	open := func() *Engine {
		store, _ := prefixDisk(t, dir, "llama", 1<<30)
		return start(t, openTiny(t, "llama", 64), Options{Prefixes: store, PinShare: .5})
	}
	e := open()
	for i := range n {
		ask(t, e, prompt(i))
	}
	if n > 2 {
		until(t, "what they share is written", func() bool { st := e.Stats().Prefixes; return st.Written == 1 && st.Pinned > 0 })
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open()
	q := prompt(3)
	want := alone(t, ref, q)
	expect(t, "restarted", e, q, &want, 96)
	if st := e.Stats().Prefixes; st.Written != 0 || st.Files != 1 {
		t.Errorf("after the restart %+v", st)
	}
}

// Where prompts part from those before, and a bit later again, one of these places is
// written at the end.
func TestPartingsAreFew(t *testing.T) {
	dir := t.TempDir()
	store, _ := prefixDisk(t, dir, "llama", 1<<30)
	e := start(t, openTiny(t, "llama", 64), Options{Prefixes: store, PinShare: .5})
	tokens := randomTokens(rand.New(rand.NewPCG(8, 6)), 110, 127)
	for _, n := range []int{70, 105} {
		ask(t, e, Request{Tokens: append(slices.Clone(tokens[:n]), 127, 5, 9), MaxTokens: 1})
		ask(t, e, Request{Tokens: append(slices.Clone(tokens[:n]), (tokens[n]+1)%127, 5), MaxTokens: 1})
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	store, _ = prefixDisk(t, dir, "llama", 1<<30)
	if got := store.Lengths(); !slices.Equal(got, []int{64}) {
		t.Errorf("files for prompts of 64 and 96 tokens: %v", got)
	}
}

func TestBreakpointsAreChecked(t *testing.T) {
	e := start(t, openTiny(t, "llama", 20), Options{})
	for _, bad := range [][]Breakpoint{{{Tokens: -1}}, {{Tokens: 4}}, make([]Breakpoint, 5)} {
		var re *RequestError
		if _, err := e.Submit(t.Context(), Request{Tokens: []int32{1, 2, 3}, Breakpoints: bad}); !errors.As(err, &re) || re.Field != "breakpoints" {
			t.Errorf("%v: got %v", bad, err)
		}
	}
	if _, err := New(e.m, Options{PinShare: 2}); err == nil {
		t.Error("a share of 2 was taken")
	}
	if err := kvcache.VerifySnapshot(strings.NewReader("")); !errors.Is(err, kvcache.ErrSnapshot) {
		t.Errorf("nothing: %v", err)
	}
}

package kvcache

import (
	"math/rand/v2"
	"testing"

	"ridge/weights/tensor"
)

// smallPool returns a pool of pages of 16 tokens of one layer.
func smallPool(t testing.TB, pages int) *Pool {
	t.Helper()
	p, err := New(Config{Layers: []LayerShape{{Heads: 1, KDim: 1, VDim: 1}}, PageTokens: 16, DType: tensor.F16, MaxBytes: int64(pages) * 128})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// run counts from first on.
func run(first int32, n int) []int32 {
	s := make([]int32, n)
	for i := range s {
		s[i] = first + int32(i)
	}
	return s
}

// publish computes tokens, with what the tree has of them, publishes and frees
// them, and returns how many were found.
func publish(t testing.TB, tree *Tree, salt string, tokens []int32) int {
	t.Helper()
	s := tree.Match(salt, tokens[:len(tokens)-1])
	found := s.Len()
	if err := tree.pool.Grow(s, len(tokens)-found); err != nil {
		t.Fatal(err)
	}
	tree.Insert(salt, tokens, s)
	tree.pool.Free(s)
	if err := tree.pool.Check(); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestPrefixToTheToken(t *testing.T) {
	tree := NewTree(smallPool(t, 64))
	a := run(0, 40)
	b := append(run(0, 21), run(100, 30)...)
	c := append(run(0, 21), run(200, 3)...)
	d := append(append(run(0, 21), run(100, 7)...), 5)
	for i, c := range []struct {
		tokens []int32
		found  int
	}{{a, 0}, {b, 21}, {c, 21}, {d, 28}, {a, 39}, {run(0, 22), 21}, {run(1, 10), 0}} {
		if found := publish(t, tree, "", c.tokens); found != c.found {
			t.Errorf("prompt %d: %d tokens found, want %d", i, found, c.found)
		}
	}
	// The last prompt but one was known whole: nothing new.
	if st := tree.Stats(); st.HitTokens != 21+21+28+39+21 || st.Inserted != int64(40+30+3+1+10) {
		t.Errorf("%+v", st)
	}
}

// A tenant never finds what another has published.
func TestSalt(t *testing.T) {
	tree := NewTree(smallPool(t, 64))
	publish(t, tree, "one", run(0, 50))
	for salt, want := range map[string]int{"one": 50, "two": 0, "": 0} {
		if n, _, _ := tree.Peek(salt, run(0, 50)); n != want {
			t.Errorf("salt %q: %d tokens found, want %d", salt, n, want)
		}
	}
}

func TestEvictionOrder(t *testing.T) {
	p := smallPool(t, 12)
	tree := NewTree(p)
	stem := run(0, 32) // two pages
	for i := range int32(3) {
		publish(t, tree, "", append(append([]int32(nil), stem...), run(1000*(i+1), 33)...)) // three pages each
	}
	known := func(i int32) int {
		n, _, _ := tree.Peek("", append(append([]int32(nil), stem...), run(1000*(i+1), 33)...))
		return n
	}
	p.Free(tree.Match("", append(append([]int32(nil), stem...), run(1000, 33)...))) // 0 is the newest now
	tree.Evict(1)
	if a, b, c := known(0), known(1), known(2); a != 65 || b != 64 || c != 65 {
		t.Fatalf("after one page: %d %d %d, want the end of the oldest leaf gone", a, b, c)
	}
	tree.Evict(3)
	if a, b, c := known(0), known(1), known(2); a != 65 || b != 32 || c != 64 {
		t.Fatalf("after four pages: %d %d %d", a, b, c)
	}
	tree.Evict(5)
	if a, b, c := known(0), known(1), known(2); a != 32 || b != 32 || c != 32 {
		t.Fatalf("after nine pages: %d %d %d, want the shared stem", a, b, c)
	}
	if freed := tree.Evict(10); freed != 2 || tree.Stats().Nodes != 0 {
		t.Fatalf("the rest: %d pages, %+v", freed, tree.Stats())
	}
}

// Pages that a sequence uses are evicted from the tree only when that frees
// others, and stay the sequence's.
func TestPinnedPagesStay(t *testing.T) {
	p := smallPool(t, 8)
	tree := NewTree(p)
	publish(t, tree, "", run(0, 48))
	s := tree.Match("", run(0, 32))
	if freed := tree.Evict(100); freed != 1 {
		t.Errorf("%d pages freed, want 1", freed)
	}
	if n, _, _ := tree.Peek("", run(0, 48)); n != 32 {
		t.Errorf("%d tokens known, want those that the sequence holds", n)
	}
	if err := p.Grow(s, 96); err != nil {
		t.Errorf("the pool has room for the sequence: %v", err)
	}
	if err := p.Check(s); err != nil {
		t.Error(err)
	}
}

// Sequences that computed the same tokens at the same time end up with the
// same pages.
func TestInsertShares(t *testing.T) {
	p := smallPool(t, 16)
	tree := NewTree(p)
	a, b := p.NewSeq(), p.NewSeq()
	for _, s := range []*Seq{a, b} {
		if err := p.Grow(s, 40); err != nil {
			t.Fatal(err)
		}
		tree.Insert("", run(0, 40), s)
	}
	if st := p.Stats(); st.InUse != 4 || st.Shared != 2 || tree.Stats().Shared != 2 {
		t.Errorf("%+v %+v, want two shared pages and two last ones", st, tree.Stats())
	}
	// Both can go on.
	for _, s := range []*Seq{a, b} {
		if err := p.Grow(s, 10); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Check(a, b); err != nil {
		t.Error(err)
	}
}

// A fork costs no page until it writes, and one page then.
func TestForkCopiesOnWrite(t *testing.T) {
	p := smallPool(t, 16)
	s := p.NewSeq()
	if err := p.Grow(s, 40); err != nil {
		t.Fatal(err)
	}
	forks := []*Seq{s}
	for range 3 {
		f, err := p.Fork(s)
		if err != nil {
			t.Fatal(err)
		}
		forks = append(forks, f)
	}
	if st := p.Stats(); st.InUse != 3 || st.Shared != 9 {
		t.Errorf("%+v after three forks", st)
	}
	for i, f := range forks {
		if err := p.Grow(f, 1); err != nil {
			t.Fatal(err)
		}
		// A copy has nothing of what the others wrote behind the fork.
		_, v := p.Tile(0, 0, f, 2)
		if v[2*8] != 0 {
			t.Errorf("fork %d starts with %d in its new slot", i, v[2*8])
		}
		v[2*8] = 1
	}
	if st := p.Stats(); st.InUse != 6 {
		t.Errorf("%d pages in use, want the two full ones and one for each", st.InUse)
	}
	if err := p.Check(forks...); err != nil {
		t.Error(err)
	}
}

// A conversation of many turns is prefilled once: each turn finds all of the
// turns before, where a cache of whole prompts or whole pages finds less.
func TestTurnsAreComputedOnce(t *testing.T) {
	tree := NewTree(smallPool(t, 1000))
	rng := rand.New(rand.NewPCG(1, 2))
	system := run(0, 203)
	computed, asked, byPages := 0, 0, 0
	for chat := range int32(8) {
		tokens := append([]int32(nil), system...)
		for range 6 {
			tokens = append(tokens, run(1000*(chat+1)+rng.Int32N(100), 20+rng.IntN(60))...)
			known, _, _ := tree.Peek("", tokens)
			found := publish(t, tree, "", tokens)
			asked += len(tokens)
			computed += len(tokens) - found
			byPages += len(tokens) - known/16*16
		}
	}
	total := len(system)
	if distinct := computed - total; computed >= byPages || computed*3 > asked || distinct <= 0 {
		t.Errorf("%d tokens computed of %d, %d with whole pages only", computed, asked, byPages)
	}
	t.Logf("%d tokens asked for, %d computed; %d if only whole pages were found", asked, computed, byPages)
}

// A sequence whose layers all have windows holds a bounded number of pages.
func TestSlide(t *testing.T) {
	p, err := New(Config{Layers: []LayerShape{{Heads: 1, KDim: 1, VDim: 1, Window: 30}, {Heads: 1, KDim: 1, VDim: 1, Window: 40}}, PageTokens: 16, DType: tensor.F16, MaxBytes: 5 * 256})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s := p.NewSeq()
	for range 1000 {
		if err := p.Grow(s, 1); err != nil {
			t.Fatal(err)
		}
		p.Slide(s, s.Len()-10) // ten may be taken back
		if s.Pages() > 5 {
			t.Fatalf("%d tokens in %d pages", s.Len(), s.Pages())
		}
	}
	if s.First() != 944 {
		t.Errorf("the first token is %d, want that of the page with token 951", s.First())
	}
	p.Truncate(s, 990)
	if s.Len() != 990 {
		t.Errorf("cut to %d tokens, want 990: the window of 40 is there", s.Len())
	}
	p.Truncate(s, 950)
	if s.Len() != 0 {
		t.Errorf("cut to %d tokens, want 0: the window is not there", s.Len())
	}
	if err := p.Check(s); err != nil {
		t.Error(err)
	}
}

// A layer that sees everything keeps everything.
func TestSlideNeedsAllWindows(t *testing.T) {
	p, err := New(Config{Layers: []LayerShape{{Heads: 1, KDim: 1, VDim: 1, Window: 16}, {Heads: 1, KDim: 1, VDim: 1}}, PageTokens: 16, DType: tensor.F16, MaxBytes: 1 << 14})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s := p.NewSeq()
	if err := p.Grow(s, 200); err != nil {
		t.Fatal(err)
	}
	p.Slide(s, 200)
	if p.Window() != 0 || s.First() != 0 || s.Pages() != 13 {
		t.Errorf("window %d, first token %d, %d pages", p.Window(), s.First(), s.Pages())
	}
}

func TestStates(t *testing.T) {
	if _, err := New(Config{Layers: []LayerShape{{State: 100}}, DType: tensor.F16, MaxBytes: 1 << 20}); err == nil {
		t.Error("a pool without room for states was made")
	}
	p, err := New(Config{Layers: []LayerShape{{State: 100}, {State: 8}}, States: 4, DType: tensor.F16, MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s := p.NewSeq()
	step := func() {
		t.Helper()
		if err := p.Grow(s, 1); err != nil {
			t.Fatal(err)
		}
		p.State(1, s)[0]++
	}
	for range 5 {
		step()
	}
	if err := p.Checkpoint(s); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		step()
	}
	p.Truncate(s, 7)
	if s.Len() != 5 || p.State(1, s)[0] != 5 {
		t.Errorf("cut to %d tokens with state %d, want the checkpoint at 5", s.Len(), p.State(1, s)[0])
	}
	f, err := p.Fork(s)
	if err != nil {
		t.Fatal(err)
	}
	p.State(1, f)[0] = 99
	if p.State(1, s)[0] != 5 {
		t.Error("a fork shares its state")
	}
	p.Truncate(s, 4)
	if s.Len() != 0 {
		t.Errorf("cut to %d tokens, no state was saved before", s.Len())
	}
	step()
	if p.State(1, s)[0] != 1 {
		t.Error("a new state is not zero")
	}
	if err := p.Check(s, f); err != nil {
		t.Error(err)
	}
}

func BenchmarkMatch(b *testing.B) {
	p := smallPool(b, 4096)
	tree := NewTree(p)
	for i := range int32(16) {
		publish(b, tree, "", append(run(0, 1000), run(2000*(i+1), 1000)...))
	}
	tokens := append(run(0, 1000), run(2000*3, 1000)...)
	b.ResetTimer()
	for b.Loop() {
		p.Free(tree.Match("", tokens))
	}
}

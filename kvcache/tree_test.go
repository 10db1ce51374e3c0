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
		f := p.Fork(s)
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

// What a sequence holds follows from the windows of its layers: those with the
// same one share a page table.
func TestSlide(t *testing.T) {
	p := groupPool(t, 100, 0, 30, 40, 40, 30, 0)
	if st := p.Stats(); st.Groups != 3 || st.Padding != 0 || st.PageBytes != 2*128 {
		t.Fatalf("%+v, want three groups of two layers", st)
	}
	s := p.NewSeq()
	for range 1000 {
		if err := p.Grow(s, 1); err != nil {
			t.Fatal(err)
		}
		p.Slide(s, s.Len()-10) // ten may be taken back
		if most := p.pagesOf(s.Len()) + 4 + 5; s.Pages() > most {
			t.Fatalf("%d tokens in %d pages, want at most %d", s.Len(), s.Pages(), most)
		}
	}
	if s.First() != 960 || s.tables[0].first != 0 || s.tables[2].first != 944 {
		t.Errorf("the first token is %d, in the group of 40 %d, want those of the pages with tokens 961 and 951", s.First(), s.tables[2].first)
	}
	p.Truncate(s, 990)
	if s.Len() != 990 {
		t.Errorf("cut to %d tokens, want 990: the windows are there", s.Len())
	}
	p.Truncate(s, 950)
	if s.Len() != 0 {
		t.Errorf("cut to %d tokens, want 0: the windows are not there", s.Len())
	}
	if err := p.Check(s); err != nil {
		t.Error(err)
	}
}

// groupPool returns a pool of pages of 16 tokens, for layers with the given
// windows.
func groupPool(t testing.TB, pages int, windows ...int) *Pool {
	t.Helper()
	cfg := Config{Layers: worldLayers(windows...), PageTokens: 16, DType: tensor.F16, MaxBytes: 1}
	for range 2 {
		p, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if cfg.MaxBytes > 1 {
			t.Cleanup(func() { p.Close() })
			return p
		}
		cfg.MaxBytes = int64(pages) * p.Stats().PageBytes
		p.Close()
	}
	panic("unreachable")
}

// PagesInSteps is what a sequence takes that slides, PagesFor what it takes at
// once, and both are exact where they are reached.
func TestPagesInSteps(t *testing.T) {
	p := groupPool(t, 400, 0, 40, 40, 40)
	for _, step := range []int{1, 16, 33, 100} {
		for _, tokens := range []int{1, 30, 64, 500, 1001} {
			want := p.PagesInSteps(nil, tokens, step)
			s, most := p.NewSeq(), 0
			for s.Len() < tokens {
				left := p.PagesInSteps(s, tokens-s.Len(), step)
				if s.Pages()+left > want {
					t.Errorf("%d tokens by %d: %d pages at %d and %d more, want at most %d", tokens, step, s.Pages(), s.Len(), left, want)
				}
				if err := p.Grow(s, min(step, tokens-s.Len())); err != nil {
					t.Fatal(err)
				}
				most = max(most, s.Pages())
				p.Slide(s, s.Len()-1)
			}
			if most > want || want-most > 4 {
				t.Errorf("%d tokens by %d: at most %d pages at a time, predicted %d", tokens, step, most, want)
			}
			if n := p.Tokens(want, step); n < tokens || p.PagesInSteps(nil, n, step) > want || p.PagesInSteps(nil, n+1, step) <= want {
				t.Errorf("%d pages hold %d tokens by %d, want at least %d", want, n, step, tokens)
			}
			p.Free(s)
		}
	}
	if n := p.PagesFor(nil, 1001); n != 4*63 {
		t.Errorf("%d pages at once, want those of four groups", n)
	}
}

// A window's pages are kept where others are likely to go on, and nowhere else.
func TestMarks(t *testing.T) {
	p := groupPool(t, 400, 0, 40)
	tree := NewTree(p)
	stem := run(0, 200)
	// compute publishes tokens as an engine does, chunk by chunk, and returns how
	// many were found.
	compute := func(tokens []int32) int {
		s := tree.Match("", tokens[:len(tokens)-1])
		found := s.Len()
		for s.Len() < len(tokens) {
			if err := p.Grow(s, min(64, len(tokens)-s.Len())); err != nil {
				t.Fatal(err)
			}
			if s.Len() < len(tokens) {
				tree.InsertPart("", tokens[:s.Len()], s)
			} else {
				tree.Insert("", tokens, s)
			}
			p.Slide(s, s.Len()-1)
		}
		p.Free(s)
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		return found
	}
	ask := func(i int32) []int32 { return append(append([]int32(nil), stem...), run(1000*i, 50)...) }
	for i, want := range []int{
		0,   // nothing is known
		0,   // the stem is, but its window is gone; it leaves one where it goes another way
		200, // there
		200,
	} {
		if found := compute(ask(int32(i) + 1)); found != want {
			t.Errorf("question %d: %d tokens found, want %d", i, found, want)
		}
	}
	if found := compute(ask(1)); found != 249 {
		t.Errorf("the first question again: %d tokens found, want all but the last", found)
	}
	if found := compute(append(ask(2), 7, 8, 9)); found != 250 {
		t.Errorf("the second question goes on: %d tokens found, want 250", found)
	}
	st := tree.Stats()
	if st.Marks != 1+4+1 {
		t.Errorf("%d marks, want one behind the stem and one behind each of five ends", st.Marks)
	}
	// 13 pages of the stem, 4 of each question less the one that the stem shares,
	// and windows of at most four pages, which overlap.
	if full, windows := 12+4*4+1, 6*4; st.Pages > full+windows {
		t.Errorf("%d pages are kept, want at most %d", st.Pages, full+windows)
	}
	if freed := tree.Evict(1); freed < 1 || tree.Stats().Marks != 5 {
		t.Errorf("eviction of a page freed %d and left %d marks", freed, tree.Stats().Marks)
	}
	if n, _, _ := tree.Peek("", ask(3)); n != 200 {
		t.Errorf("%d tokens of the question that was not used for longest are known, want the stem", n)
	}
	tree.Clear()
	if st := p.Stats(); st.Cached != 0 || st.Free != st.Pages {
		t.Errorf("after Clear: %+v", st)
	}
}

func TestStates(t *testing.T) {
	p, err := New(Config{Layers: []LayerShape{{State: 100}, {State: 8}, {State: 256, Parts: 2}}, Checkpoints: 1, DType: tensor.F16, MaxBytes: 5 * (128 + 64 + 256)})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if st := p.Stats(); st.Pages != 5 || st.StatePages != 1 || p.PagesInSteps(nil, 100, 0) != 2 {
		t.Fatalf("%+v, a sequence needs %d pages, want one for its state and one for a checkpoint", st, p.PagesInSteps(nil, 100, 0))
	}
	s := p.NewSeq()
	step := func() {
		t.Helper()
		if err := p.Grow(s, 1); err != nil {
			t.Fatal(err)
		}
		p.State(1, 0, s)[0]++
		p.State(2, 1, s)[127]++
	}
	for range 5 {
		step()
	}
	p.Checkpoint(s)
	if n := p.PagesFor(s, 1); n != 1 {
		t.Errorf("after a checkpoint %d pages are needed, want one for a copy of the state", n)
	}
	for range 5 {
		step()
	}
	p.Truncate(s, 7)
	if s.Len() != 5 || p.State(1, 0, s)[0] != 5 || p.State(2, 1, s)[127] != 5 {
		t.Errorf("cut to %d tokens with state %d, want the checkpoint at 5", s.Len(), p.State(1, 0, s)[0])
	}
	f := p.Fork(s)
	if err := p.Grow(f, 1); err != nil {
		t.Fatal(err)
	}
	p.State(1, 0, f)[0] = 99
	if p.State(1, 0, s)[0] != 5 {
		t.Error("a fork changes the state of its parent")
	}
	p.Truncate(s, 4)
	if s.Len() != 0 {
		t.Errorf("cut to %d tokens, no state was saved before", s.Len())
	}
	step()
	if p.State(1, 0, s)[0] != 1 {
		t.Error("a new state is not zero")
	}
	if err := p.Check(s, f); err != nil {
		t.Error(err)
	}
}

// States are found at the lengths where they were published, and give way to
// sequences that run.
func TestStatesInTree(t *testing.T) {
	p, err := New(Config{Layers: append(worldLayers(0), LayerShape{State: 8}), PageTokens: 16, DType: tensor.F16, MaxBytes: 12 * 128})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	tree := NewTree(p)
	if n := publish(t, tree, "", run(0, 40)); n != 0 {
		t.Errorf("%d tokens found in an empty tree", n)
	}
	for length, want := range map[int]int{39: 0, 40: 40, 60: 40} {
		if n, pages, avail := tree.Peek("", run(0, length)); n != want || want > 0 && (pages != 4 || avail != 4) {
			t.Errorf("of %d tokens %d are found in %d pages, want %d", length, n, pages, want)
		}
	}
	if n := publish(t, tree, "", run(0, 60)); n != 40 {
		t.Errorf("%d tokens found, want 40", n)
	}
	s := p.NewSeq()
	if err := p.Grow(s, 11*16); err != nil { // all the memory
		t.Fatal(err)
	}
	if st := tree.Stats(); st.Marks != 0 || st.Pages != 0 {
		t.Errorf("%+v", st)
	}
	if err := p.Check(s); err != nil {
		t.Error(err)
	}
}

// The layers of several windows are divided into groups of about one size.
func TestGroups(t *testing.T) {
	layers := func(n, every, heads, other int) []LayerShape {
		var l []LayerShape
		for i := range n {
			if (i+1)%every == 0 {
				l = append(l, LayerShape{Heads: heads, KDim: 64, VDim: 64})
			} else {
				l = append(l, LayerShape{Heads: other, KDim: 64, VDim: 64, Window: 512})
			}
		}
		return l
	}
	for name, c := range map[string]struct {
		layers  []LayerShape
		groups  int
		padding int // percent, at most
	}{
		"one window":   {layers(18, 19, 1, 1), 1, 0},
		"all":          {layers(18, 1, 1, 1), 1, 0},
		"Gemma 2":      {layers(26, 2, 4, 4), 2, 0},
		"Gemma 3 270M": {layers(18, 6, 1, 1), 6, 0},
		"Gemma 3 1B":   {layers(26, 6, 1, 1), 13, 0},
		"Gemma 3 27B":  {layers(62, 6, 16, 16), 31, 0},
		"other heads":  {layers(30, 6, 2, 8), 27, 3},
	} {
		p, err := New(Config{Layers: c.layers, DType: tensor.F16, MaxBytes: 1})
		if err != nil {
			t.Fatal(err)
		}
		st := p.Stats()
		if st.Groups != c.groups || 100*st.Padding > int64(c.padding*p.tokenBytes) {
			t.Errorf("%s: %d groups, %d bytes of padding to %d, want %d groups and at most %d%%", name, st.Groups, st.Padding, p.tokenBytes, c.groups, c.padding)
		}
		n, err := SequenceBytes(Config{Layers: c.layers, DType: tensor.F16}, 1000, 0)
		if want := int64(p.PagesFor(nil, 1000)) * st.PageBytes; err != nil || n != want {
			t.Errorf("%s: 1000 tokens take %d bytes, SequenceBytes says %d, %v", name, want, n, err)
		}
		p.Close()
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

// A state that was kept is there again after a step that is undone, and costs no
// page and no allocation once it is let go.
func TestKeepState(t *testing.T) {
	p, err := New(Config{Layers: []LayerShape{{State: 8}, {Heads: 1, KDim: 16, VDim: 16}}, PageTokens: 16, DType: tensor.F16, MaxBytes: 1 << 14})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s := p.NewSeq()
	step := func(n int) {
		t.Helper()
		if err := p.Grow(s, n); err != nil {
			t.Fatal(err)
		}
		p.State(0, 0, s)[0] += byte(n)
	}
	step(14)
	for round := range 5 {
		n := s.Len()
		p.Keep(s)
		if need := p.PagesFor(s, 5); need < 1 {
			t.Errorf("%d pages for a step that may be undone, want one for the state at least", need)
		}
		if step(5); round%2 == 0 {
			p.Return(s)
		} else {
			p.Drop(s)
			n += 5
		}
		if s.Len() != n || p.State(0, 0, s)[0] != byte(n) {
			t.Fatalf("round %d: %d tokens with state %d, want %d", round, s.Len(), p.State(0, 0, s)[0], n)
		}
		if err := p.Check(s); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(10, func() {
		p.Keep(s)
		step(1)
		p.Return(s)
	}); n != 0 {
		t.Errorf("%v allocations for a step that is undone", n)
	}
	p.Keep(s)
	p.Free(s)
	if err := p.Check(); err != nil || p.Stats().InUse != 0 {
		t.Errorf("%v, %d pages in use", err, p.Stats().InUse)
	}
}

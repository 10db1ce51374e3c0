package kvcache

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"ridge/weights/tensor"
)

func mustPool(t *testing.T, b *Budget, page int) *Pool {
	t.Helper()
	p, err := New(Config{Layers: []LayerShape{{Heads: 1, KDim: page / 64, VDim: page / 64}}, PageTokens: 16, DType: tensor.F16, Budget: b})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	if p.pageBytes != page {
		t.Fatalf("page of %d bytes, want %d", p.pageBytes, page)
	}
	return p
}

func mustGrow(t *testing.T, p *Pool, tokens int) *Seq {
	t.Helper()
	s := p.NewSeq()
	if err := p.Grow(s, tokens); err != nil {
		t.Fatal(err)
	}
	return s
}

// Who has more than its share gets nothing more as long as another lacks part of
// its own, and has to give what its sequences leave; who is within its share has
// not.
func TestBudgetFairness(t *testing.T) {
	b, err := NewBudget(1<<20, 2, false)
	if err != nil {
		t.Fatal(err)
	}
	a := mustPool(t, b, 4096)
	woken := 0
	a.OnClaim(func() { woken++ })
	if a.Sure() != 128 || a.Stats().Held != 16 || a.Stats().Pages != 240 {
		t.Fatalf("pool of half a budget of 256 pages: %+v", a.Stats())
	}
	big, rest := mustGrow(t, a, 100*16), mustGrow(t, a, 140*16)
	if a.Grow(rest, 1) == nil {
		t.Fatal("the floor of a pool that may come was taken")
	}
	c := mustPool(t, b, 8192) // its floor was kept for it
	if c.Stats().Held != 8 {
		t.Fatalf("second pool: %+v", c.Stats())
	}
	if n := c.Reserve(c.Sure() + 10); n != 8 {
		t.Fatalf("%d pages are available", n)
	}
	if w, d := a.Claims(); w != 0 || d != 0 {
		t.Errorf("claims %d, %d before anything was asked for", w, d)
	}
	c.Ask()
	wanted, due := a.Claims()
	if woken != 1 || wanted != 2*(64-8+10)+12 || due != 240-128 {
		t.Errorf("woken %d times, claims %d, %d", woken, wanted, due)
	}
	if n := a.Shrink(due, a.Stats().InUse, []*Seq{big, rest}); n != 0 {
		t.Errorf("%d pages in use were given", n)
	}
	a.Free(big)
	if n := a.Shrink(10, a.Stats().InUse, []*Seq{rest}); n != 16 {
		t.Errorf("gave %d pages, want a chunk of 16", n)
	}
	if a.Reach(240) != 224 {
		t.Error("got back what another has a claim to")
	}
	a.Shrink(due, a.Stats().InUse, []*Seq{rest})
	if err := a.Check(rest); err != nil {
		t.Fatal(err)
	}
	if n := c.Reserve(c.Sure()); n != (256-144)/2 {
		t.Errorf("%d pages are available", n)
	}
	c.Ask()
	if _, due := a.Claims(); due != 16 {
		t.Errorf("due %d, want the chunk above the share", due)
	}
	if _, due := c.Claims(); due != 0 {
		t.Errorf("a pool within its share owes %d pages", due)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if w, d := a.Claims(); w != 0 || d != 0 || a.Reach(240) != 240 {
		t.Errorf("the other has gone: claims %d, %d", w, d)
	}
}

// Who asks for the same again, having got it, wakes the others again.
func TestBudgetWakes(t *testing.T) {
	b, err := NewBudget(1<<20, 2, false)
	if err != nil {
		t.Fatal(err)
	}
	a, c := mustPool(t, b, 4096), mustPool(t, b, 4096)
	a.Reach(240)
	woken := 0
	a.OnClaim(func() { woken++ })
	for i := range 5 {
		have := c.Available()
		if c.Reserve(have+1) != have {
			t.Fatal("there is memory left")
		}
		c.Ask()
		if woken != i+1 {
			t.Fatalf("asked %d times, woken %d times", i+1, woken)
		}
		wanted, _ := a.Claims()
		a.Shrink(wanted, 0, nil)
		if n := c.Reserve(have + 1); n != have+16 {
			t.Fatalf("%d pages are available, %d before", n, have)
		}
		if wanted, _ := a.Claims(); wanted != 0 {
			t.Errorf("%d pages are wanted that were got", wanted)
		}
	}
	c.Ask()
	if b.asking.Load() != 0 {
		t.Error("somebody still asks")
	}
}

func TestBudgetRefuses(t *testing.T) {
	for _, c := range []struct{ bytes, pools int }{{0, 1}, {1, 0}, {-1, 1}} {
		if _, err := NewBudget(int64(c.bytes), c.pools, false); err == nil {
			t.Errorf("a budget of %d bytes for %d pools", c.bytes, c.pools)
		}
	}
	b, err := NewBudget(64<<10, 1, true)
	if err != nil {
		t.Fatal(err)
	}
	layers := []LayerShape{{Heads: 1, KDim: 8, VDim: 8}}
	if _, err := New(Config{Layers: []LayerShape{{Heads: 100, KDim: 64, VDim: 64}}, DType: tensor.F16, Budget: b}); err == nil {
		t.Error("a page that is larger than the share")
	}
	if _, err := New(Config{Layers: append(layers, LayerShape{State: 80 << 10}), DType: tensor.F16, Budget: b}); err == nil {
		t.Error("a state that is larger than the share")
	}
	p, err := New(Config{Layers: append(layers, LayerShape{State: 8 << 10}), DType: tensor.F16, Budget: b})
	if err != nil {
		t.Fatal(err)
	}
	if st := p.Stats(); st.Held != st.Pages || st.Sure != st.Pages || st.Budget.Used != st.HeldBytes || st.HeldBytes > 64<<10 {
		t.Errorf("fixed part: %+v", st)
	}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	if _, err := New(Config{Layers: layers, DType: tensor.F16, Budget: b}); err == nil {
		t.Error("more pools than there may be")
	}
	if err := p.Close(); err != nil || b.Stats().Used != 0 {
		t.Errorf("closed: %v, %+v", err, b.Stats())
	}
}

// A chunk is filled by its pages, and is part of the system's pages.
func TestChunkOf(t *testing.T) {
	for _, c := range []struct{ page, share, total, pages, bytes int }{
		{4096, 1 << 30, 1 << 30, 4096, 16 << 20},
		{737280, 2 << 30, 4 << 30, 22, 22 * 737280},
		{737280, 32 << 20, 64 << 20, 5, 5 * 737280},
		{20 << 20, 2 << 30, 4 << 30, 1, 20 << 20},
		{4096, 32 << 20, 64 << 20, 1024, 4 << 20},
		{1000 << 10, 8 << 20, 16 << 20, 1, 1000 << 10},
		{4160, 1 << 20, 1 << 20, 15, 64 << 10},
		{64, 1000, 16000, 1, 4096},
	} {
		if pages, bytes := chunkOf(c.page, int64(c.share), int64(c.total)); pages != c.pages || bytes != c.bytes {
			t.Errorf("page of %d bytes, share %d of %d: %d pages in %d bytes, want %d in %d", c.page, c.share, c.total, pages, bytes, c.pages, c.bytes)
		}
	}
}

// What is given back is the system's again.
func TestShrinkGivesMemoryBack(t *testing.T) {
	// The account that is exact: the short ones lack what each processor has not
	// added yet.
	resident := func() (kb int) {
		s, err := os.ReadFile("/proc/self/smaps_rollup")
		_, rss, _ := strings.Cut(string(s), "\nRss:")
		if _, e := fmt.Sscan(rss, &kb); err != nil || e != nil {
			t.Skip("skipped: the system does not say what is resident")
		}
		return kb << 10
	}
	const bytes = 64 << 20
	b, err := NewBudget(bytes, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	p := mustPool(t, b, 64<<10)
	NewTree(p)
	before := resident()
	s := mustGrow(t, p, p.Sure()*16)
	for _, id := range s.tables[0].pages {
		for i := range p.bytes(id) {
			p.bytes(id)[i] = 1
		}
	}
	full := resident()
	small := mustShare(t, p, s, 100)
	p.Free(s)
	if n := p.Shrink(p.Spare(), p.Stats().InUse, []*Seq{small}); n < p.Sure()*3/4 {
		t.Errorf("gave %d of %d pages", n, p.Sure())
	}
	after := resident()
	t.Logf("%d MiB before, %d full, %d after", before>>20, full>>20, after>>20)
	if held := p.Stats().HeldBytes; full-before < bytes*9/10 || after-before > int(held)+bytes/10 {
		t.Errorf("resident: %d bytes before, %d full, %d after, when %d are held", before, full, after, held)
	}
	for _, id := range small.tables[0].pages {
		if p.bytes(id)[0] != 1 {
			t.Fatal("a page that was moved has lost its bytes")
		}
	}
	if err := p.Check(small); err != nil {
		t.Error(err)
	}
}

// mustShare returns a sequence that shares the first pages of s.
func mustShare(t *testing.T, p *Pool, s *Seq, pages int) *Seq {
	t.Helper()
	f := p.Fork(s)
	p.Truncate(f, pages*16)
	return f
}

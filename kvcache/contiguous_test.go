package kvcache

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"ridge/weights/tensor"
)

// The contiguous allocator against an array that says who has each slot.
func TestContiguousAgainstNaiveModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const slots = 60
		c := NewContiguous(slots)
		var owner [slots]*Region
		var regions []*Region
		used := map[*Region]int{}
		largest := func() int {
			n, best := 0, 0
			for _, o := range owner {
				if n++; o != nil {
					n = 0
				}
				best = max(best, n)
			}
			return best
		}
		claim := func(r *Region) {
			for i := r.start; i < r.start+r.size; i++ {
				if owner[i] != nil {
					t.Fatalf("slot %d is given twice", i)
				}
				owner[i] = r
			}
		}
		disclaim := func(r *Region) {
			for i, o := range owner {
				if o == r {
					owner[i] = nil
				}
			}
		}
		pick := func() *Region {
			if len(regions) == 0 {
				t.Skip("no region")
			}
			return rapid.SampledFrom(regions).Draw(t, "region")
		}
		t.Repeat(map[string]func(*rapid.T){
			"reserve": func(t *rapid.T) {
				n := rapid.IntRange(0, 25).Draw(t, "n")
				can := n > 0 && n <= largest()
				r, err := c.Reserve(n)
				if can != (err == nil) || n > 0 && err != nil && !errors.Is(err, ErrNoRegion) {
					t.Fatalf("Reserve(%d) = %v, largest %d", n, err, largest())
				}
				if err == nil {
					claim(r)
					regions = append(regions, r)
				}
			},
			"grow": func(t *rapid.T) {
				r, n := pick(), rapid.IntRange(0, 10).Draw(t, "n")
				if err := c.Grow(r, n); (used[r]+n <= r.size) != (err == nil) {
					t.Fatalf("Grow(%d) of %d in %d: %v", n, used[r], r.size, err)
				} else if err == nil {
					used[r] += n
				}
			},
			"extend": func(t *rapid.T) {
				r, n := pick(), rapid.IntRange(0, 10).Draw(t, "n")
				size, start := r.size, r.start
				space := largest()
				moved, err := c.Extend(r, n)
				if err != nil {
					if size+n <= space {
						t.Fatalf("Extend of %d by %d: %v, largest %d", size, n, err, space)
					}
					return
				}
				disclaim(r)
				claim(r)
				if r.size != size+n || (moved > 0) && r.start == start || r.start != start && moved != used[r] {
					t.Fatalf("Extend of %d by %d gave %+v, %d moved", size, n, *r, moved)
				}
			},
			"free": func(t *rapid.T) {
				r := pick()
				disclaim(r)
				for i := range regions {
					if regions[i] == r {
						regions = append(regions[:i], regions[i+1:]...)
						break
					}
				}
				delete(used, r)
				c.Free(r)
			},
			"": func(t *rapid.T) {
				if err := c.Check(); err != nil {
					t.Fatal(err)
				}
				u := c.Usage(10)
				want := 0
				for _, n := range used {
					want += n
				}
				if u.Used != want || u.Used+u.Internal+u.Free != u.Slots || u.External > u.Free || c.Largest() != largest() {
					t.Fatalf("%+v, want %d used; largest %d, want %d", u, want, c.Largest(), largest())
				}
			},
		})
	})
}

// Lengths of prompts and answers as in ShareGPT: log-normal, cut at a context
// of 2048.
func shareGPT(rng *rand.Rand) (prompt, answer int) {
	draw := func(median, sigma float64) int {
		return 4 + int(min(math.Exp(math.Log(median)+sigma*rng.NormFloat64()), 1000))
	}
	return draw(120, 1.2), draw(170, 1.0)
}

// The trace that pages were invented for: max-length reservation wastes most of
// the memory, pages of 16 tokens nearly nothing, and more sequences fit.
func TestWaste(t *testing.T) {
	const maxLen, pages = 2048, 1024
	p := smallPool(t, pages)
	c := NewContiguous(pages * 16)
	rng := rand.New(rand.NewPCG(3, 4))
	type paged struct {
		s    *Seq
		left int
	}
	type reserved struct {
		r    *Region
		left int
	}
	var a []paged
	var b []reserved
	var pageWaste, contWaste, pageSeqs, contSeqs int
	const steps = 3000
	for range steps {
		for p.Available() > 100 { // leaves room to grow
			prompt, answer := shareGPT(rng)
			s := p.NewSeq()
			if err := p.Grow(s, prompt); err != nil {
				t.Fatal(err)
			}
			a = append(a, paged{s, answer})
		}
		for c.Largest() >= maxLen {
			prompt, answer := shareGPT(rng)
			r, err := c.Reserve(maxLen)
			if err == nil {
				err = c.Grow(r, prompt)
			}
			if err != nil {
				t.Fatal(err)
			}
			b = append(b, reserved{r, answer})
		}
		for i := len(a) - 1; i >= 0; i-- {
			if a[i].left--; a[i].left < 0 || p.Grow(a[i].s, 1) != nil {
				p.Free(a[i].s)
				a[i] = a[len(a)-1]
				a = a[:len(a)-1]
			}
		}
		for i := len(b) - 1; i >= 0; i-- {
			if b[i].left--; b[i].left < 0 || c.Grow(b[i].r, 1) != nil {
				c.Free(b[i].r)
				b[i] = b[len(b)-1]
				b = b[:len(b)-1]
			}
		}
		pageWaste += p.Usage().Waste()
		contWaste += c.Usage(maxLen).Waste()
		pageSeqs += len(a)
		contSeqs += len(b)
	}
	t.Logf("waste of %d.%d%% in pages and %d.%d%% in regions, %d and %d sequences", pageWaste/steps/10, pageWaste/steps%10, contWaste/steps/10, contWaste/steps%10, pageSeqs/steps, contSeqs/steps)
	if pageWaste/steps >= 40 {
		t.Errorf("pages waste %d per mille, want less than 40", pageWaste/steps)
	}
	if contWaste/steps < 600 {
		t.Errorf("regions waste %d per mille, want 600 or more", contWaste/steps)
	}
	if pageSeqs < 3*contSeqs {
		t.Errorf("%d sequences in pages, %d in regions", pageSeqs/steps, contSeqs/steps)
	}
}

// Short sequences, of 128 tokens of prompt on average and at most 192 in all,
// waste more of larger pages: the counters say how much.
func TestWasteOfShortSequences(t *testing.T) {
	waste := func(page int) int {
		p, err := New(Config{Layers: []LayerShape{{Heads: 1, KDim: 1, VDim: 1}}, PageTokens: page, DType: tensor.F16, MaxBytes: 64 << 10})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		rng := rand.New(rand.NewPCG(6, 7))
		type run struct {
			s    *Seq
			left int
		}
		runs := make([]run, 16)
		sum := 0
		const steps = 2000
		for range steps {
			for i := range runs {
				r := &runs[i]
				if r.left == 0 {
					if r.s != nil {
						p.Free(r.s)
					}
					prompt := 96 + rng.IntN(65)
					*r = run{p.NewSeq(), 1 + rng.IntN(192-prompt)}
					if err := p.Grow(r.s, prompt); err != nil {
						t.Fatal(err)
					}
				}
				if err := p.Grow(r.s, 1); err != nil {
					t.Fatal(err)
				}
				r.left--
			}
			sum += p.Usage().Waste()
		}
		t.Logf("pages of %d: %d.%d%%", page, sum/steps/10, sum/steps%10)
		return sum / steps
	}
	if small, server := waste(16), waste(32); small >= 60 || server < small*3/2 || server >= 120 || waste(64) < server {
		t.Errorf("pages of 16 waste %d per mille, of 32 %d", small, server)
	}
}

package kvcache

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"ridge/weights/tensor"
)

func shapes(n int) []LayerShape {
	s := make([]LayerShape, n)
	for i := range s {
		s[i] = LayerShape{Heads: 1 + i%3, KDim: 8, VDim: 12}
	}
	return s
}

func TestNewRefuses(t *testing.T) {
	good := Config{Layers: shapes(2), DType: tensor.F16, MaxBytes: 1 << 20}
	for name, change := range map[string]func(*Config){
		"no layers":        func(c *Config) { c.Layers = nil },
		"odd page size":    func(c *Config) { c.PageTokens = 24 },
		"negative page":    func(c *Config) { c.PageTokens = -16 },
		"quantized type":   func(c *Config) { c.DType = tensor.Q4_0 },
		"layer of nothing": func(c *Config) { c.Layers = []LayerShape{{Heads: 1, KDim: 0, VDim: 4}} },
	} {
		c := good
		change(&c)
		if p, err := New(c); err == nil {
			p.Close()
			t.Errorf("%s: New succeeded", name)
		}
	}
}

// The pool against a naive model: any order of operations keeps its books, and
// no two tokens share memory.
func TestPoolAgainstNaiveModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pageTokens := 16 * rapid.IntRange(1, 4).Draw(t, "tiles")
		p, err := New(Config{Layers: shapes(3), PageTokens: pageTokens, DType: tensor.F16, MaxBytes: 1})
		if err != nil {
			t.Fatal(err)
		}
		pageBytes := p.Stats().PageBytes
		p.Close()
		if p, err = New(Config{Layers: shapes(3), PageTokens: pageTokens, DType: tensor.F16, MaxBytes: 10 * pageBytes}); err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		seqs := make([]*Seq, 4)
		want := make([]int, 4)
		for i := range seqs {
			seqs[i] = p.NewSeq()
		}
		pages := func(n int) int { return (n + pageTokens - 1) / pageTokens }
		t.Repeat(map[string]func(*rapid.T){
			"grow": func(t *rapid.T) {
				i, n := rapid.IntRange(0, 3).Draw(t, "seq"), rapid.IntRange(0, 100).Draw(t, "n")
				used := 0
				for _, w := range want {
					used += pages(w)
				}
				err := p.Grow(seqs[i], n)
				if fits := used-pages(want[i])+pages(want[i]+n) <= 10; fits != (err == nil) {
					t.Fatalf("Grow(%d) = %v, fits: %v", n, err, fits)
				} else if err != nil && !errors.Is(err, ErrNoPages) {
					t.Fatal(err)
				}
				if err == nil {
					want[i] += n
				}
			},
			"truncate": func(t *rapid.T) {
				i, n := rapid.IntRange(0, 3).Draw(t, "seq"), rapid.IntRange(0, 100).Draw(t, "n")
				p.Truncate(seqs[i], n)
				want[i] = min(want[i], n)
			},
			"free": func(t *rapid.T) {
				i := rapid.IntRange(0, 3).Draw(t, "seq")
				p.Free(seqs[i])
				want[i] = 0
			},
			"": func(t *rapid.T) {
				if err := p.Check(seqs...); err != nil {
					t.Fatal(err)
				}
				for i, s := range seqs {
					if s.Len() != want[i] || s.Pages() != pages(want[i]) {
						t.Fatalf("sequence %d: %d tokens in %d pages, want %d in %d", i, s.Len(), s.Pages(), want[i], pages(want[i]))
					}
				}
			},
		})
		markTiles(t, p, seqs)
	})
}

// markTiles writes a different byte to every tile and then looks whether all are
// still there.
func markTiles(t *rapid.T, p *Pool, seqs []*Seq) {
	each := func(do func(k, v []byte, id byte)) {
		id := byte(0)
		for _, s := range seqs {
			for layer, l := range p.cfg.Layers {
				for head := range l.Heads {
					for i := 0; i*TileTokens < s.Len(); i++ {
						id++
						k, v := p.Tile(layer, head, s, i)
						do(k, v, id)
					}
				}
			}
		}
	}
	each(func(k, v []byte, id byte) {
		for i := range k {
			k[i] = id
		}
		for i := range v {
			v[i] = ^id
		}
	})
	each(func(k, v []byte, id byte) {
		for i := range k {
			if k[i] != id {
				t.Fatalf("key tile %d was overwritten", id)
			}
		}
		for i := range v {
			if v[i] != ^id {
				t.Fatalf("value tile %d was overwritten", id)
			}
		}
	})
}

func TestRecycledPagesAreClear(t *testing.T) {
	p, err := New(Config{Layers: shapes(1), DType: tensor.F32, MaxBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s := p.NewSeq()
	if err := p.Grow(s, 16); err != nil {
		t.Fatal(err)
	}
	k, _ := p.Tile(0, 0, s, 0)
	for i := range k {
		k[i] = 0xff // NaN
	}
	p.Free(s)
	if err := p.Grow(s, 16); err != nil {
		t.Fatal(err)
	}
	k, _ = p.Tile(0, 0, s, 0)
	for i := range k {
		if k[i] != 0 {
			t.Fatal("a recycled page holds old keys")
		}
	}
}

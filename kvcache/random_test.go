package kvcache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ridge/weights/tensor"
)

// world runs operations on a pool and a tree beside a model that knows nothing
// of pages: a sequence is a list of tokens. Every token's key and value are a
// hash of the tokens up to it, as causal attention has it, so a page that is
// shared or copied wrongly shows.
type world struct {
	p    *Pool
	tree *Tree
	size int // tokens in a page
	pick func(n int) int

	seqs     []*Seq
	tokens   [][]int32
	states   []uint64 // what the recurrent state of each should be
	salts    []string
	inserted map[string][][]int32
	mixed    bool // some sequence was published under the salt of another
}

const (
	worldPages  = 12 // of each group
	worldStates = 7
	worldSeqs   = 5
)

func newWorld(cfg Config, withTree bool, pick func(int) int) (*world, error) {
	cfg.MaxBytes = 1
	p, err := New(cfg)
	if err != nil {
		return nil, err
	}
	cfg.MaxBytes = int64(worldPages*max(1, len(p.groups))+worldStates*p.statePages) * p.Stats().PageBytes
	p.Close()
	if p, err = New(cfg); err != nil {
		return nil, err
	}
	w := &world{p: p, size: p.PageTokens(), pick: pick, inserted: map[string][][]int32{}}
	if withTree {
		w.tree = NewTree(p)
	}
	return w, nil
}

// step does one random operation and compares everything.
func (w *world) step() error {
	var err error
	i := -1
	if len(w.seqs) > 0 {
		i = w.pick(len(w.seqs))
	}
	switch op := w.pick(13); {
	case i < 0 || op == 0 && len(w.seqs) < worldSeqs:
		err = w.start()
	case op <= 4:
		err = w.grow(i)
	case op == 5:
		err = w.truncate(i)
	case op == 6:
		w.drop(i)
	case op == 7 && len(w.seqs) < worldSeqs:
		err = w.fork(i)
	case op == 8:
		err = w.insert(i)
	case op == 9:
		err = w.evict()
	case op == 10:
		err = w.swap(i)
	case op == 12:
		err = w.pin(i)
	case op == 11:
		w.p.Checkpoint(w.seqs[i])
		w.p.Slide(w.seqs[i], w.seqs[i].Len()-w.pick(40))
	}
	if err != nil {
		return err
	}
	if err := w.p.Check(w.seqs...); err != nil {
		return err
	}
	return errors.Join(w.usage(), w.checkMap())
}

// pin pins some of what was published, or ends all pins; a sequence that is only
// looked at changes nothing.
func (w *world) pin(i int) error {
	if w.tree == nil {
		return nil
	}
	if w.pick(3) == 0 {
		w.tree.Unpin()
		return nil
	}
	salt, tokens, before := w.salts[i], w.tokens[i], w.tree.Stats()
	tokens = tokens[:w.pick(len(tokens)+1)]
	found, _, _ := w.tree.Peek(salt, tokens)
	s := w.tree.Hold(salt, tokens)
	if (s != nil) != (found > 0 && found == len(tokens)) || w.tree.Stats() != before {
		return fmt.Errorf("hold of %d tokens, of which %d are found: %v", len(tokens), found, s != nil)
	}
	if s != nil {
		w.p.Free(s)
	}
	if _, ok := w.tree.Pin(salt, tokens); ok != (s != nil) {
		return fmt.Errorf("pin of %d tokens, of which %d are found: %v", len(tokens), found, ok)
	}
	return nil
}

func (w *world) add(s *Seq, tokens []int32, state uint64, salt string) {
	w.seqs, w.tokens = append(w.seqs, s), append(w.tokens, slices.Clip(tokens))
	w.states, w.salts = append(w.states, state), append(w.salts, salt)
}

func (w *world) drop(i int) {
	w.p.Free(w.seqs[i])
	w.seqs, w.tokens = slices.Delete(w.seqs, i, i+1), slices.Delete(w.tokens, i, i+1)
	w.states, w.salts = slices.Delete(w.states, i, i+1), slices.Delete(w.salts, i, i+1)
}

// text returns random tokens in which prefixes are often equal.
func (w *world) text(n int) []int32 {
	t := make([]int32, n)
	seed := w.pick(3)
	for i := range t {
		t[i] = int32(seed + i/16%2)
	}
	if n > 0 {
		t[w.pick(n)] = 7
	}
	return t
}

func (w *world) salt() string { return [...]string{"", "a"}[w.pick(2)] }

// start begins a sequence, with what the tree has of it.
func (w *world) start() error {
	if w.tree == nil {
		w.add(w.p.NewSeq(), nil, 0, "")
		return nil
	}
	salt, want := w.salt(), w.text(w.pick(4*w.size))
	n, pages, avail := w.tree.Peek(salt, want)
	before := w.p.Available()
	s := w.tree.Match(salt, want)
	w.add(s, want[:s.Len()], stateOf(want[:s.Len()]), salt)
	if s.Len() != n || s.Pages() != pages || before-w.p.Available() != avail {
		return fmt.Errorf("Peek said %d tokens, %d pages, %d available; Match found %d, %d and took %d", n, pages, avail, s.Len(), s.Pages(), before-w.p.Available())
	}
	best := 0
	for _, t := range w.inserted[salt] {
		best = max(best, common(t, want))
	}
	if n > best || !w.p.Bounded() && w.tree.Stats().Evicted == 0 && n < best {
		return fmt.Errorf("Match found %d tokens, %d were inserted, %d evicted", n, best, w.tree.Stats().Evicted)
	}
	return w.compare(len(w.seqs) - 1)
}

func (w *world) grow(i int) error {
	s, n := w.seqs[i], w.pick(w.size)
	if w.pick(4) == 0 {
		n = w.pick(3 * w.size)
	}
	need, bound, avail := w.p.need(s, n), w.p.PagesFor(s, n), w.p.Available()
	if need > bound || bound > need+len(w.p.groups) {
		return fmt.Errorf("PagesFor(%d) = %d, needed are %d", n, bound, need)
	}
	err := w.p.Grow(s, n)
	if fits := need <= avail; fits != (err == nil) || err != nil && !errors.Is(err, ErrNoPages) {
		return fmt.Errorf("Grow(%d) = %v with %d pages of %d", n, err, need, avail)
	}
	if err != nil {
		return nil
	}
	for _, tok := range w.text(n) {
		w.tokens[i] = append(w.tokens[i], tok)
		at := len(w.tokens[i]) - 1
		x := hash(w.tokens[i])
		for l, shape := range w.p.cfg.Layers {
			if shape.Heads > 0 {
				k, v := w.p.Tile(l, 0, s, at/TileTokens)
				binary.LittleEndian.PutUint16(k[2*(at%TileTokens):], x+uint16(l))
				binary.LittleEndian.PutUint16(v[2*(at%TileTokens):], ^x-uint16(l))
			}
		}
		w.states[i] = w.states[i]*31 + uint64(x)
	}
	w.eachState(s, func(k int, b []byte) { binary.LittleEndian.PutUint64(b, w.states[i]+uint64(k)) })
	return w.compare(i)
}

// eachState calls do with the parts of the state of s.
func (w *world) eachState(s *Seq, do func(k int, part []byte)) {
	k := 0
	w.p.eachState(s, func(b []byte) { do(k, b); k++ })
}

func hash(tokens []int32) uint16 {
	h := uint32(2166136261)
	for _, t := range tokens {
		h = (h ^ uint32(t)) * 16777619
	}
	return uint16(h) ^ uint16(h>>16)
}

func (w *world) truncate(i int) error {
	s := w.seqs[i]
	old, want := s.Len(), w.pick(s.Len()+2)
	w.p.Truncate(s, want)
	want = min(want, old)
	switch {
	case s.Len() > want:
		return fmt.Errorf("Truncate(%d) of %d left %d", want, old, s.Len())
	case !w.p.Bounded() && s.Len() != want:
		return fmt.Errorf("Truncate(%d) of %d left %d", want, old, s.Len())
	}
	w.tokens[i] = w.tokens[i][:s.Len()]
	w.states[i] = stateOf(w.tokens[i])
	return w.compare(i)
}

// stateOf returns the state behind tokens.
func stateOf(tokens []int32) (state uint64) {
	for n := range tokens {
		state = state*31 + uint64(hash(tokens[:n+1]))
	}
	return state
}

func (w *world) fork(i int) error {
	f := w.p.Fork(w.seqs[i])
	w.add(f, slices.Clone(w.tokens[i]), w.states[i], w.salts[i])
	return w.compare(len(w.seqs) - 1)
}

func (w *world) insert(i int) error {
	if w.tree == nil {
		return nil
	}
	salt, tokens := w.salts[i], w.tokens[i]
	if w.pick(10) == 0 {
		salt = w.salt() // it is published under two salts
		w.mixed = w.mixed || salt != w.salts[i]
	}
	tokens = tokens[:len(tokens)-w.pick(min(len(tokens), 5)+1)]
	known := w.tree.walk(salt, tokens)
	can := w.tree.canMark(w.seqs[i], len(tokens)) || !w.p.Bounded()
	part := w.pick(4) == 0
	n := 0
	if part {
		n = known + w.tree.InsertPart(salt, tokens, w.seqs[i])
	} else {
		n = known + w.tree.Insert(salt, tokens, w.seqs[i])
	}
	if got := w.tree.walk(salt, tokens); got != n {
		return fmt.Errorf("%d tokens known after Insert of %d, expected %d", got, len(tokens), n)
	}
	if !w.mixed && can && n < len(tokens) {
		return fmt.Errorf("Insert published %d tokens of %d", n, len(tokens))
	}
	if got, _, _ := w.tree.Peek(salt, tokens); can && n == len(tokens) && (!part || known < n) && got != n {
		return fmt.Errorf("of %d published tokens %d can be continued", n, got)
	}
	w.inserted[salt] = append(w.inserted[salt], slices.Clone(tokens[:n]))
	return w.compare(i)
}

// forget forgets one prefix. Those that go on from it, and those that part from it,
// are found as before.
func (w *world) forget() error {
	salt := w.salt()
	known := w.inserted[salt]
	if len(known) == 0 {
		return nil
	}
	gone := known[w.pick(len(known))]
	before := map[int]int{} // what is known of texts of which more is known than they share
	for i, u := range known {
		if w.tree.walk(salt, u) > common(u, gone) {
			before[i], _, _ = w.tree.Peek(salt, u)
		}
	}
	n := w.tree.walk(salt, gone)
	w.tree.Forget(salt, gone)
	if got := w.tree.walk(salt, gone); got > n {
		return fmt.Errorf("%d tokens known after Forget, %d before", got, n)
	}
	for i, want := range before {
		if got, _, _ := w.tree.Peek(salt, known[i]); got != want {
			return fmt.Errorf("Forget of %d tokens: of another text %d can be continued, %d could", len(gone), got, want)
		}
	}
	w.inserted[salt] = slices.DeleteFunc(known, func(u []int32) bool { return common(u, gone) == len(u) })
	return nil
}

func (w *world) evict() error {
	if w.tree == nil {
		return nil
	}
	if w.pick(50) == 0 {
		w.tree.Clear()
		clear(w.inserted)
		w.mixed = false
		if st := w.tree.Stats(); st.Nodes != 0 || st.Pages != 0 || st.Marks != 0 {
			return fmt.Errorf("after Clear: %+v", st)
		}
		return nil
	}
	if w.pick(4) == 0 {
		return w.forget()
	}
	n, cached := w.pick(4), w.p.Stats().Cached
	if got := w.tree.Evict(n); got < min(n, cached) || got > cached || !w.p.Bounded() && got > n {
		return fmt.Errorf("Evict(%d) freed %d, %d were cached", n, got, cached)
	}
	return nil
}

// swap writes sequence i out, frees it and reads it back, perhaps later.
func (w *world) swap(i int) error {
	var b bytes.Buffer
	meta := []byte(fmt.Sprint(w.tokens[i]))
	if err := w.p.Snapshot(&b, w.seqs[i], meta); err != nil {
		return err
	}
	if got, want := int64(b.Len()), w.p.SnapshotBytes(w.seqs[i], len(meta)); got != want {
		return fmt.Errorf("snapshot has %d bytes, SnapshotBytes said %d", got, want)
	}
	tokens, state, salt := w.tokens[i], w.states[i], w.salts[i]
	w.drop(i)
	s, back, err := w.p.Restore(&b, len(tokens))
	if errors.Is(err, ErrNoPages) {
		return nil
	}
	if err != nil {
		return err
	}
	if string(back) != string(meta) || s.Len() != len(tokens) {
		return fmt.Errorf("restored %d tokens, %q", s.Len(), back)
	}
	w.add(s, tokens, state, salt)
	return w.compare(len(w.seqs) - 1)
}

// compare reads all that sequence i holds.
func (w *world) compare(i int) error {
	s := w.seqs[i]
	if s.Len() != len(w.tokens[i]) {
		return fmt.Errorf("sequence %d has %d tokens, want %d", i, s.Len(), len(w.tokens[i]))
	}
	h := uint32(2166136261)
	for at, tok := range w.tokens[i] {
		h = (h ^ uint32(tok)) * 16777619
		want := uint16(h) ^ uint16(h>>16)
		for l, shape := range w.p.cfg.Layers {
			if shape.Heads == 0 || at < s.tables[w.p.layers[l].group].first {
				continue
			}
			k, v := w.p.Tile(l, 0, s, at/TileTokens)
			x, y := binary.LittleEndian.Uint16(k[2*(at%TileTokens):])-uint16(l), binary.LittleEndian.Uint16(v[2*(at%TileTokens):])+uint16(l)
			if x != want || y != ^want {
				return fmt.Errorf("sequence %d, layer %d, token %d of %d: key %04x and value %04x, want %04x and %04x", i, l, at, s.Len(), x, y, want, ^want)
			}
		}
	}
	var err error
	w.eachState(s, func(k int, b []byte) {
		if got := binary.LittleEndian.Uint64(b) - uint64(k); got != w.states[i] {
			err = fmt.Errorf("sequence %d: part %d of the state is %x, want %x", i, k, got, w.states[i])
		}
	})
	return err
}

func (w *world) usage() error {
	u, st := w.p.Usage(), w.p.Stats()
	if u.Used+u.Internal+u.Cached+u.Free != u.Slots || u.Internal < 0 {
		return fmt.Errorf("usage does not add up: %+v", u)
	}
	held := 0
	for _, s := range w.seqs {
		held += s.Pages()
		if r := w.p.Releasable(s); r > s.Pages() {
			return fmt.Errorf("%d of %d pages are releasable", r, s.Pages())
		}
	}
	if held != st.InUse+st.Shared || w.p.Available() != st.Free+st.Cached {
		return fmt.Errorf("%d pages held by sequences: %+v", held, st)
	}
	return nil
}

// worlds are the configurations that the random tests run.
var worlds = map[string]struct {
	cfg  Config
	tree bool
}{
	"pages":          {Config{Layers: worldLayers(0), PageTokens: 16}, false},
	"tree":           {Config{Layers: worldLayers(0), PageTokens: 16}, true},
	"large pages":    {Config{Layers: worldLayers(0), PageTokens: 48}, true},
	"window":         {Config{Layers: worldLayers(24), PageTokens: 16}, true},
	"window of one":  {Config{Layers: worldLayers(1), PageTokens: 32}, true},
	"window, all":    {Config{Layers: worldLayers(24, 0, 24, 24), PageTokens: 16}, true},
	"two of all":     {Config{Layers: worldLayers(0, 20, 20, 0, 20), PageTokens: 32}, true},
	"windows":        {Config{Layers: worldLayers(24, 40, 24), PageTokens: 16}, true},
	"no tree":        {Config{Layers: worldLayers(24, 0, 17), PageTokens: 16}, false},
	"state":          {Config{Layers: append(worldLayers(0), LayerShape{State: 8}), PageTokens: 16, Checkpoints: 2}, true},
	"states":         {Config{Layers: []LayerShape{{State: 256, Parts: 4}, {State: 8}}, PageTokens: 16, Checkpoints: 1}, true},
	"large state":    {Config{Layers: append(worldLayers(0), LayerShape{State: 512, Parts: 4}), PageTokens: 16}, true},
	"window, state":  {Config{Layers: append(worldLayers(30), LayerShape{State: 104}), PageTokens: 32, Checkpoints: 1}, true},
	"both in one":    {Config{Layers: []LayerShape{{Heads: 1, KDim: 1, VDim: 1, State: 600, Parts: 3}, {State: 8}, {Heads: 1, KDim: 1, VDim: 1, Window: 30, State: 104}}, PageTokens: 16, Checkpoints: 2}, true},
	"all and states": {Config{Layers: append(worldLayers(0, 30, 30, 0), LayerShape{State: 600, Parts: 3}), PageTokens: 16, Checkpoints: 2}, true},
}

// worldLayers returns layers with attention of the given windows.
func worldLayers(windows ...int) []LayerShape {
	var l []LayerShape
	for _, w := range windows {
		l = append(l, LayerShape{Heads: 1, KDim: 1, VDim: 1, Window: w})
	}
	return l
}

// Any order of operations keeps the books and every token.
func TestRandomOperations(t *testing.T) {
	for name, c := range worlds {
		c.cfg.DType = tensor.F16
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w, err := newWorld(c.cfg, c.tree, func(n int) int {
					if n <= 1 {
						return 0
					}
					return rapid.IntRange(0, n-1).Draw(t, "pick")
				})
				if err != nil {
					t.Fatal(err)
				}
				defer w.p.Close()
				for range rapid.IntRange(1, 40).Draw(t, "steps") {
					if err := w.step(); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// The same for long: RIDGE_LONG=1 runs millions of operations.
func TestManyOperations(t *testing.T) {
	steps := 20_000
	if os.Getenv("RIDGE_LONG") != "" {
		steps = 1_000_000
	}
	for name, c := range worlds {
		c.cfg.DType = tensor.F16
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(4) {
				rng := rand.New(rand.NewPCG(seed, 1))
				w, err := newWorld(c.cfg, c.tree, func(n int) int { return rng.IntN(max(n, 1)) })
				if err != nil {
					t.Fatal(err)
				}
				for step := range steps / 4 {
					if err := w.step(); err != nil {
						t.Fatalf("seed %d, step %d: %v", seed, step, err)
					}
				}
				if w.tree != nil && w.tree.Stats().Evicted == 0 {
					t.Fatal("nothing was ever evicted")
				}
				w.p.Close()
			}
		})
	}
}

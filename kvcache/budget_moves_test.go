package kvcache

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ridge/weights/tensor"
)

// tenant is the owner of one pool of a budget: it runs sequences of a known
// length to their ends, admits as the scheduler does, and gives memory back when
// others claim it. What it stores is checked at the end of each sequence.
type tenant struct {
	name  int
	p     *Pool
	tree  *Tree
	rng   *rand.Rand
	wake  chan struct{}
	queue []int // lengths of sequences to run
	run   []*running
	all   int // how many there were
	done  int
	most  int // pages that it had at a time
}

type running struct {
	s      *Seq
	tokens []int32
	length int
}

func newTenant(b *Budget, name int, seed uint64) (*tenant, error) {
	layers := []LayerShape{{Heads: 1 + name, KDim: 4, VDim: 8}} // pages of different sizes
	p, err := New(Config{Layers: layers, PageTokens: 16 << (name % 2), DType: tensor.F16, Budget: b})
	if err != nil {
		return nil, err
	}
	t := &tenant{name: name, p: p, tree: NewTree(p), rng: rand.New(rand.NewPCG(seed, uint64(name))), wake: make(chan struct{}, 1)}
	p.OnClaim(func() {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	})
	return t, nil
}

func (t *tenant) seqs() []*Seq {
	var s []*Seq
	for _, r := range t.run {
		s = append(s, r.s)
	}
	return s
}

// need is what the running sequences take up to their ends.
func (t *tenant) need() int {
	n := 0
	for _, r := range t.run {
		n += t.p.PagesFor(r.s, r.length-len(r.tokens))
	}
	return n
}

// token is what a sequence has at a position: few different ones, so that
// prefixes are shared.
func (t *tenant) token(seq, at int) int32 { return int32(seq%3*1000 + at) }

func (t *tenant) store(r *running, write bool) error {
	from := 0
	if write {
		from = len(r.tokens) - 1
	}
	for at := from; at < len(r.tokens); at++ {
		k, _ := t.p.Tile(0, t.name, r.s, at/TileTokens)
		b := k[2*(at%TileTokens):]
		want := uint16(r.tokens[at]) ^ uint16(t.name<<12)
		if write {
			binary.LittleEndian.PutUint16(b, want)
		} else if got := binary.LittleEndian.Uint16(b); got != want {
			return fmt.Errorf("pool %d: token %d of %d: found %x, want %x", t.name, at, len(r.tokens), got, want)
		}
	}
	return nil
}

// step does one round of the loop and says whether something happened.
func (t *tenant) step() (bool, error) {
	wanted, due := t.p.Claims()
	if len(t.queue) == 0 {
		due = wanted
	}
	if due > 0 {
		t.p.Shrink(due, t.p.Stats().InUse+t.need(), t.seqs())
		if t.rng.IntN(8) == 0 {
			if err := t.p.Check(t.seqs()...); err != nil {
				return false, err
			}
		}
	}
	moved := false
	for len(t.queue) > 0 && len(t.run) < 6 {
		length := t.queue[0]
		if all := t.p.PagesFor(nil, length) + 1 + t.need(); t.p.Reserve(all) < all {
			break
		}
		var tokens []int32
		for i := range length {
			tokens = append(tokens, t.token(len(t.queue), i))
		}
		r := &running{s: t.tree.Match("", tokens[:length-1]), length: length}
		r.tokens = tokens[:r.s.Len()]
		t.run, t.queue, moved = append(t.run, r), t.queue[1:], true
	}
	t.p.Ask()
	t.most = max(t.most, t.p.Stats().Held)
	for i := 0; i < len(t.run); i++ {
		r := t.run[i]
		for range min(1+t.rng.IntN(8), r.length-len(r.tokens)) {
			if err := t.p.Grow(r.s, 1); err != nil {
				return false, fmt.Errorf("pool %d: growth that was admitted: %w", t.name, err)
			}
			r.tokens = r.tokens[:len(r.tokens)+1]
			if err := t.store(r, true); err != nil {
				return false, err
			}
		}
		moved = true
		if len(r.tokens) == r.length {
			if err := t.store(r, false); err != nil {
				return false, err
			}
			t.tree.Insert("", r.tokens, r.s)
			t.p.Free(r.s)
			t.run = slices.Delete(t.run, i, i+1)
			t.done++
			i--
		}
	}
	return moved, nil
}

// budgetRound has several pools under one budget run their loads to the end by
// drive. The budget is never exceeded, every sequence that fits a share comes to
// its end, nothing that is stored is lost by the moves, and in the end each pool
// has its floor only. It returns the pages that were moved and the pools that had
// more than their share at a time.
func budgetRound(t *testing.T, seed uint64, drive func(*testing.T, *Budget, []*tenant)) (moved int64, borrowed int) {
	t.Helper()
	const pools = 3
	b, err := NewBudget(256<<10, pools, false)
	if err != nil {
		t.Fatal(err)
	}
	var tenants []*tenant
	for i := range pools {
		x, err := newTenant(b, i, seed)
		if err != nil {
			t.Fatal(err)
		}
		sure := x.p.Sure() * x.p.PageTokens()
		for range []int{60, 10, 25}[(i+int(seed))%pools] {
			x.queue = append(x.queue, 2+x.rng.IntN(min(sure/(1+x.rng.IntN(8)), 600)-20))
		}
		x.all = len(x.queue)
		tenants = append(tenants, x)
	}
	drive(t, b, tenants)
	for _, x := range tenants {
		if x.done != x.all {
			t.Errorf("seed %d: pool %d: %d of %d sequences have ended, %+v", seed, x.name, x.done, x.all, x.p.Stats())
		}
		moved += x.p.Stats().Moved
		if x.most > x.p.Sure() {
			borrowed++
		}
		x.tree.Clear()
		x.p.Shrink(x.p.Spare(), 0, nil)
		if err := x.p.Check(); err != nil {
			t.Error(err)
		}
		if st := x.p.Stats(); st.Held > x.p.floorChunks()*x.p.Chunk() || st.InUse+st.Cached > 0 {
			t.Errorf("idle pool: %+v", st)
		}
	}
	for _, x := range tenants {
		if err := x.p.Close(); err != nil {
			t.Error(err)
		}
	}
	if st := b.Stats(); st.Used != 0 || st.Pools != 0 || b.asking.Load() != 0 {
		t.Errorf("nobody is left: %+v, %d ask", st, b.asking.Load())
	}
	return moved, borrowed
}

// inTurns drives the tenants from one goroutine, in an order that the seed gives:
// what happens does not depend on the machine.
func inTurns(t *testing.T, b *Budget, tenants []*tenant) {
	rng := rand.New(rand.NewPCG(uint64(tenants[0].all), 1))
	ended := func(x *tenant) bool { return x.done == x.all }
	for idle := 0; slices.ContainsFunc(tenants, func(x *tenant) bool { return !ended(x) }); idle++ {
		ok, err := tenants[rng.IntN(len(tenants))].step()
		if err != nil {
			t.Fatal(err)
		}
		if st := b.Stats(); st.Used > st.Bytes {
			t.Fatalf("%d of %d bytes are used", st.Used, st.Bytes)
		}
		if ok {
			idle = 0
		}
		if idle > 1000 { // budgetRound says who has not ended
			return
		}
	}
}

// atOnce drives each tenant from its own goroutine, as engines do.
func atOnce(t *testing.T, b *Budget, tenants []*tenant) {
	var wg sync.WaitGroup
	var busy atomic.Int32
	busy.Store(int32(len(tenants)))
	start := make(chan struct{})
	for _, x := range tenants {
		wg.Go(func() {
			<-start
			end, ended := time.After(time.Minute), false
			for busy.Load() > 0 { // who has finished still gives to others
				ok, err := x.step()
				if err != nil {
					t.Error(err)
					busy.Store(0)
					return
				}
				if x.done == x.all && !ended {
					ended = true
					busy.Add(-1)
				}
				if st := b.Stats(); st.Used > st.Bytes {
					t.Errorf("%d of %d bytes are used", st.Used, st.Bytes)
				}
				if ok {
					continue
				}
				select {
				case <-x.wake:
				case <-time.After(5 * time.Millisecond):
				case <-end:
					busy.Store(0)
					return
				}
			}
		})
	}
	close(start)
	wg.Wait()
}

func budgetRounds() uint64 {
	if os.Getenv("RIDGE_LONG") != "" {
		return 200
	}
	return 8
}

// Memory moves between pools whose steps come in any order.
func TestBudgetMoves(t *testing.T) {
	moved, borrowed := int64(0), 0
	for seed := range budgetRounds() {
		m, b := budgetRound(t, seed, inTurns)
		moved, borrowed = moved+m, borrowed+b
	}
	t.Logf("%d pages moved, %d pools had more than their share", moved, borrowed)
	if moved == 0 || borrowed == 0 {
		t.Errorf("%d pages moved, %d pools had more than their share: the test does not test", moved, borrowed)
	}
}

// The same with all pools at work at once. How much moves is the machine's affair:
// a fast one ends a pool's load before the next one asks.
func TestBudgetMovesAtOnce(t *testing.T) {
	for seed := range budgetRounds() {
		moved, borrowed := budgetRound(t, seed, atOnce)
		t.Logf("seed %d: %d pages moved, %d pools had more than their share", seed, moved, borrowed)
	}
}

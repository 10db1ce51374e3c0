package model

import (
	"math"
	"slices"

	"ridge/internal/arena"
	"ridge/internal/packfile"
	"ridge/kernel"
	"ridge/nn"
)

// expertCache has experts of mixtures in memory whose weights lie in a file: as
// many as there is room for, those that were chosen most. The others are read,
// several at a time and past the system's cache, when they are chosen. Experts of
// equal size share slots of memory.
type expertCache struct {
	r      *fileReaders
	file   *packfile.File
	kinds  []expertKind
	layers [][]cachedExpert
	loads  []*nn.Load // of the layers
	mem    []*arena.Arena

	total              int64 // bytes that all experts would take
	turn               int64 // counts fetches
	calls              []int // of each layer
	found, read, bytes int64 // experts that were there, and that were read; bytes of these
}

// expertKind are the experts of one size.
type expertKind struct {
	size  int64
	slots []expertSlot
}

type expertSlot struct {
	mem    []byte
	holder *cachedExpert // nil: none
	turn   int64         // of the fetch that used it last
}

// cachedExpert is an expert and where it is.
type cachedExpert struct {
	kind  int
	parts []expertPart
	slot  *expertSlot // nil: it lies in the file alone
	// worth is the logarithm of how often the expert was chosen, of which half
	// counts no more after halfLife calls of its layer, plus the calls in half-lives:
	// so the worths of all experts can be compared without aging them.
	worth float64
}

// expertPart is a matrix of an expert.
type expertPart struct {
	w     *kernel.Packed
	index int // in the file
}

const (
	// halfLife is in calls of a layer: some answers' tokens.
	halfLife = 256
)

// newExpertCache gives the experts of net that lie in file at most room bytes. It
// returns nil if there are none, or no room for any.
func newExpertCache(net *Net, file *packfile.File, place map[*kernel.Packed]int, room int64) *expertCache {
	c := &expertCache{file: file, r: newFileReaders(file)}
	kinds := map[int64]int{}
	counts := []int64{}
	for i := range net.Layers {
		x := net.Layers[i].mixture()
		if x == nil {
			continue
		}
		experts := make([]cachedExpert, len(x.Experts))
		for e := range x.Experts {
			size := int64(0)
			for _, l := range [3]*nn.Linear{&x.Experts[e].Gate, &x.Experts[e].Up, &x.Experts[e].Down} {
				if at, ok := place[l.W]; ok && l.W != nil {
					experts[e].parts = append(experts[e].parts, expertPart{l.W, at})
				}
			}
			// The large ones first, whose places in a slot are multiples of a page.
			slices.SortStableFunc(experts[e].parts, func(a, b expertPart) int { return c.r.from.Room(b.index) - c.r.from.Room(a.index) })
			for _, p := range experts[e].parts {
				size += int64(c.r.from.Room(p.index))
			}
			if size > filePage {
				size = pages(size)
			}
			k, ok := kinds[size]
			if !ok {
				k = len(c.kinds)
				kinds[size], c.kinds, counts = k, append(c.kinds, expertKind{size: size}), append(counts, 0)
			}
			experts[e].kind = k
			counts[k]++
			c.total += size
		}
		for e := range experts {
			experts[e].worth = math.Inf(-1)
		}
		c.layers, c.loads, c.calls = append(c.layers, experts), append(c.loads, x.Load()), append(c.calls, 0)
		layer := len(c.layers) - 1
		x.Fetch = func(chosen []int) { c.fetch(layer, chosen) }
	}
	if c.total == 0 || !c.reserve(counts, room) {
		c.close()
		for i := range net.Layers {
			if x := net.Layers[i].mixture(); x != nil {
				x.Fetch = nil
			}
		}
		return nil
	}
	c.r.start()
	return c
}

// reserve divides room among the kinds by what their experts take.
func (c *expertCache) reserve(counts []int64, room int64) bool {
	any := false
	for k := range c.kinds {
		kind := &c.kinds[k]
		all := counts[k] * kind.size
		n := min(counts[k], int64(float64(room)*float64(all)/float64(c.total))/max(kind.size, 1))
		if n == 0 {
			continue
		}
		mem, err := arena.New(int(n * kind.size))
		if err != nil {
			continue
		}
		c.mem, any = append(c.mem, mem), true
		for i := range n {
			kind.slots = append(kind.slots, expertSlot{mem: mem.Bytes()[i*kind.size : (i+1)*kind.size]})
		}
	}
	return any
}

// bytesKept returns the bytes of all slots.
func (c *expertCache) bytesKept() (sum int64) {
	for k := range c.kinds {
		sum += c.kinds[k].size * int64(len(c.kinds[k].slots))
	}
	return sum
}

// fetch brings experts of a layer into memory. Those for which there is no room
// beside others of the same step are read where the file is mapped.
func (c *expertCache) fetch(layer int, chosen []int) {
	experts := c.layers[layer]
	c.turn++
	c.calls[layer]++
	now := float64(c.calls[layer]) / halfLife
	missing := 0
	for _, e := range chosen {
		x := &experts[e]
		x.worth = math.Log2(math.Exp2(x.worth-now)+1) + now
		if x.slot != nil {
			x.slot.turn = c.turn
			c.found++
		} else {
			missing++
		}
	}
	if missing == 0 {
		return
	}
	for _, e := range chosen {
		if x := &experts[e]; x.slot == nil {
			c.read++
			c.loads[layer].Fetched++
			c.bring(x)
		}
	}
	c.r.wait.Wait()
}

// bring gives x the slot of the expert that is worth least and has its matrices
// read into it.
func (c *expertCache) bring(x *cachedExpert) {
	var slot *expertSlot
	least := math.Inf(1)
	slots := c.kinds[x.kind].slots
	for i := range slots {
		s := &slots[i]
		if s.holder == nil {
			slot = s
			break
		}
		if s.turn != c.turn && s.holder.worth < least {
			slot, least = s, s.holder.worth
		}
	}
	for _, p := range x.parts {
		c.bytes += int64(p.w.Size())
	}
	if slot == nil {
		return
	}
	if old := slot.holder; old != nil {
		old.slot = nil
		for _, p := range old.parts {
			p.w.Data = c.file.Bytes(p.index)
		}
	}
	slot.holder, slot.turn, x.slot = x, c.turn, slot
	at := 0
	for _, p := range x.parts {
		buf := slot.mem[at : at+c.r.from.Room(p.index)]
		at += len(buf)
		p.w.Data = c.r.from.Place(p.index, buf)
		c.r.read(p.index, buf)
	}
}

// close ends the readers and gives the memory back.
func (c *expertCache) close() {
	if c == nil {
		return
	}
	c.r.close()
	for _, mem := range c.mem {
		mem.Free()
	}
}

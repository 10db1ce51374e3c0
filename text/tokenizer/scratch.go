package tokenizer

import (
	"encoding/binary"
	"math/bits"
	"sync"
	"unsafe"
)

// scratch is the memory that one call of Encode works in. Calls take one from
// a pool and give it back, so that nothing is allocated in the long run.
type scratch struct {
	out    []int32 // the ids of the call so far
	syms   []span
	link   []linkage
	heap   []uint64
	kept   []span    // of a window, see mergeWindows
	joint  []span    // two tokens of it
	lens   []uint16  // of the last token of the best way to each place, see unigram
	scores []float64 // of those ways
	most   int       // ids that the call's text may become, about
	key    []byte    // a key that is looked up
	norm   [2][]byte // normalized text: normalizers write one and read the other
	piece  []byte    // a piece as the model wants it
	levels []levelScratch
	cache  []cacheEntry
}

// levelScratch is the memory of one pre-tokenizer stage.
type levelScratch struct {
	parts []part
	text  []byte
}

func (sc *scratch) level(i int) *levelScratch { return &sc.levels[i] }

// cacheEntry remembers the ids of one piece. It fills one cache line.
type cacheEntry struct {
	ids [cacheIDs]int32
	n   uint8 // ids; 0: the entry is empty
	len uint8 // of key
	key [cacheKey]byte
}

const (
	cacheIDs  = 8
	cacheKey  = 30
	cacheBits = 13 // 8192 entries, 512 KiB
)

// slot returns the place of a piece of 1 to cacheKey bytes.
func (sc *scratch) slot(s string) *cacheEntry {
	// Mixing words of the text, which overlap where it is short.
	var a, b uint64
	p := unsafe.Slice(unsafe.StringData(s), len(s))
	switch n := len(p); {
	case n >= 8:
		a, b = binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[n-8:])
		if n > 16 {
			a ^= bits.RotateLeft64(binary.LittleEndian.Uint64(p[8:]), 23)
			b ^= bits.RotateLeft64(binary.LittleEndian.Uint64(p[n-16:]), 41)
		}
	case n >= 4:
		a, b = uint64(binary.LittleEndian.Uint32(p)), uint64(binary.LittleEndian.Uint32(p[n-4:]))
	default:
		a, b = uint64(p[0]), uint64(p[n/2])<<8|uint64(p[n-1])
	}
	hi, lo := bits.Mul64(a^0x9E3779B97F4A7C15^uint64(len(s))<<56, b^0xD6E8FEB86659FD93)
	h := (hi ^ lo) * 0xC2B2AE3D27D4EB4F
	return &sc.cache[h>>(64-cacheBits)]
}

// begin returns dst with room for about n ids.
func (sc *scratch) begin(dst []int32, n int) []int32 {
	if cap(dst)-len(dst) >= n {
		return dst
	}
	return append(make([]int32, 0, len(dst)+n+cacheIDs), dst...)
}

// room returns dst with room for n more ids. It grows in few steps, because the
// old and the new memory are held together: to what all of the text can become,
// or to twice what it had where that is not enough.
func (sc *scratch) room(dst []int32, n int) []int32 {
	if len(dst)+n <= cap(dst) {
		return dst
	}
	more := sc.most - len(dst)
	if more < n {
		more = max(n, cap(dst))
	}
	out := make([]int32, len(dst), len(dst)+more)
	copy(out, dst)
	return out
}

// encodePiece appends the ids of a piece to sc.out: what the model says, or
// what it said before.
func (t *Tokenizer) encodePiece(sc *scratch, piece string) {
	n := len(piece)
	if len(sc.out)+cacheIDs > cap(sc.out) {
		sc.out = sc.room(sc.out, cacheIDs)
	}
	if n == 1 {
		if id := t.single[piece[0]]; id >= 0 {
			sc.out = append(sc.out, id)
			return
		}
	}
	if n > cacheKey {
		for n > maxPiece {
			// Positions are 32 bits wide; no real text has such a piece.
			sc.out = t.model.encode(sc, sc.out, piece[:maxPiece])
			piece = piece[maxPiece:]
			n = len(piece)
		}
		sc.out = t.model.encode(sc, sc.out, piece)
		return
	}
	e := sc.slot(piece)
	if e.n > 0 && string(e.key[:e.len]) == piece {
		if e.n == 1 {
			sc.out = append(sc.out, e.ids[0])
			return
		}
		sc.out = append(sc.out, e.ids[:e.n]...)
		return
	}
	old := len(sc.out)
	sc.out = t.model.encode(sc, sc.out, piece)
	e.remember(piece, sc.out[old:])
}

// remember stores the ids of a piece that is at most cacheKey bytes long.
func (e *cacheEntry) remember(piece string, ids []int32) {
	if len(ids) == 0 || len(ids) > cacheIDs {
		return
	}
	e.n = uint8(copy(e.ids[:], ids))
	e.len = uint8(copy(e.key[:], piece))
}

// maxPiece is the length in bytes beyond which pieces are cut.
const maxPiece = 1 << 30

// scratchPool keeps the scratch memory of calls that are over. It is not a
// sync.Pool: the word caches are worth more than a collection cycle.
type scratchPool struct {
	mu   sync.Mutex
	free []*scratch
}

// Bounds of what the pool keeps: calls that run at the same time, and the
// memory of one of them, which a single long text may have made large.
const (
	poolSize   = 16
	poolMemory = 8 << 20
)

func (p *scratchPool) get(levels int) *scratch {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		sc := p.free[n-1]
		p.free = p.free[:n-1]
		return sc
	}
	return &scratch{
		cache:  make([]cacheEntry, 1<<cacheBits),
		levels: make([]levelScratch, levels),
	}
}

func (p *scratchPool) put(sc *scratch) {
	sc.out = nil
	if sc.memory() > poolMemory {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) < poolSize {
		p.free = append(p.free, sc)
	}
}

// memory is about how many bytes sc holds, its cache apart.
func (sc *scratch) memory() int {
	n := (cap(sc.syms)+cap(sc.kept)+cap(sc.joint))*12 + cap(sc.link)*16 + cap(sc.heap)*8 + cap(sc.lens)*2 + cap(sc.scores)*8 +
		cap(sc.norm[0]) + cap(sc.norm[1]) + cap(sc.piece) + cap(sc.key)
	for _, l := range sc.levels {
		n += cap(l.parts)*24 + cap(l.text)
	}
	return n
}

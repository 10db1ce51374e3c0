package spec

import "sync/atomic"

// Recycling guesses what the model itself held likely behind a token when it came by it
// last, in whatever text of the tenant: the best tokens of each row of logits are kept,
// also of rows whose guesses were wrong, and a tree is read off them place by place
// ("Turning Trash into Treasure", Luo et al. 2024, arXiv 2408.08696). Texts of one
// tenant are never looked up for another. Its drafters must be used by one goroutine,
// but for Observe.
type Recycling struct {
	vocab   int
	tenants map[string]*adjacency
	clock   int64
}

// Bounds of what a Recycling keeps.
const (
	ranks         = 8  // tokens behind each token
	mostAdjacency = 16 // tenants
)

// adjacency is what came to be likely behind each token of a tenant's texts.
type adjacency struct {
	next []atomic.Int64 // [vocabulary][ranks/2], two tokens each and each plus 1
	used int64
}

// NewRecycling returns drafters for a vocabulary of so many tokens.
func NewRecycling(vocab int) *Recycling {
	return &Recycling{vocab: vocab, tenants: map[string]*adjacency{}}
}

// Drafter returns the drafter of a sequence of a tenant. The tenant that was not there for
// longest makes room for another.
func (x *Recycling) Drafter(tenant string) Drafter {
	x.clock++
	a := x.tenants[tenant]
	if a == nil {
		if len(x.tenants) == mostAdjacency {
			oldest := ""
			for name, t := range x.tenants {
				if o := x.tenants[oldest]; o == nil || t.used < o.used {
					oldest = name
				}
			}
			delete(x.tenants, oldest)
		}
		a = &adjacency{next: make([]atomic.Int64, x.vocab*ranks/2)}
		x.tenants[tenant] = a
	}
	a.used = x.clock
	return &recycledSeq{a: a, vocab: x.vocab}
}

// Bytes returns the memory of all tenants' tables.
func (x *Recycling) Bytes() int64 { return int64(len(x.tenants)) * int64(x.vocab) * ranks * 4 }

// recycledSeq is the drafter of a sequence.
type recycledSeq struct {
	a     *adjacency
	vocab int
}

// row writes what is likely behind a token to dst.
func (q *recycledSeq) row(dst *[ranks]int32, token int32) (n int) {
	if token < 0 || int(token) >= q.vocab {
		return 0
	}
	for i := range ranks / 2 {
		v := q.a.next[int(token)*ranks/2+i].Load()
		for _, id := range [2]int32{int32(v), int32(v >> 32)} {
			if id == 0 {
				return n
			}
			dst[n] = id - 1
			n++
		}
	}
	return n
}

// Observe keeps the likeliest tokens behind one.
func (q *recycledSeq) Observe(_, _ int, token int32, logits []float32) {
	if token < 0 || int(token) >= q.vocab {
		return
	}
	var best [ranks]int32
	n := largest(best[:], logits)
	for i := range best {
		if best[i]++; i >= n {
			best[i] = 0
		}
	}
	for i := range ranks / 2 {
		q.a.next[int(token)*ranks/2+i].Store(int64(best[2*i]) | int64(best[2*i+1])<<32)
	}
}

// surest are the classes of the places in a row.
var surest = [ranks]uint8{6, 4, 3, 2, 2, 1, 1, 1}

// Draft appends a tree: behind each guess, place by place, what was likely behind its
// token, the fewer the less likely the guess itself is. What is cut off are the guesses
// that come last.
func (q *recycledSeq) Draft(dst []Guess, tokens []int32, n int) []Guess {
	if len(tokens) == 0 || len(dst) > 0 {
		return dst
	}
	var row [ranks]int32
	var rank, depth [MaxRows]int // sums of the places in rows up to a guess
	for from := -1; from < len(dst); from++ {
		token, taken, deep := tokens[len(tokens)-1], 0, 0
		if from >= 0 {
			token, taken, deep = dst[from].Token, rank[from], depth[from]
		}
		if deep >= n {
			continue
		}
		for i, id := range row[:q.row(&row, token)] {
			if 2*(taken+i)+deep >= ranks || len(dst) == MaxRows {
				break
			}
			rank[len(dst)], depth[len(dst)] = taken+i, deep+1
			dst = append(dst, Guess{Token: id, Class: recycled + surest[i], Up: uint8(len(dst) - 1 - from)})
		}
	}
	return dst
}

// Bytes returns nothing: the table is the tenant's.
func (q *recycledSeq) Bytes() int64 { return 0 }

// Close does nothing.
func (q *recycledSeq) Close() {}

package spec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sort"
)

// Datastore is a text of tokens with the order of its suffixes, in which what came
// after a piece is found at once (REST: He et al., "REST: Retrieval-Based Speculative
// Decoding", 2024). It takes 8 bytes for each token, and may lie in a file.
type Datastore struct {
	tokens, order []byte // int32, little-endian
	n             int
}

// Bounds of a Datastore.
const (
	mostStored = 1 << 28 // tokens
	sorted     = 32      // tokens of a suffix by which it is ordered
	mostRuns   = 64      // continuations of a piece that are counted
)

const (
	storeMagic  = "ridgeSPC"
	storeHeader = 32 // magic, version, zeros, vocabulary, tokens
)

// BuildDatastore writes the datastore of some texts of tokens. vocabulary is a number
// that tells the vocabulary from others.
func BuildDatastore(w io.Writer, texts [][]int32, vocabulary uint64) error {
	var all []int32
	for _, text := range texts {
		all = append(append(all, text...), separator)
	}
	if len(all) > mostStored {
		return fmt.Errorf("spec: datastore: expected at most %d tokens, found %d", mostStored, len(all))
	}
	order := make([]int32, len(all))
	for i := range order {
		order[i] = int32(i)
	}
	suffix := func(at int32) []int32 { return all[at:min(int(at)+sorted, len(all))] }
	slices.SortFunc(order, func(a, b int32) int {
		if c := slices.Compare(suffix(a), suffix(b)); c != 0 {
			return c
		}
		return int(a) - int(b)
	})
	head := make([]byte, storeHeader)
	copy(head, storeMagic)
	binary.LittleEndian.PutUint32(head[8:], 1)
	binary.LittleEndian.PutUint64(head[16:], vocabulary)
	binary.LittleEndian.PutUint64(head[24:], uint64(len(all)))
	for _, part := range []any{head, all, order} {
		if err := binary.Write(w, binary.LittleEndian, part); err != nil {
			return fmt.Errorf("spec: datastore: %w", err)
		}
	}
	return nil
}

// ReadDatastore returns the datastore that b is, which must not change. Whatever lies
// in b, drafters of it do nothing but guess.
func ReadDatastore(b []byte, vocabulary uint64) (*Datastore, error) {
	if len(b) < storeHeader || !bytes.HasPrefix(b, []byte(storeMagic)) {
		return nil, fmt.Errorf("spec: datastore: expected a file that ridge spec build has written, found another")
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != 1 {
		return nil, fmt.Errorf("spec: datastore: expected version 1, found %d", v)
	}
	if v := binary.LittleEndian.Uint64(b[16:]); v != vocabulary {
		return nil, fmt.Errorf("spec: datastore: expected tokens of the model's vocabulary, found those of another")
	}
	n := binary.LittleEndian.Uint64(b[24:])
	if n > mostStored || len(b) != storeHeader+8*int(n) {
		return nil, fmt.Errorf("spec: datastore: expected %d tokens in %d bytes, found %d bytes", n, storeHeader+8*n, len(b))
	}
	return &Datastore{b[storeHeader:][:4*n], b[storeHeader+4*n:], int(n)}, nil
}

// Len returns the number of tokens.
func (d *Datastore) Len() int { return d.n }

// Drafter returns the drafter of a sequence.
func (d *Datastore) Drafter(string) Drafter { return &storeSeq{d} }

func number(b []byte, i int) int32 { return int32(binary.LittleEndian.Uint32(b[4*i:])) }

// at returns the token that is so many behind the beginning of the suffix at a place
// in the order, below all others where there is none.
func (d *Datastore) at(place, depth int) int32 {
	if start := number(d.order, place); start >= 0 && int(start)+depth < d.n {
		return number(d.tokens, int(start)+depth)
	}
	return separator - 1
}

// narrow returns the part of the suffixes from lo to hi, which begin alike, that go on
// with a token.
func (d *Datastore) narrow(lo, hi, depth int, token int32) (int, int) {
	from := lo + sort.Search(hi-lo, func(i int) bool { return d.at(lo+i, depth) >= token })
	return from, d.end(from, hi, depth, token)
}

// end returns where suffixes from lo on stop going on with a token.
func (d *Datastore) end(lo, hi, depth int, token int32) int {
	return lo + sort.Search(hi-lo, func(i int) bool { return d.at(lo+i, depth) > token })
}

// often returns the token that suffixes from lo to hi go on with most often, and where
// those lie. Of many kinds only the first are counted.
func (d *Datastore) often(lo, hi, depth int) (token int32, from, to int) {
	token = separator
	for at, runs := lo, 0; at < hi && runs < mostRuns; runs++ {
		next := d.at(at, depth)
		end := max(d.end(at, hi, depth, next), at+1)
		if next >= 0 && end-at > to-from {
			token, from, to = next, at, end
		}
		at = end
	}
	return token, from, to
}

// storeSeq is the drafter of a sequence.
type storeSeq struct{ d *Datastore }

// Draft goes on as texts most often do behind the longest piece that is like the end.
func (q *storeSeq) Draft(dst []Guess, tokens []int32, n int) []Guess {
	const longest, least = 16, 2
	if len(dst) > 0 {
		return dst
	}
	for long := min(longest, len(tokens)); long >= least; long-- {
		lo, hi := 0, q.d.n
		for i, id := range tokens[len(tokens)-long:] {
			if lo, hi = q.d.narrow(lo, hi, i, id); lo == hi {
				break
			}
		}
		if lo == hi {
			continue
		}
		for depth := long; len(dst) < n && depth < sorted; depth++ {
			token, from, to := q.d.often(lo, hi, depth)
			if from == to {
				break
			}
			sure := uint8((half/2 - 1) * (to - from) / (hi - lo))
			if long > half/2 {
				sure += half / 2
			}
			dst = append(dst, Guess{Token: token, Class: datastores + sure})
			lo, hi = from, to
		}
		return dst
	}
	return dst
}

// Bytes returns 0: a sequence holds nothing.
func (q *storeSeq) Bytes() int64 { return 0 }

// Close does nothing.
func (q *storeSeq) Close() {}

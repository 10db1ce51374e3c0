package kvcache

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
)

// errOther is returned for a sequence that is not the one of the parts before.
var errOther = errors.New("kvcache: snapshot: the sequence has not what the parts before were made of")

// Parts writes a snapshot in parts. Between two of them nothing holds the
// sequence: each part may be made of another one with the same tokens, which has
// the same keys and values.
type Parts struct {
	pool  *Pool
	n     int
	first []int // first tiles of layers
	meta  []byte
	tile  int // next one; -1: the header
	done  bool
	out   snapshotWriter
	last  []byte
}

// Parts returns the writer of a snapshot of s in parts, see [Pool.Snapshot].
func (p *Pool) Parts(s *Seq, meta []byte) (*Parts, error) {
	if len(meta) > MaxMeta {
		return nil, fmt.Errorf("kvcache: snapshot: description: expected at most %d bytes, found %d", MaxMeta, len(meta))
	}
	return &Parts{pool: p, n: s.n, first: p.firstTiles(s), meta: meta, tile: -1, last: make([]byte, p.largestTile)}, nil
}

func (p *Pool) firstTiles(s *Seq) []int {
	first := make([]int, len(p.layers))
	for i := range first {
		first[i] = p.firstTile(s, i)
	}
	return first
}

// Write writes the next part of s, of at least the given number of bytes if there
// are as many, and says whether it was the last one. An error is that of w, or
// says that s is another sequence than that of the parts before.
func (c *Parts) Write(w io.Writer, s *Seq, bytes int) (done bool, err error) {
	if s.n != c.n || !slices.Equal(c.first, c.pool.firstTiles(s)) {
		return false, errOther
	}
	buf, own := w.(*bufio.Writer)
	if !own {
		buf = bufio.NewWriterSize(w, 64<<10)
	}
	c.out.w, c.out.bytes = buf, 0
	if c.tile < 0 {
		c.header()
	}
	for tiles := (c.n + TileTokens - 1) / TileTokens; c.out.bytes < bytes && c.tile < tiles && c.out.err == nil; c.tile++ {
		c.writeTile(s)
		if c.tile == tiles-1 {
			c.done = true
		}
	}
	if c.done = c.done || c.n == 0; c.done {
		c.pool.eachState(s, c.out.write)
		c.out.number(uint64(c.out.sum))
		c.out.write([]byte(snapshotEnd))
	}
	if c.out.err == nil && !own {
		c.out.err = buf.Flush()
	}
	if c.out.err != nil {
		return false, fmt.Errorf("kvcache: snapshot: %w", c.out.err)
	}
	return c.done, nil
}

func (c *Parts) header() {
	c.out.write(append([]byte(snapshotMagic), snapshotVersion))
	for _, x := range c.pool.shape(snapshotVersion) {
		c.out.number32(x)
	}
	c.out.number(uint64(c.n))
	c.out.number(uint64(len(c.meta)))
	for _, x := range c.first {
		c.out.number32(uint32(x))
	}
	c.out.write(c.meta)
	c.tile = 0
}

// writeTile writes the next tile of all layers.
func (c *Parts) writeTile(s *Seq) {
	c.pool.tiles(s, c.tile, func(k, v []byte, l LayerShape) {
		if slot := c.n - c.tile*TileTokens; slot < TileTokens {
			// What others have written behind the last token is no
			// part of s.
			both := c.last[:len(k)+len(v)]
			copy(both, k)
			copy(both[len(k):], v)
			k, v = both[:len(k)], both[len(k):]
			clearTile(k, v, slot, l, c.pool.cfg.DType)
		}
		c.out.write(k)
		c.out.write(v)
	})
}

// VerifySnapshot reads a snapshot to its end and says whether it is whole. It
// needs no pool, and tells nothing of what is in it.
func VerifySnapshot(r io.Reader) error {
	const trailer = 8 + len(snapshotEnd)
	buf, held, sum, begun := make([]byte, 1<<20), 0, uint32(0), false
	for {
		n, err := io.ReadFull(r, buf[held:])
		n += held
		if !begun && (n < len(snapshotMagic) || string(buf[:len(snapshotMagic)]) != snapshotMagic) {
			return fmt.Errorf("%w: it does not start as one", ErrSnapshot)
		}
		begun = true
		if n < trailer {
			return fmt.Errorf("%w: it ends in its header", ErrSnapshot)
		}
		body := n - trailer
		sum = crc32.Update(sum, castagnoli, buf[:body])
		held = copy(buf, buf[body:n])
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		}
		if err != nil {
			return fmt.Errorf("kvcache: snapshot: %w", err)
		}
	}
	if end := string(buf[8:trailer]); end != snapshotEnd {
		return fmt.Errorf("%w: end: expected %q, found %q", ErrSnapshot, snapshotEnd, end)
	}
	if got := binary.LittleEndian.Uint64(buf); got != uint64(sum) {
		return fmt.Errorf("%w: checksum: expected %08x, found %08x", ErrSnapshot, sum, got)
	}
	return nil
}

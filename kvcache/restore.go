package kvcache

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strings"
)

// Restore reads a snapshot and returns a new sequence with its contents, and
// the description. It must have been made for the same shape of model and
// element type, and have at most limit tokens, the context of the model; windows
// may differ as long as it has what is in those of this pool. It takes pages as it
// reads, so a file that promises more than it has takes no more than it has; on
// an error it gives all of them back. The error is ErrSnapshot for bad contents,
// and ErrNoPages if the pool is full. It may read more of r than the snapshot.
func (p *Pool) Restore(r io.Reader, limit int) (s *Seq, meta []byte, err error) {
	c := p.Restoration(r, limit)
	if _, err := c.Next(math.MaxInt); err != nil {
		return nil, nil, err
	}
	return c.s, c.meta, nil
}

// Restoration reads a snapshot in parts, between which the pool may be used. It holds
// the pages that it has filled.
type Restoration struct {
	pool          *Pool
	in            *snapshotReader
	limit         int
	s             *Seq
	version       byte
	tokens, tile  int // tile is the next one; -1: the header
	first, starts []int
	waste         []byte // for what this pool does not keep
	meta          []byte
}

// Restoration returns the reader of a snapshot in parts, see [Pool.Restore]. Either
// Next is called until it is done or fails, or Abort.
func (p *Pool) Restoration(r io.Reader, limit int) *Restoration {
	return &Restoration{pool: p, in: &snapshotReader{r: bufio.NewReaderSize(r, 64<<10)}, limit: limit, s: p.NewSeq(), tile: -1}
}

// Seq returns the sequence, which is the caller's, and the description, once Next was
// done.
func (c *Restoration) Seq() (s *Seq, meta []byte) { return c.s, c.meta }

// Abort gives back what was read so far.
func (c *Restoration) Abort() { c.pool.Free(c.s) }

// Next reads the next part, of at least the given number of bytes if there are as
// many, and says whether it was the last one. After an error nothing is held.
func (c *Restoration) Next(bytes int) (done bool, err error) {
	defer func() {
		if err != nil {
			c.Abort()
		}
	}()
	p, in := c.pool, c.in
	if c.tile < 0 {
		if c.version, err = in.header(p); err != nil {
			return false, err
		}
		if c.tokens, c.first, c.meta, err = in.extent(c.version, p, c.limit); err != nil {
			return false, err
		}
		c.begin()
	}
	for in.bytesRead = 0; c.tile*TileTokens < c.tokens; c.tile++ {
		if in.bytesRead >= bytes {
			return false, nil
		}
		if err := c.readTile(); err != nil {
			return false, err
		}
	}
	return true, c.end()
}

// end reads what is behind the keys and values.
func (c *Restoration) end() error {
	p, in, s := c.pool, c.in, c.s
	for g := range c.starts {
		// Of a window of one token nothing is left where a page goes on.
		if err := p.restoreRoom(&s.tables[g], c.tokens); err != nil {
			return err
		}
	}
	s.n = c.tokens
	if c.tokens > 0 && p.statePages > 0 {
		if err := p.room(p.statePages); err != nil {
			return err
		}
		p.ownState(s)
		p.eachState(s, in.read)
	}
	sum := in.sum
	if got := in.number(); in.err == nil && got != uint64(sum) {
		return fmt.Errorf("%w: checksum: expected %08x, found %08x", ErrSnapshot, sum, got)
	}
	if end := string(in.bytes(len(snapshotEnd))); in.err == nil && end != snapshotEnd {
		return fmt.Errorf("%w: end: expected %q, found %q", ErrSnapshot, snapshotEnd, end)
	}
	if in.err != nil {
		return in.fail("end")
	}
	return nil
}

// extent reads how many tokens there are, the first tile of each layer, and the
// description.
func (in *snapshotReader) extent(version byte, p *Pool, limit int) (tokens int, first []int, meta []byte, err error) {
	n, all := in.number(), uint64(0)
	if version == 1 {
		all = in.number()
	}
	size := in.number()
	switch {
	case in.err != nil:
		return 0, nil, nil, in.fail("header")
	case n > uint64(max(limit, 0)):
		return 0, nil, nil, fmt.Errorf("%w: tokens: expected at most %d, found %d", ErrSnapshot, limit, n)
	case all > n || all%TileTokens != 0:
		return 0, nil, nil, fmt.Errorf("%w: tokens %d to %d", ErrSnapshot, all, n)
	case size > MaxMeta:
		return 0, nil, nil, fmt.Errorf("%w: description: expected at most %d bytes, found %d", ErrSnapshot, MaxMeta, size)
	}
	tokens, first = int(n), make([]int, len(p.layers))
	for i := range first {
		first[i] = int(all) / TileTokens
		if version > 1 {
			first[i] = int(in.number32())
		}
		if in.err != nil {
			return 0, nil, nil, in.fail("header")
		}
		switch g := p.layers[i].group; {
		case g < 0 && (first[i] == 0 || version == 1):
			first[i] = 0
		case g < 0 || first[i]*TileTokens > p.since(g, tokens):
			return 0, nil, nil, fmt.Errorf("%w: layer %d: tokens %d to %d are not all that it sees", ErrSnapshot, i, first[i]*TileTokens, tokens)
		}
	}
	if meta = in.bytes(int(size)); in.err != nil {
		return 0, nil, nil, in.fail("description")
	}
	return tokens, first, meta, nil
}

// begin sets up the tables for what the snapshot has, as far as it is kept.
func (c *Restoration) begin() {
	p := c.pool
	c.starts = make([]int, len(p.groups)) // the first tiles that groups get
	for g := range c.starts {
		c.starts[g] = p.since(g, max(c.tokens-TileTokens, 0)) / TileTokens
		for _, i := range p.groups[g].layers {
			c.starts[g] = max(c.starts[g], c.first[i])
		}
		t := &c.s.tables[g]
		t.first = c.starts[g] * TileTokens
		t.skip(t.gone(p.cfg.PageTokens))
	}
	c.tile, c.waste = (c.tokens+TileTokens-1)/TileTokens, make([]byte, p.largestTile)
	for i, pl := range p.layers {
		if pl.group >= 0 {
			c.tile = min(c.tile, c.first[i])
		}
	}
}

// readTile reads the keys and values of the next tile, of all layers.
func (c *Restoration) readTile() error {
	p, in := c.pool, c.in
	end := min((c.tile+1)*TileTokens, c.tokens)
	for g, start := range c.starts {
		if c.tile < start {
			continue
		}
		if err := p.restoreRoom(&c.s.tables[g], end); err != nil {
			return err
		}
	}
	for i, l := range p.cfg.Layers {
		g := p.layers[i].group
		if g < 0 || c.tile < c.first[i] {
			continue
		}
		kBytes, vBytes := TileBytes(l.KDim, p.cfg.DType), TileBytes(l.VDim, p.cfg.DType)
		for h := range l.Heads {
			k, v := c.waste[:kBytes], c.waste[kBytes:][:vBytes]
			if c.tile >= c.starts[g] {
				k, v = p.Tile(i, h, c.s, c.tile)
			}
			in.read(k[:kBytes])
			in.read(v[:vBytes])
		}
	}
	if in.err != nil {
		return in.fail(fmt.Sprintf("tokens from %d on", c.tile*TileTokens))
	}
	return nil
}

// restoreRoom makes room in t for the tokens before end, of which there may be
// one page more than it has.
func (p *Pool) restoreRoom(t *table, end int) error {
	if len(t.pages) < p.pagesOf(end) {
		if err := p.room(1); err != nil {
			return err
		}
		p.push(t, p.take())
	}
	if len(t.held(p.cfg.PageTokens)) > 0 {
		p.setFill(t.pages[len(t.pages)-1], end-(len(t.pages)-1)*p.cfg.PageTokens)
	}
	return nil
}

// snapshotReader reads and sums; the first error stays.
type snapshotReader struct {
	r         *bufio.Reader
	sum       uint32
	bytesRead int // of the part at hand
	err       error
}

func (in *snapshotReader) read(b []byte) {
	if in.err == nil {
		_, in.err = io.ReadFull(in.r, b)
		in.sum = crc32.Update(in.sum, castagnoli, b)
		in.bytesRead += len(b)
	}
}

func (in *snapshotReader) number() uint64 {
	var b [8]byte
	in.read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

func (in *snapshotReader) number32() uint32 {
	var b [4]byte
	in.read(b[:])
	return binary.LittleEndian.Uint32(b[:])
}

// bytes reads n bytes; what it allocates follows what is there.
func (in *snapshotReader) bytes(n int) []byte {
	var buf bytes.Buffer
	if in.err == nil {
		var got int64
		got, in.err = io.CopyN(&buf, in.r, int64(n))
		if in.err == io.EOF && got > 0 {
			in.err = io.ErrUnexpectedEOF
		}
		in.sum = crc32.Update(in.sum, castagnoli, buf.Bytes())
	}
	return buf.Bytes()
}

// header reads the version and the shape, compares them with what this pool
// would write, and returns the version.
func (in *snapshotReader) header(p *Pool) (version byte, err error) {
	var head [len(snapshotMagic) + 1]byte
	in.read(head[:])
	if in.err != nil {
		return 0, in.fail("header")
	}
	if string(head[:len(snapshotMagic)]) != snapshotMagic {
		return 0, fmt.Errorf("%w: it does not start as one", ErrSnapshot)
	}
	if version = head[len(snapshotMagic)]; version != 1 && version != snapshotVersion {
		return 0, fmt.Errorf("%w: version: expected 1 or %d, found %d", ErrSnapshot, snapshotVersion, version)
	}
	for i, want := range p.shape(version) {
		got := in.number32()
		if in.err != nil {
			return 0, in.fail("header")
		}
		name := shapeName(version, i)
		if got != want && !strings.HasSuffix(name, "window") { // how much is needed is up to this pool
			return 0, fmt.Errorf("%w: %s: expected %d, found %d", ErrSnapshot, name, want, got)
		}
	}
	return version, nil
}

// shapeName names a number of the shape.
func shapeName(version byte, i int) string {
	switch i {
	case 0:
		return "element type"
	case 1:
		return "layers"
	}
	names := []string{"heads", "key size", "value size", "state bytes"}
	if version == 1 {
		names = slices.Insert(names, 3, "window")
	}
	return fmt.Sprintf("layer %d: %s", (i-2)/len(names), names[(i-2)%len(names)])
}

func (in *snapshotReader) fail(where string) error {
	if in.err == io.EOF || in.err == io.ErrUnexpectedEOF {
		return fmt.Errorf("%w: it ends in its %s", ErrSnapshot, where)
	}
	return fmt.Errorf("kvcache: snapshot: %s: %w", where, in.err)
}

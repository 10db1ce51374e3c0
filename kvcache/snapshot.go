package kvcache

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// ErrSnapshot is returned for a snapshot that is damaged or was made for
// another model.
var ErrSnapshot = errors.New("kvcache: bad snapshot")

// MaxMeta is the largest description that a snapshot can carry, in bytes.
const MaxMeta = 64 << 20

const (
	snapshotMagic = "ridgekv\x01" // the last byte is the version
	snapshotEnd   = "kvend\x00\x00\x00"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Snapshot writes what the pool holds of s to w, and meta, a description that
// the caller gets back: its tokens, the name of the model. The format does not
// depend on the page size; docs/memory.md has it. Checkpoints are not kept.
func (p *Pool) Snapshot(w io.Writer, s *Seq, meta []byte) error {
	if len(meta) > MaxMeta {
		return fmt.Errorf("kvcache: snapshot: description: expected at most %d bytes, found %d", MaxMeta, len(meta))
	}
	out := &snapshotWriter{w: bufio.NewWriterSize(w, 64<<10)}
	out.write(p.snapshotHeader())
	out.number(uint64(s.n))
	out.number(uint64(s.first))
	out.number(uint64(len(meta)))
	out.write(meta)
	last := make([]byte, p.largestTile())
	for t := s.first / TileTokens; t*TileTokens < s.n; t++ {
		p.tiles(s, t, func(k, v []byte, l LayerShape) {
			if slot := s.n - t*TileTokens; slot < TileTokens {
				// What others have written behind the last token is no
				// part of s.
				both := last[:len(k)+len(v)]
				copy(both, k)
				copy(both[len(k):], v)
				k, v = both[:len(k)], both[len(k):]
				clearTile(k, v, slot, l, p.cfg.DType)
			}
			out.write(k)
			out.write(v)
		})
	}
	if s.state != noState {
		for i, l := range p.cfg.Layers {
			if l.State > 0 {
				out.write(p.State(i, s))
			}
		}
	}
	out.number(uint64(out.sum))
	out.write([]byte(snapshotEnd))
	if out.err == nil {
		out.err = out.w.Flush()
	}
	if out.err != nil {
		return fmt.Errorf("kvcache: snapshot: %w", out.err)
	}
	return nil
}

// SnapshotBytes returns the size of a snapshot of s with a description of the
// given length.
func (p *Pool) SnapshotBytes(s *Seq, meta int) int64 {
	tile, state := 0, 0
	for _, l := range p.cfg.Layers {
		if l.Heads > 0 {
			tile += l.Heads * (TileBytes(l.KDim, p.cfg.DType) + TileBytes(l.VDim, p.cfg.DType))
		}
		state += l.State
	}
	if s.state == noState {
		state = 0
	}
	tiles := (s.n+TileTokens-1)/TileTokens - s.first/TileTokens
	return int64(len(p.snapshotHeader())+5*8+meta) + int64(tiles)*int64(tile) + int64(state)
}

// snapshotHeader returns the magic number and the shape of the model.
func (p *Pool) snapshotHeader() []byte {
	b := append([]byte(nil), snapshotMagic...)
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(p.cfg.DType))
	b = le.AppendUint32(b, uint32(len(p.cfg.Layers)))
	for _, l := range p.cfg.Layers {
		for _, x := range [...]int{l.Heads, l.KDim, l.VDim, l.Window, l.State} {
			b = le.AppendUint32(b, uint32(x))
		}
	}
	return b
}

// tiles calls do with the keys and values of tile t of s, for each layer and
// head, without the padding between them.
func (p *Pool) tiles(s *Seq, t int, do func(k, v []byte, l LayerShape)) {
	typ := p.cfg.DType
	for i, l := range p.cfg.Layers {
		for h := range l.Heads {
			k, v := p.Tile(i, h, s, t)
			do(k[:TileBytes(l.KDim, typ)], v[:TileBytes(l.VDim, typ)], l)
		}
	}
}

func (p *Pool) largestTile() int {
	n := 0
	for _, l := range p.cfg.Layers {
		n = max(n, TileBytes(l.KDim, p.cfg.DType)+TileBytes(l.VDim, p.cfg.DType))
	}
	return n
}

// Restore reads a snapshot and returns a new sequence with its contents, and
// the description. It must have been made for the same shape of model and
// element type, and have at most limit tokens, the context of the model. It
// takes pages as it reads, so a file that promises more than it has takes no
// more than it has; on an error it gives all of them back. The error is
// ErrSnapshot for bad contents, and ErrNoPages if the pool is full. It may read
// more of r than the snapshot.
func (p *Pool) Restore(r io.Reader, limit int) (s *Seq, meta []byte, err error) {
	in := &snapshotReader{r: bufio.NewReaderSize(r, 64<<10)}
	s = p.NewSeq()
	defer func() {
		if err != nil {
			p.Free(s)
			s, meta = nil, nil
		}
	}()
	if err := in.header(p.snapshotHeader()); err != nil {
		return s, nil, err
	}
	tokens, first, size := in.number(), in.number(), in.number()
	switch {
	case in.err != nil:
		return s, nil, in.fail("header")
	case tokens > uint64(max(limit, 0)):
		return s, nil, fmt.Errorf("%w: tokens: expected at most %d, found %d", ErrSnapshot, limit, tokens)
	case first > tokens || first%TileTokens != 0 || first > 0 && p.window == 0:
		return s, nil, fmt.Errorf("%w: tokens %d to %d", ErrSnapshot, first, tokens)
	case first > 0 && tokens+1 < first+uint64(p.window):
		return s, nil, fmt.Errorf("%w: tokens %d to %d do not fill a window of %d", ErrSnapshot, first, tokens, p.window)
	case size > MaxMeta:
		return s, nil, fmt.Errorf("%w: description: expected at most %d bytes, found %d", ErrSnapshot, MaxMeta, size)
	}
	if meta = in.bytes(int(size)); in.err != nil {
		return s, nil, in.fail("description")
	}
	if err := p.restoreTiles(in, s, int(tokens), int(first)); err != nil {
		return s, nil, err
	}
	if s.state != noState {
		for i, l := range p.cfg.Layers {
			if l.State > 0 {
				in.read(p.State(i, s))
			}
		}
	}
	sum := in.sum
	if got := in.number(); in.err == nil && got != uint64(sum) {
		return s, nil, fmt.Errorf("%w: checksum: expected %08x, found %08x", ErrSnapshot, sum, got)
	}
	if end := string(in.bytes(len(snapshotEnd))); in.err == nil && end != snapshotEnd {
		return s, nil, fmt.Errorf("%w: end: expected %q, found %q", ErrSnapshot, snapshotEnd, end)
	}
	if in.err != nil {
		return s, nil, in.fail("end")
	}
	return s, meta, nil
}

// restoreTiles reads the keys and values of s, one tile after the other.
func (p *Pool) restoreTiles(in *snapshotReader, s *Seq, tokens, first int) error {
	for range first / p.cfg.PageTokens {
		s.pages, s.bases = append(s.pages, noPage), append(s.bases, nil)
	}
	s.n = len(s.pages) * p.cfg.PageTokens
	s.first = s.n
	if missing := first - s.n; missing > 0 {
		if err := p.Grow(s, missing); err != nil { // the page's first tiles, out of the window
			return err
		}
		s.first = first
	}
	for t := first / TileTokens; t*TileTokens < tokens; t++ {
		if err := p.Grow(s, min(tokens-s.n, TileTokens)); err != nil {
			return err
		}
		p.tiles(s, t, func(k, v []byte, _ LayerShape) {
			in.read(k)
			in.read(v)
		})
		if in.err != nil {
			return in.fail(fmt.Sprintf("tokens from %d on", t*TileTokens))
		}
	}
	return nil
}

// snapshotWriter writes and sums; the first error stays.
type snapshotWriter struct {
	w   *bufio.Writer
	sum uint32
	err error
}

func (o *snapshotWriter) write(b []byte) {
	if o.err == nil {
		_, o.err = o.w.Write(b)
		o.sum = crc32.Update(o.sum, castagnoli, b)
	}
}

func (o *snapshotWriter) number(x uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], x)
	o.write(b[:])
}

// snapshotReader reads and sums; the first error stays.
type snapshotReader struct {
	r   *bufio.Reader
	sum uint32
	err error
}

func (in *snapshotReader) read(b []byte) {
	if in.err == nil {
		_, in.err = io.ReadFull(in.r, b)
		in.sum = crc32.Update(in.sum, castagnoli, b)
	}
}

func (in *snapshotReader) number() uint64 {
	var b [8]byte
	in.read(b[:])
	return binary.LittleEndian.Uint64(b[:])
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

// header reads a header and compares it with what this pool would write.
func (in *snapshotReader) header(want []byte) error {
	got := make([]byte, len(want))
	in.read(got)
	if in.err != nil {
		return in.fail("header")
	}
	n := len(snapshotMagic)
	switch {
	case !bytes.Equal(got[:n-1], want[:n-1]):
		return fmt.Errorf("%w: it does not start as one", ErrSnapshot)
	case got[n-1] != want[n-1]:
		return fmt.Errorf("%w: version: expected %d, found %d", ErrSnapshot, want[n-1], got[n-1])
	}
	for i := n; i < len(want); i += 4 {
		w, g := binary.LittleEndian.Uint32(want[i:]), binary.LittleEndian.Uint32(got[i:])
		if w != g {
			return fmt.Errorf("%w: %s: expected %d, found %d", ErrSnapshot, headerField((i-n)/4), w, g)
		}
	}
	return nil
}

// headerField names a number of the header.
func headerField(i int) string {
	switch i {
	case 0:
		return "element type"
	case 1:
		return "layers"
	}
	return fmt.Sprintf("layer %d: %s", (i-2)/5, [...]string{"heads", "key size", "value size", "window", "state bytes"}[(i-2)%5])
}

func (in *snapshotReader) fail(where string) error {
	if in.err == io.EOF || in.err == io.ErrUnexpectedEOF {
		return fmt.Errorf("%w: it ends in its %s", ErrSnapshot, where)
	}
	return fmt.Errorf("kvcache: snapshot: %s: %w", where, in.err)
}

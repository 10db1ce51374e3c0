package kvcache

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"
)

// ErrSnapshot is returned for a snapshot that is damaged or was made for
// another model.
var ErrSnapshot = errors.New("kvcache: bad snapshot")

// MaxMeta is the largest description that a snapshot can carry, in bytes.
const MaxMeta = 64 << 20

const (
	snapshotMagic   = "ridgekv"
	snapshotVersion = 2 // 1 had windows in the shape, and one first token for all layers
	snapshotEnd     = "kvend\x00\x00\x00"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Snapshot writes what the pool holds of s to w, of layers with windows what is
// in them, and meta, a description that the caller gets back: its tokens, the
// name of the model. The format does not depend on the page size; docs/memory.md
// has it. Checkpoints are not kept.
func (p *Pool) Snapshot(w io.Writer, s *Seq, meta []byte) error {
	c, err := p.Parts(s, meta)
	if err != nil {
		return err
	}
	_, err = c.Write(w, s, math.MaxInt)
	return err
}

// SnapshotBytes returns the size of a snapshot of s with a description of the
// given length.
func (p *Pool) SnapshotBytes(s *Seq, meta int) int64 {
	n := int64(len(snapshotMagic)+1) + 4*int64(len(p.shape(snapshotVersion))+len(p.layers)) + 4*8 + int64(meta)
	tiles := (s.n + TileTokens - 1) / TileTokens
	for i, l := range p.cfg.Layers {
		if l.Heads > 0 {
			tile := l.Heads * (TileBytes(l.KDim, p.cfg.DType) + TileBytes(l.VDim, p.cfg.DType))
			n += int64(tiles-p.firstTile(s, i)) * int64(tile)
		}
		if s.n > 0 {
			n += int64(l.State)
		}
	}
	return n
}

// firstTile returns the first tile that a snapshot of s has of a layer: one more
// than a query behind the last token sees, so that this one can be computed again.
func (p *Pool) firstTile(s *Seq, layer int) int {
	g := p.layers[layer].group
	if g < 0 {
		return 0
	}
	return max(p.since(g, max(s.n-TileTokens, 0)), s.tables[g].first) / TileTokens
}

// shape returns the numbers that describe the element type and the layers in a
// snapshot of the given version.
func (p *Pool) shape(version byte) []uint32 {
	b := []uint32{uint32(p.cfg.DType), uint32(len(p.cfg.Layers))}
	for _, l := range p.cfg.Layers {
		b = append(b, uint32(l.Heads), uint32(l.KDim), uint32(l.VDim))
		if version == 1 {
			b = append(b, uint32(l.Window))
		}
		b = append(b, uint32(l.State))
	}
	return b
}

// tiles calls do with the keys and values of tile t of s, for each layer that a
// snapshot has it of, and head, without the padding between them.
func (p *Pool) tiles(s *Seq, t int, do func(k, v []byte, l LayerShape)) {
	typ := p.cfg.DType
	for i, l := range p.cfg.Layers {
		if l.Heads == 0 || t < p.firstTile(s, i) {
			continue
		}
		for h := range l.Heads {
			k, v := p.Tile(i, h, s, t)
			do(k[:TileBytes(l.KDim, typ)], v[:TileBytes(l.VDim, typ)], l)
		}
	}
}

// eachState calls do with the parts of the state of s, if it holds tokens.
func (p *Pool) eachState(s *Seq, do func([]byte)) {
	for i := range p.layers {
		for part := range p.layers[i].parts {
			if len(s.state) > 0 {
				do(p.State(i, part, s))
			}
		}
	}
}

// snapshotWriter writes and sums; the first error stays.
type snapshotWriter struct {
	w     *bufio.Writer
	sum   uint32
	bytes int // of the part at hand
	err   error
}

func (o *snapshotWriter) write(b []byte) {
	if o.err == nil {
		_, o.err = o.w.Write(b)
		o.sum = crc32.Update(o.sum, castagnoli, b)
		o.bytes += len(b)
	}
}

func (o *snapshotWriter) number(x uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], x)
	o.write(b[:])
}

func (o *snapshotWriter) number32(x uint32) {
	o.write(binary.LittleEndian.AppendUint32(nil, x))
}

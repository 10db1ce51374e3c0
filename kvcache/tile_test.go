package kvcache

import (
	"bytes"
	"testing"

	"ridge/weights/tensor"
)

func TestTileBytes(t *testing.T) {
	for _, c := range []struct {
		t    tensor.DType
		want int
	}{{tensor.F16, 96}, {tensor.F32, 192}, {tensor.Q8_0, 64 + 48}, {tensor.Q4_0, 0}, {tensor.BF16, 96}} {
		if got := TileBytes(3, c.t); got != c.want {
			t.Errorf("TileBytes(3, %v) = %d, want %d", c.t, got, c.want)
		}
	}
}

// slotBytes returns what a tile of signed bytes has of one token.
func slotBytes(k, v []byte, slot int, l LayerShape) []byte {
	out := append([]byte(nil), k[4*slot:4*slot+4]...)
	out = append(out, v[4*slot:4*slot+4]...)
	k, v = k[64:], v[64:]
	for d := range l.KDim {
		out = append(out, k[d*TileTokens+slot])
	}
	return append(out, v[slot*l.VDim:(slot+1)*l.VDim]...)
}

// Copies and snapshots of tiles with scales have the tokens of their sequence,
// scales and all, and zeros behind them.
func TestTilesWithScales(t *testing.T) {
	p, err := New(Config{Layers: []LayerShape{{Heads: 2, KDim: 3, VDim: 1}, {Heads: 1, KDim: 1, VDim: 2}}, PageTokens: 32, DType: tensor.Q8_0, MaxBytes: 1 << 15})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	s := p.NewSeq()
	if err := p.Grow(s, 37); err != nil {
		t.Fatal(err)
	}
	x := byte(0)
	for i := range 3 {
		p.tiles(s, i, func(k, v []byte, _ LayerShape) {
			for _, b := range [][]byte{k, v} {
				for j := range b {
					x++
					b[j] = x
				}
			}
		})
	}
	fork := p.Fork(s)
	for _, q := range []*Seq{s, fork} { // s goes on in place, fork in a copy
		if err := p.Grow(q, 1); err != nil {
			t.Fatal(err)
		}
	}
	p.Truncate(fork, 37)
	var file bytes.Buffer
	if err := p.Snapshot(&file, fork, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := int64(file.Len()), p.SnapshotBytes(fork, 0); got != want {
		t.Errorf("snapshot of %d bytes, want %d", got, want)
	}
	restored, _, err := p.Restore(&file, 100)
	if err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]*Seq{"copy": fork, "restored": restored} {
		for i := range 3 {
			at, layers := 0, [][2][]byte{}
			p.tiles(s, i, func(k, v []byte, _ LayerShape) { layers = append(layers, [2][]byte{k, v}) })
			p.tiles(q, i, func(k, v []byte, l LayerShape) {
				for slot := range TileTokens {
					want := slotBytes(layers[at][0], layers[at][1], slot, l)
					if 16*i+slot >= 37 {
						want = make([]byte, len(want))
					}
					if got := slotBytes(k, v, slot, l); !bytes.Equal(got, want) {
						t.Errorf("%s: tile %d, part %d, slot %d: %x, want %x", name, i, at, slot, got, want)
					}
				}
				at++
			})
		}
	}
	if err := p.Check(s, fork, restored); err != nil {
		t.Error(err)
	}
}

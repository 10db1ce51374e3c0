package kvcache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"ridge/weights/tensor"
)

var snapshotLayers = []LayerShape{{Heads: 2, KDim: 3, VDim: 1}, {State: 5}, {Heads: 1, KDim: 1, VDim: 2}}

func snapshotPool(t testing.TB, pageTokens int) *Pool {
	t.Helper()
	p, err := New(Config{Layers: snapshotLayers, PageTokens: pageTokens, DType: tensor.F16, MaxBytes: 1 << 14})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// fill makes a sequence of n tokens with bytes that count up.
func fill(t testing.TB, p *Pool, n int) *Seq {
	t.Helper()
	s := p.NewSeq()
	if err := p.Grow(s, n); err != nil {
		t.Fatal(err)
	}
	x := byte(0)
	for i := 0; i*TileTokens < n; i++ {
		p.tiles(s, i, func(k, v []byte, _ LayerShape) {
			for _, b := range [][]byte{k, v} {
				for j := range b {
					x++
					b[j] = x
				}
			}
		})
	}
	copy(p.State(1, 0, s), "state")
	return s
}

// The format, spelled out.
func TestSnapshotFormat(t *testing.T) {
	p := snapshotPool(t, 32)
	s := fill(t, p, 17)
	var got bytes.Buffer
	if err := p.Snapshot(&got, s, []byte("meta")); err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	want := []byte("ridgekv\x02")
	for _, x := range []uint32{1, 3, 2, 3, 1, 0, 0, 0, 0, 5, 1, 1, 2, 0} {
		want = le.AppendUint32(want, x)
	}
	want = le.AppendUint64(le.AppendUint64(want, 17), 4)
	want = append(want, make([]byte, 3*4)...) // all layers have all tokens
	want = append(want, "meta"...)
	x := byte(0)
	for tile := range 2 {
		part := func(rows, row int, slot func(i int) int) {
			for i := range rows * row {
				x++
				b := x
				if tile == 1 && slot(i/2) >= 1 {
					b = 0 // behind the last token
				}
				want = append(want, b)
			}
		}
		key := func(i int) int { return i % 16 }
		for range 2 {
			part(3, 32, key)
			part(16, 2, func(i int) int { return i })
		}
		part(1, 32, key)
		part(16, 4, func(i int) int { return i / 2 })
	}
	want = append(want, "state"...)
	want = le.AppendUint64(want, uint64(crc32.Checksum(want, castagnoli)))
	want = append(want, "kvend\x00\x00\x00"...)
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("found\n%x\nwant\n%x", got.Bytes(), want)
	}
}

func TestRestoreOtherPageSize(t *testing.T) {
	p, q := snapshotPool(t, 16), snapshotPool(t, 48)
	s := fill(t, p, 100)
	var b bytes.Buffer
	if err := p.Snapshot(&b, s, nil); err != nil {
		t.Fatal(err)
	}
	first := b.String()
	r, _, err := q.Restore(iotest.OneByteReader(&b), 100)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Check(r); err != nil {
		t.Error(err)
	}
	var again bytes.Buffer
	if err := q.Snapshot(&again, r, nil); err != nil {
		t.Fatal(err)
	}
	if first != again.String() {
		t.Error("the snapshot of the restored sequence differs")
	}
}

func TestRestoreRefuses(t *testing.T) {
	p := snapshotPool(t, 16)
	s := fill(t, p, 20)
	var buf bytes.Buffer
	if err := p.Snapshot(&buf, s, []byte("meta")); err != nil {
		t.Fatal(err)
	}
	good := buf.Bytes()
	numbers := 8 + 4*(2+4*3)
	put := func(at int, x uint64) func([]byte) []byte {
		return func(b []byte) []byte { binary.LittleEndian.PutUint64(b[at:], x); return b }
	}
	for name, c := range map[string]struct {
		change func([]byte) []byte
		want   string
	}{
		"empty":         {func(b []byte) []byte { return nil }, "ends in its header"},
		"other file":    {func(b []byte) []byte { return append([]byte("GGUF"), b...) }, "does not start as one"},
		"version":       {func(b []byte) []byte { b[7] = 3; return b }, "version: expected 1 or 2, found 3"},
		"element type":  {func(b []byte) []byte { b[8] = 0; return b }, "element type: expected 1, found 0"},
		"layer":         {func(b []byte) []byte { b[20]++; return b }, "layer 0: key size: expected 3, found 4"},
		"tokens":        {put(numbers, 1<<40), "tokens: expected at most 100"},
		"more tokens":   {put(numbers, 90), "ends in its tokens from 32 on"},
		"first":         {put(numbers+16, 1), "layer 0: tokens 16 to 20 are not all that it sees"},
		"description":   {put(numbers+8, 1<<40), "description: expected at most"},
		"long one":      {put(numbers+8, 1<<20), "ends in its description"},
		"damaged":       {func(b []byte) []byte { b[len(b)-40] ^= 1; return b }, "checksum"},
		"no end":        {func(b []byte) []byte { return b[:len(b)-8] }, "ends in its end"},
		"other end":     {func(b []byte) []byte { b[len(b)-1] = 1; return b }, "end: expected"},
		"cut in header": {func(b []byte) []byte { return b[:20] }, "ends in its header"},
	} {
		r, _, err := p.Restore(bytes.NewReader(c.change(bytes.Clone(good))), 100)
		if err == nil || r != nil || !errors.Is(err, ErrSnapshot) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err := p.Check(s); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := p.Restore(io.MultiReader(bytes.NewReader(good[:200]), iotest.ErrReader(io.ErrClosedPipe)), 100); !errors.Is(err, io.ErrClosedPipe) || errors.Is(err, ErrSnapshot) {
		t.Errorf("a reader's error became %v", err)
	}
	if err := p.Snapshot(io.Discard, s, make([]byte, MaxMeta+1)); err == nil {
		t.Error("a description beyond the limit was written")
	}
}

// In parts the same is read as at once, the pool may be used between them, and what
// is given up holds nothing.
func TestRestoreInParts(t *testing.T) {
	p, q := snapshotPool(t, 16), snapshotPool(t, 48)
	var b bytes.Buffer
	if err := p.Snapshot(&b, fill(t, p, 100), []byte("meta")); err != nil {
		t.Fatal(err)
	}
	file := b.Bytes()
	for _, give := range []bool{true, false} {
		free := q.Stats().Free
		c, parts := q.Restoration(bytes.NewReader(file), 100), 0
		for {
			done, err := c.Next(1)
			if err != nil {
				t.Fatal(err)
			}
			if parts++; done || give && parts == 3 {
				break
			}
			other := q.NewSeq() // what comes between
			if err := q.Grow(other, 50); err != nil {
				t.Fatal(err)
			}
			q.Free(other)
		}
		if give {
			c.Abort()
			if n := q.Stats().Free; n != free {
				t.Errorf("%d pages are free after a snapshot was given up, %d before", n, free)
			}
			continue
		}
		s, meta := c.Seq()
		if string(meta) != "meta" || parts < 7 {
			t.Errorf("%q in %d parts", meta, parts)
		}
		var again bytes.Buffer
		if err := errors.Join(q.Check(s), q.Snapshot(&again, s, meta)); err != nil || !bytes.Equal(again.Bytes(), file) {
			t.Errorf("the restored sequence differs: %v", err)
		}
	}
}

// A snapshot that does not fit takes no page.
func TestRestoreWithoutRoom(t *testing.T) {
	p := snapshotPool(t, 16)
	s := fill(t, p, (p.Stats().Free-1)*16) // and a page for the state
	var b bytes.Buffer
	if err := p.Snapshot(&b, s, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Restore(&b, 1<<20); !errors.Is(err, ErrNoPages) {
		t.Errorf("restored into a full pool: %v", err)
	}
	if err := p.Check(s); err != nil {
		t.Error(err)
	}
}

func FuzzRestore(f *testing.F) {
	p := snapshotPool(f, 32)
	for _, n := range []int{1, 16, 40} {
		s := fill(f, p, n)
		var b bytes.Buffer
		if err := p.Snapshot(&b, s, []byte("meta")); err != nil {
			f.Fatal(err)
		}
		p.Free(s)
		f.Add(b.Bytes(), false)
		f.Add(b.Bytes(), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, mend bool) {
		if end := len(b) - 16; mend && end >= 0 {
			binary.LittleEndian.PutUint64(b[end:], uint64(crc32.Checksum(b[:end], castagnoli)))
		}
		s, _, err := p.Restore(bytes.NewReader(b), 64)
		if (err == nil) != (s != nil) {
			t.Fatalf("%v and %v", s, err)
		}
		var seqs []*Seq
		if s != nil {
			seqs = append(seqs, s)
		}
		if err := p.Check(seqs...); err != nil {
			t.Fatal(err)
		}
		if s != nil {
			p.Free(s)
		}
	})
}

// Snapshots of version 1 have all tokens of all layers and are read by a pool
// whose layers have windows, which keeps what is in them.
func TestRestoreVersion1(t *testing.T) {
	le := binary.LittleEndian
	old := []byte("ridgekv\x01")
	for _, x := range []uint32{1, 2, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0} {
		old = le.AppendUint32(old, x)
	}
	for _, x := range []uint64{100, 0, 4} { // tokens, the first, the description
		old = le.AppendUint64(old, x)
	}
	old = append(old, "meta"...)
	for tile := range uint16(7) {
		for layer := range uint16(2) {
			for range 2 {
				for slot := range uint16(16) {
					old = le.AppendUint16(old, 1000*layer+16*tile+slot)
				}
			}
		}
	}
	old = le.AppendUint64(old, uint64(crc32.Checksum(old, castagnoli)))
	old = append(old, snapshotEnd...)
	p := groupPool(t, 30, 0, 20)
	s, meta, err := p.Restore(bytes.NewReader(old), 100)
	if err != nil || string(meta) != "meta" || s.Len() != 100 || s.tables[0].first != 0 || s.tables[1].first != 64 {
		t.Fatalf("%v, %q, %+v", err, meta, s)
	}
	for layer, from := range []int{0, 64} {
		for at := from; at < 100; at++ {
			k, v := p.Tile(layer, 0, s, at/16)
			want := uint16(1000*layer + at)
			if got := le.Uint16(k[2*(at%16):]); got != want || le.Uint16(v[2*(at%16):]) != want {
				t.Fatalf("layer %d, token %d: found %d, want %d", layer, at, got, want)
			}
		}
	}
	var again bytes.Buffer
	if err := p.Snapshot(&again, s, meta); err != nil || again.Len() >= len(old) {
		t.Errorf("%v, %d bytes of a snapshot without what left the window, %d with", err, again.Len(), len(old))
	}
	if err := p.Check(s); err != nil {
		t.Error(err)
	}
}

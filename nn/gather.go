package nn

import (
	"unsafe"

	"ridge/kvcache"
)

// gather lays the keys and values of a path of a tree side by side, as they would lie
// had the path been the text: sums go over tiles, and have the bits that they have
// there. The tiles are the worker's own, from the one on in which the tree begins.
func (t *attnTask) gather(w *attnWorker, u attnUnit) {
	const n = kvcache.TileTokens
	r, tiles := &t.runs[u.run], &w.call.Tiles
	trunk := r.trunk()
	from, to := trunk/n, (trunk+int(r.depths[u.node]))/n
	if need := (to-from+1)*tiles.Step + 64; len(w.tail) < need {
		w.tail = make([]byte, need)
	}
	tail := w.tail[-uintptr(unsafe.Pointer(&w.tail[0]))%64:]
	tile := func(i int) (k, v []byte) {
		b := tail[(i-from)*tiles.Step:][:tiles.Step]
		return b[:tiles.V-tiles.K], b[tiles.V-tiles.K:]
	}
	if trunk%n > 0 { // others' tokens of the tile come before
		k, v := tile(from)
		fromK, fromV := t.kv.Tile(t.layer, u.head, r.Seq, from)
		copy(k, fromK)
		copy(v, fromV)
	}
	for node := u.node; node >= 0; node = int(r.Tree[node]) {
		at, slot := trunk+int(r.depths[node]), trunk+node
		k, v := tile(at / n)
		fromK, fromV := t.kv.Tile(t.layer, u.head, r.Seq, slot/n)
		t.kv.CopySlot(t.layer, k, v, at%n, fromK, fromV, slot%n)
	}
	tiles.Tail, tiles.From = &tail[0], from
}

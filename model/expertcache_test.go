package model

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ridge/internal/packfile"
	"ridge/kernel"
	"ridge/nn"
)

// Experts that lie in a file are in memory when they are chosen, whatever was
// chosen before; one that is chosen often stays, though more others than there are
// slots come in between; what is read is counted.
func TestExpertCache(t *testing.T) {
	for _, size := range []int{1000, 70 << 10} { // through the cache of the system, and past it
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			const layers, experts = 2, 24
			net, file, content := expertFile(t, layers, experts, size)
			place := map[*kernel.Packed]int{}
			for i := range net.Layers {
				for e, x := range net.Layers[i].mixture().Experts {
					place[x.Up.W] = i*experts + e
				}
			}
			room := int64(file.Reader().Room(1)) * 6
			c := newExpertCache(net, file, place, room)
			if c == nil || c.bytesKept() > room || len(c.kinds) != 1 || len(c.kinds[0].slots) != 6 {
				t.Fatalf("%+v, want 6 slots in %d bytes", c, room)
			}
			defer c.close()
			rng := rand.New(rand.NewPCG(1, 2))
			asked, missed := int64(0), 0
			for step := range 400 {
				for layer := range layers {
					chosen := []int{1 + rng.IntN(experts-1)}
					if step%4 == 0 {
						chosen = append([]int{0}, chosen...)
					}
					if step%50 == 49 && step < 200 { // a long prompt: more than there are slots
						for chosen = nil; len(chosen) < experts; chosen = append(chosen, len(chosen)) {
						}
					}
					if step >= 300 && chosen[0] == 0 && c.layers[layer][0].slot == nil {
						missed++
					}
					m := net.Layers[layer].mixture()
					m.Fetch(chosen)
					asked += int64(len(chosen))
					for _, e := range chosen {
						if w := m.Experts[e].Up.W; !bytes.Equal(w.Data, content[layer*experts+e]) {
							t.Fatalf("step %d: expert %d of layer %d has other bytes", step, e, layer)
						}
					}
				}
			}
			if c.r.failed() != nil || c.found+c.read != asked || c.bytes != c.read*int64(size) {
				t.Errorf("%d found and %d read of %d, %d bytes: %v", c.found, c.read, asked, c.bytes, c.r.failed())
			}
			if missed > 0 {
				t.Errorf("the expert that every fourth step chooses was not there %d times", missed)
			}
		})
	}
}

// expertFile returns a network of mixtures whose matrices lie in a file, and
// their bytes.
func expertFile(t *testing.T, layers, experts, size int) (*Net, *packfile.File, [][]byte) {
	t.Helper()
	d := &packfile.Directory{Model: t.TempDir(), Key: "k"}
	rng := rand.New(rand.NewPCG(3, 4))
	var content [][]byte
	net := &Net{Layers: make([]Layer, layers)}
	for i := range layers {
		m := &nn.MoE{Experts: make([]nn.MLP, experts)}
		for e := range m.Experts {
			b := make([]byte, size)
			for j := range b {
				b[j] = byte(rng.Uint32())
			}
			content = append(content, b)
			d.Matrix = append(d.Matrix, packfile.Entry{Name: fmt.Sprintf("blk.%d.ffn_up_exps", i), Rows: 1, Cols: size, Size: int64(size)})
			m.Experts[e].Up.W = &kernel.Packed{Rows: 1, Cols: size, Groups: 1, GroupBytes: size}
		}
		net.Layers[i].FFN = m
	}
	dir := t.TempDir()
	if err := packfile.Write(context.Background(), dir, d, packfile.Writing{Bytes: func(i int) []byte { return slices.Clone(content[i]) }}); err != nil {
		t.Fatal(err)
	}
	f, err := packfile.Open(packfile.Path(dir, d.Model))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	for i := range content {
		net.Layers[i/experts].mixture().Experts[i%experts].Up.W.Data = f.Bytes(i)
	}
	return net, f, content
}

package compress

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ridge/model"
	"ridge/weights/gguf"
)

// Calibration says what Calibrate reads.
type Calibration struct {
	// Chunk is how many tokens are computed as a sequence of their own.
	Chunk int
	// Dataset names the text.
	Dataset string
	// Scratch is a folder for a file with the rows between two layers, which are held
	// in memory if it is "".
	Scratch string
	// Progress, if not nil, is told how many layers are done.
	Progress func(done, total int)
}

// Calibrate computes tokens in chunks and adds up the squares of what the
// columns of each matrix of f meet. f is the file of m. Matrices of experts are not
// reached; missed has their names, and those of others that nothing was collected for.
func Calibrate(ctx context.Context, m *model.Model, f *gguf.File, tokens []int32, c Calibration) (im *Importance, missed []string, err error) {
	chunks := len(tokens) / max(c.Chunk, 1)
	if chunks == 0 || c.Chunk < 16 {
		return nil, nil, fmt.Errorf("compress: calibration: expected a text of at least one chunk of %d tokens (16 at least), found %d", max(c.Chunk, 16), len(tokens))
	}
	sums := map[string][]float64{}
	rows := map[string]int{}
	look := func(layer int, parts []string, n int, row func(int) []float32) {
		for _, part := range parts {
			name := fmt.Sprintf("blk.%d.%s.weight", layer, part)
			if part == "output" {
				name = "output.weight"
			}
			t, ok := f.Tensor(name)
			if !ok || int(t.Dims[0]) != len(row(0)) {
				continue
			}
			sum := sums[name]
			if sum == nil {
				sum = make([]float64, t.Dims[0])
				sums[name] = sum
			}
			rows[name] += n
			for r := range n {
				for i, v := range row(r) {
					sum[i] += float64(v) * float64(v)
				}
			}
		}
	}
	var texts [][]int32
	for i := range chunks {
		texts = append(texts, tokens[i*c.Chunk:(i+1)*c.Chunk])
	}
	taps, err := m.Tap(texts, c.Scratch)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, taps.Close()) }()
	for more := true; more; {
		if more, err = taps.Next(ctx, look); err != nil {
			return nil, nil, err
		}
		if first, _ := taps.Layers(); c.Progress != nil {
			c.Progress(min(first, m.Config().Layers), m.Config().Layers)
		}
	}
	im = &Importance{Datasets: []string{c.Dataset}, Chunks: chunks, ChunkTokens: c.Chunk, entries: map[string]*entry{}}
	for _, t := range inOrder(f) {
		sum := sums[t.Name]
		if sum == nil {
			if quantizable(t) && strings.HasPrefix(t.Name, "blk.") {
				missed = append(missed, t.Name)
			}
			continue
		}
		e := &entry{sums: make([]float32, len(sum)), counts: []float32{float32(rows[t.Name])}}
		for i, v := range sum {
			e.sums[i] = float32(v)
		}
		im.entries[t.Name] = e
		if _, err := im.fits(t); err != nil {
			return nil, nil, err
		}
	}
	return im, missed, nil
}

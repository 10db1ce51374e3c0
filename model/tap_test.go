package model

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// tapped returns the rows that are shown of texts, one behind the other at each site.
func tapped(t *testing.T, m *Model, dir string, texts ...[]int32) (rows map[string][]float32, passes int) {
	t.Helper()
	taps, err := m.Tap(texts, dir)
	if err != nil {
		t.Fatal(err)
	}
	rows = map[string][]float32{}
	for more := true; more; passes++ {
		first, end := taps.Layers()
		more, err = taps.Next(t.Context(), func(layer int, parts []string, n int, row func(int) []float32) {
			if layer < first || layer >= end {
				t.Errorf("expected layers %d to %d, found %d", first, end-1, layer)
			}
			site := fmt.Sprint(layer, " ", parts[0])
			for r := range n {
				rows[site] = append(rows[site], row(r)...)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := taps.Close(); err != nil {
		t.Fatal(err)
	}
	return rows, passes
}

// Texts that are computed layer by layer show the bits that each of them shows alone.
func TestTapByLayers(t *testing.T) {
	together := map[string]bool{"gemma3n-streams": true, "gemma4": true} // layers read of others what is not in the rows
	for _, name := range []string{"llama", "gemma3", "phi", "deepseek3", "qwen35", "falcon-h1", "mamba2", "granitehybrid-moe", "gemma3n-streams", "gemma4"} {
		t.Run(name, func(t *testing.T) {
			g := readGolden(t, filepath.Join(tinyModels, name))
			m, err := Open(g.dir, Options{Workers: 2, Context: g.Context})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			texts := [][]int32{g.Prompt[:20], g.Prompt[5:12], g.Prompt[3:33]}
			want := map[string][]float32{}
			for _, text := range texts {
				rows, _ := tapped(t, m, "", text)
				for site, x := range rows {
					want[site] = append(want[site], x...)
				}
			}
			dir := t.TempDir()
			for _, dir := range []string{"", dir} {
				got, passes := tapped(t, m, dir, texts...)
				if want := map[bool]int{false: m.Config().Layers, true: 1}[together[name]]; passes != want {
					t.Errorf("expected %d passes over the texts, found %d", want, passes)
				}
				if len(got) != len(want) || len(want) < m.Config().Layers {
					t.Errorf("expected %d sites, found %d", len(want), len(got))
				}
				for site, x := range want {
					if !slices.Equal(got[site], x) {
						t.Errorf("site %s: expected the same rows, found others", site)
					}
				}
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("expected an empty folder, found %v, %v", left, err)
			}
		})
	}
}

func TestTapEnds(t *testing.T) {
	g := readGolden(t, filepath.Join(tinyModels, "llama"))
	m, err := Open(g.dir, Options{Context: g.Context})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := m.Tap([][]int32{g.Prompt[:4], nil}, ""); err == nil {
		t.Error("an empty text: expected an error, found none")
	}
	if _, err := m.Tap([][]int32{g.Prompt[:4], g.Prompt[:4]}, filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: expected its error, found %v", err)
	}
	taps, err := m.Tap([][]int32{g.Prompt[:4], g.Prompt[:4]}, "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	_, err = taps.Next(ctx, func(int, []string, int, func(int) []float32) { calls++; cancel() })
	if !errors.Is(err, context.Canceled) || calls == 0 {
		t.Errorf("expected an end between two texts, found %v after %d rows of matrices", err, calls)
	}
	if err := taps.Close(); err != nil {
		t.Error(err)
	}
}

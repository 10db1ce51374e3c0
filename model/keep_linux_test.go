package model

import (
	"os"
	"slices"
	"testing"

	"ridge/internal/testdata"
)

// Without room on the disk the model works as it would without the flag.
func TestKeptWeightsFullDisk(t *testing.T) {
	disk, ok := testdata.SmallDisk(t, 1<<20)
	if !ok {
		return
	}
	path := tinyCopy(t, "llama/llama.gguf")
	s := &shelf{dir: t.TempDir()}
	want := s.start(t, path, "")
	s.silent(t)
	s.dir = disk
	for range 2 {
		if got := s.start(t, path, ""); !slices.Equal(got, want) {
			t.Error("other logits")
		}
		s.silent(t, "no space left on device")
	}
	if left, err := os.ReadDir(disk); err != nil || len(left) != 1 { // the lock
		t.Errorf("left: %v, %v", left, err)
	}
}

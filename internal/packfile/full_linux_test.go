package packfile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"ridge/internal/testdata"
)

// A disk that others fill meanwhile: an error, and nothing is left.
func TestFullDisk(t *testing.T) {
	disk, ok := testdata.SmallDisk(t, 4*chunk)
	if !ok {
		return
	}
	defer func(f func(string) (int64, error)) { freeSpace = f }(freeSpace)
	freeSpace = func(string) (int64, error) { return 1 << 40, nil }
	all, d := matrices(sizes...)
	d.Model = model(t)
	dir := filepath.Join(disk, "packed")
	try := func() error {
		return Write(t.Context(), dir, d, Writing{Bytes: func(i int) []byte { return all[i] }})
	}
	if err := try(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
	all, d.Matrix = all[:3], d.Matrix[:3]
	if err := try(); err != nil {
		t.Errorf("with room: %v", err)
	}
}

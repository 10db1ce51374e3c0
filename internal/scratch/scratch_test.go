package scratch

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A folder is there as long as its process lives, and no longer than until the
// next one starts.
func TestOpen(t *testing.T) {
	if base := os.Getenv("RIDGE_TEST_SCRATCH"); base != "" { // the process that is killed
		f, err := Open(base)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(f.Path(), "left"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		os.Exit(3) // closes nothing
	}
	base := filepath.Join(t.TempDir(), "a", "b")
	folders := func() (out []string) {
		entries, err := os.ReadDir(base)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() {
				out = append(out, filepath.Join(base, e.Name()))
			}
		}
		return out
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestOpen$")
	cmd.Env = append(os.Environ(), "RIDGE_TEST_SCRATCH="+base)
	if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 3 {
		t.Fatalf("%v: %s", err, out)
	}
	left := folders()
	if len(left) != 1 {
		t.Fatalf("the process left %v", left)
	}
	a, err := Open(base)
	if err != nil {
		t.Fatal(err)
	}
	if got := folders(); len(got) != 1 || got[0] != a.Path() || a.Path() == left[0] {
		t.Errorf("after the next start: %v, left were %v", got, left)
	}
	b, err := Open(base)
	if err != nil {
		t.Fatal(err)
	}
	if got := folders(); len(got) != 2 {
		t.Errorf("a second process has the folders %v", got)
	}
	for _, f := range []*Folder{a, b} {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := folders(); len(got) != 0 {
		t.Errorf("after the end: %v", got)
	}
}

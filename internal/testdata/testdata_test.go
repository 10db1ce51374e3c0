package testdata

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every file of the folder unpacks to something, and its kind stands in README.md.
func TestFiles(t *testing.T) {
	dir := Dir(t)
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.ToSlash(rel), packed)
		if st, err := os.Stat(File(t, name)); err != nil || st.Size() == 0 {
			t.Errorf("%s: empty, or %v", name, err)
		}
		if !strings.Contains(name, "/") && name != "README.md" && !strings.Contains(string(readme), name) {
			t.Errorf("README.md does not name %s", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

package model

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ridge/weights/tensor"
)

// What happens to the file of a model that is open. Nothing crashes, nothing is
// computed from what the file was changed to, and a rename does no harm.
func TestFileChanges(t *testing.T) {
	for _, c := range []struct {
		name    string
		changed bool
		change  func(path string, b []byte) error
	}{
		{"cut to nothing", true, func(path string, b []byte) error { return os.Truncate(path, 0) }},
		{"cut in the middle", true, func(path string, b []byte) error { return os.Truncate(path, int64(len(b)/2)) }},
		{"written over", true, func(path string, b []byte) error {
			return os.WriteFile(path, slices.Repeat([]byte{0x5a}, len(b)), 0o600)
		}},
		{"grown", true, func(path string, b []byte) error { return os.WriteFile(path, append(b, 0), 0o600) }},
		{"removed", false, func(path string, b []byte) error { return os.Remove(path) }},
		{"replaced", false, func(path string, b []byte) error {
			if err := os.WriteFile(path+".new", []byte("another model"), 0o600); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := os.ReadFile("../internal/tinymodel/testdata/llama/llama.gguf")
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "model.gguf")
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			m, err := Open(path, Options{KV: tensor.F32, Workers: 2})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			seq := m.Pool().NewSeq()
			ask := func() ([]float32, error) {
				defer m.Pool().Truncate(seq, 0)
				if err := m.Forward(&Step{Runs: []Run{{Seq: seq, Tokens: []int32{1, 20, 127}, Outputs: 1}}}); err != nil {
					return nil, err
				}
				return slices.Clone(m.Logits(0)), nil
			}
			want, err := ask()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.change(path, b); err != nil {
				t.Fatal(err)
			}
			got, err := ask()
			switch {
			case c.changed && !errors.Is(err, ErrChanged):
				t.Errorf("got %v, want %v", err, ErrChanged)
			case !c.changed && (err != nil || !slices.Equal(got, want)):
				t.Errorf("got an error or other logits: %v", err)
			}
			if seq.Len() != 0 {
				t.Errorf("the sequence has %d tokens", seq.Len())
			}
			m.Pool().Free(seq)
			if st := m.Pool().Stats(); st.InUse != 0 {
				t.Errorf("%d pages are in use", st.InUse)
			}
		})
	}
}

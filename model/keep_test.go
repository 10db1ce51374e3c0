package model

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"ridge/internal/builtin"
	"ridge/internal/cpu"
	"ridge/internal/packfile"
	"ridge/internal/testdata"
	"ridge/weights/tensor"
)

// eachWay runs f for the ways in which kept weights are taken.
func eachWay(t *testing.T, f func(t *testing.T, way string)) {
	for _, way := range []string{"mapped", "copied"} {
		t.Run(way, func(t *testing.T) {
			defer func(was func(*Model, *packfile.File) bool) { inPlace = was }(inPlace)
			inPlace = func(*Model, *packfile.File) bool { return way == "mapped" }
			f(t, way)
		})
	}
}

// shelf is a folder for packed weights, and what was said of it.
type shelf struct {
	dir string
	act Act
	mu  sync.Mutex
	say []string
}

func (s *shelf) options() Options {
	return Options{KV: tensor.F32, Workers: 2, Context: 16, Act: s.act, PackCache: PackCache{Dir: s.dir, Warn: func(text string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.say = append(s.say, text)
	}}}
}

// start opens the model at path, checks how its weights came to be, computes a
// few logits, and closes it, which waits for what is being kept.
func (s *shelf) start(t *testing.T, path, from string) []float32 {
	t.Helper()
	m, err := Open(path, s.options())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if m.PackedFrom() != from {
		t.Fatalf("packed from %q, want %q; warnings: %q", m.PackedFrom(), from, s.say)
	}
	return someLogits(t, m)
}

func someLogits(t *testing.T, m *Model) []float32 {
	t.Helper()
	seq := m.Pool().NewSeq()
	if err := m.Forward(&Step{Runs: []Run{{Seq: seq, Tokens: []int32{1, 20, 7, 33}, Outputs: 4}}}); err != nil {
		t.Fatal(err)
	}
	var all []float32
	for i := range m.Outputs() {
		all = append(all, m.Logits(i)...)
	}
	return append(all, m.Hidden(0)...)
}

// silent fails if anything was said, or nothing where something should be.
func (s *shelf) silent(t *testing.T, want ...string) {
	t.Helper()
	if len(s.say) != len(want) {
		t.Errorf("warnings: %q, want %d", s.say, len(want))
	}
	for i, w := range want {
		if i < len(s.say) && !strings.Contains(s.say[i], w) {
			t.Errorf("warning %q, want one with %q", s.say[i], w)
		}
	}
	s.say = nil
}

func (s *shelf) file(t *testing.T) string {
	t.Helper()
	list := packfile.List(s.dir)
	if len(list) != 1 {
		t.Fatalf("files: %+v, want one", list)
	}
	return list[0].Path
}

// tinyCopy is a copy of a tiny model, which a test may change.
func tinyCopy(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(tinyModels, name))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Every tiny model, from a GGUF file and from a Hugging Face folder, gives the
// same bits with weights that were kept, and has the same fingerprint; a later
// start packs nothing.
func TestKeptWeightsSameBits(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join(tinyModels, "*"))
	if err != nil || len(folders) == 0 {
		t.Fatal(folders, err)
	}
	paths := folders
	for _, f := range folders {
		if gg := filepath.Join(f, filepath.Base(f)+".gguf"); exists(gg) {
			paths = append(paths, gg)
		}
	}
	eachWay(t, func(t *testing.T, way string) {
		s := &shelf{dir: t.TempDir()}
		for _, path := range paths {
			plain, err := Open(path, Options{KV: tensor.F32, Workers: 2, Context: 16})
			if err != nil {
				t.Fatal(err)
			}
			want, print, size := someLogits(t, plain), plain.Fingerprint(), plain.WeightBytes()
			plain.Close()
			if got := s.start(t, path, ""); !slices.Equal(got, want) {
				t.Errorf("%s: other logits while the weights are written", path)
			}
			m, err := Open(path, s.options())
			if err != nil {
				t.Fatal(err)
			}
			if m.PackedFrom() != way {
				t.Errorf("%s: packed from %q", path, m.PackedFrom())
			}
			if !slices.Equal(someLogits(t, m), want) {
				t.Errorf("%s: other logits with weights that were kept", path)
			}
			if m.Fingerprint() != print || m.WeightBytes() != size || m.Parameters() != plain.Parameters() {
				t.Errorf("%s: another fingerprint or size", path)
			}
			m.Close()
		}
		s.silent(t)
		if list := packfile.List(s.dir); len(list) != len(paths) {
			t.Errorf("%d files for %d models", len(list), len(paths))
		}
	})
}

// Matrices that several workers copy in several pieces.
func TestKeptWeightsOfLargeMatrices(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	b, ok := builtin.Data(testdata.Tiny)
	if !ok {
		t.Fatal("no model is part of the program")
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	eachWay(t, func(t *testing.T, way string) {
		s := &shelf{dir: t.TempDir()}
		want := s.start(t, path, "")
		if got := s.start(t, path, way); !slices.Equal(got, want) {
			t.Error("other logits with weights that were kept")
		}
		s.silent(t)
		f, err := packfile.Open(s.file(t))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if !slices.ContainsFunc(f.Matrix, func(e packfile.Entry) bool { return e.Size > 2*unitBytes }) {
			t.Error("no matrix is large")
		}
	})
}

// A model file that was changed in any way never gets the weights that were
// kept before, not even if its size, its time and its name are the same.
func TestKeptWeightsOfChangedFile(t *testing.T) {
	eachWay(t, func(t *testing.T, way string) {
		path := tinyCopy(t, "llama/llama.gguf")
		s := &shelf{dir: t.TempDir()}
		first := s.start(t, path, "")
		s.start(t, path, way)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		back := func() { // the old time
			if err := os.Chtimes(path, st.ModTime(), st.ModTime()); err != nil {
				t.Fatal(err)
			}
		}
		b[len(b)-1000] ^= 0x40 // in the last matrix
		for name, change := range map[string]func() error{
			"written over": func() error { return os.WriteFile(path, b, 0o600) },
			"replaced": func() error {
				return errors.Join(os.WriteFile(path+".new", b, 0o600), os.Rename(path+".new", path))
			},
		} {
			if err := change(); err != nil {
				t.Fatal(err)
			}
			back()
			got := s.start(t, path, "")
			if slices.Equal(got, first) {
				t.Errorf("%s: the logits are those of the old file", name)
			}
			if again := s.start(t, path, way); !slices.Equal(again, got) {
				t.Errorf("%s: other logits with weights that were kept", name)
			}
		}
		s.silent(t)
		s.file(t) // and no second one
	})
}

// A model file that is changed while its weights wait to be written: they are
// not those of the file any more.
func TestKeptWeightsChangedMeanwhile(t *testing.T) {
	path := tinyCopy(t, "llama/llama.gguf")
	s := &shelf{dir: t.TempDir()}
	l := flock.New(filepath.Join(s.dir, ".lock"))
	if ok, err := l.TryLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	m, err := Open(path, s.options())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chtimes(path, time.Time{}, time.Now()), l.Unlock(), m.Close()); err != nil {
		t.Fatal(err)
	}
	s.silent(t, ErrChanged.Error())
	if list := packfile.List(s.dir); len(list) != 0 {
		t.Errorf("kept: %+v", list)
	}
}

// The packed weights are found whichever way leads to the model, and are those
// of the file, not of its name.
func TestKeptWeightsByAnyPath(t *testing.T) {
	defer func(was func(*Model, *packfile.File) bool) { inPlace = was }(inPlace)
	inPlace = func(*Model, *packfile.File) bool { return false }
	path := tinyCopy(t, "llama/llama.gguf")
	s := &shelf{dir: t.TempDir()}
	s.start(t, path, "")
	link := filepath.Join(t.TempDir(), "link.gguf")
	if err := os.Symlink(path, link); err != nil {
		t.Skipf("skipped: %v", err)
	}
	s.start(t, link, "copied")
	t.Chdir(filepath.Dir(path))
	s.start(t, filepath.Base(path), "copied")
	s.silent(t)
}

// A file that is damaged anywhere but in the middle of a matrix is found out,
// removed, and written again.
func TestKeptWeightsDamaged(t *testing.T) {
	eachWay(t, func(t *testing.T, way string) {
		path := tinyCopy(t, "llama/llama.gguf")
		s := &shelf{dir: t.TempDir()}
		want := s.start(t, path, "")
		file := s.file(t)
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, err := packfile.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		data := int(f.Size())
		entry := f.Matrix[3]
		f.Close()
		rng := rand.New(rand.NewPCG(1, 2))
		damage := map[string][]byte{
			"empty": {}, "a byte": {1}, "half": whole[:len(whole)/2], "no trailer": whole[:len(whole)-32], "a byte less": whole[:len(whole)-1],
			"a byte more": append(slices.Clone(whole), 0), "zeros": make([]byte, len(whole)), "only the directory": whole[data:],
			"a matrix of zeros": slices.Concat(whole[:entry.Offset], make([]byte, entry.Size), whole[entry.Offset+entry.Size:]),
		}
		for i := range 40 {
			b := slices.Clone(whole)
			at := data + rng.IntN(len(b)-data)
			b[at] ^= 1 << rng.IntN(8)
			damage[fmt.Sprintf("bit %d of the directory, byte %d", i, at-data)] = b
		}
		for name, b := range damage {
			if err := os.WriteFile(file, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := s.start(t, path, ""); !slices.Equal(got, want) {
				t.Errorf("%s: other logits", name)
			}
			if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, whole) {
				t.Errorf("%s: the file was not written again: %v", name, err)
			}
		}
		s.start(t, path, way)
		s.silent(t)
	})
}

// A file of another version, of other matrices, or of another model under the
// same name, is written again.
func TestKeptWeightsOfAnotherKind(t *testing.T) {
	defer func(was func(*Model, *packfile.File) bool) { inPlace = was }(inPlace)
	inPlace = func(*Model, *packfile.File) bool { return false }
	path := tinyCopy(t, "llama/llama.gguf")
	s := &shelf{dir: t.TempDir()}
	want := s.start(t, path, "")
	f, err := packfile.Open(s.file(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, change := range map[string]func(d *packfile.Directory){
		"key":              func(d *packfile.Directory) { d.Key = strings.Repeat("0", 64) },
		"a matrix less":    func(d *packfile.Directory) { d.Matrix = d.Matrix[:len(d.Matrix)-1] },
		"a matrix more":    func(d *packfile.Directory) { d.Matrix = append(d.Matrix, d.Matrix[0]) },
		"another name":     func(d *packfile.Directory) { d.Matrix[2].Name += "x" },
		"another type":     func(d *packfile.Directory) { d.Matrix[2].Type++ },
		"no such type":     func(d *packfile.Directory) { d.Matrix[2].Type = 1 << 30 },
		"more rows":        func(d *packfile.Directory) { d.Matrix[2].Rows += 16 },
		"too many columns": func(d *packfile.Directory) { d.Matrix[2].Cols = 1 << 40 },
	} {
		d := f.Directory
		d.Matrix = slices.Clone(d.Matrix)
		change(&d)
		if err := os.Remove(s.file(t)); err != nil {
			t.Fatal(err)
		}
		n := 0
		if err := packfile.Write(t.Context(), s.dir, &d, packfile.Writing{Bytes: func(i int) []byte {
			n++
			return f.Bytes(min(i, len(f.Matrix)-1))
		}}); err != nil || n == 0 {
			t.Fatal(n, err)
		}
		if got := s.start(t, path, ""); !slices.Equal(got, want) {
			t.Errorf("%s: other logits", name)
		}
		if name != "key" { // a file with the right key is not written again
			continue
		}
		s.start(t, path, "copied")
	}
	s.silent(t)
}

// What is mapped is cut short, or written to, while the model runs: an error,
// and no crash.
func TestKeptWeightsCutShort(t *testing.T) {
	defer func(was func(*Model, *packfile.File) bool) { inPlace = was }(inPlace)
	inPlace = func(*Model, *packfile.File) bool { return true }
	for _, how := range []string{"cut", "cut between", "written", "removed"} {
		path := tinyCopy(t, "llama/llama.gguf")
		s := &shelf{dir: t.TempDir()}
		want := s.start(t, path, "")
		m, err := Open(path, s.options())
		if err != nil {
			t.Fatal(err)
		}
		someLogits(t, m)
		file := s.file(t)
		switch how {
		case "cut", "cut between":
			err = os.Truncate(file, 0)
		case "written":
			if err = os.WriteFile(file, make([]byte, 100_000), 0o600); err == nil {
				err = os.Chtimes(file, time.Time{}, time.Now().Add(time.Second))
			}
		case "removed":
			err = os.Remove(file)
		}
		if err != nil {
			t.Fatal(err)
		}
		if how == "cut between" { // after the look at the file
			if err := m.guard(func() { m.net.run(m.exec, &Step{}, &m.rows) }); !errors.Is(err, ErrChanged) {
				t.Errorf("%s: %v", how, err)
			}
			m.Project(0, 1) // has no error to return
		}
		seq := m.Pool().NewSeq()
		err = m.Forward(&Step{Runs: []Run{{Seq: seq, Tokens: []int32{1, 20, 7, 33}, Outputs: 4}}})
		switch {
		case how == "removed" && (err != nil || !slices.Equal(m.Logits(0), want[:len(m.Logits(0))])):
			t.Errorf("%s: %v, or other logits", how, err)
		case how != "removed" && (!errors.Is(err, ErrChanged) || seq.Len() != 0):
			t.Errorf("%s: error %v, %d tokens", how, err, seq.Len())
		}
		m.Close()
	}
}

// A folder in which nothing can be written costs a warning, and nothing else.
func TestKeptWeightsWithoutFolder(t *testing.T) {
	path := tinyCopy(t, "llama/llama.gguf")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := &shelf{dir: file}
	want := s.start(t, path, "")
	s.silent(t, "not kept")
	if os.Geteuid() == 0 {
		return // may write everywhere
	}
	s.dir = t.TempDir()
	if err := os.Chmod(s.dir, 0o500); err != nil {
		t.Fatal(err)
	}
	if got := s.start(t, path, ""); !slices.Equal(got, want) {
		t.Error("other logits")
	}
	s.silent(t, fs.ErrPermission.Error())
}

// Models that start at the same time: one writes, all compute the same.
func TestKeptWeightsAtTheSameTime(t *testing.T) {
	eachWay(t, func(t *testing.T, way string) {
		path := tinyCopy(t, "llama/llama.gguf")
		s := &shelf{dir: t.TempDir()}
		var wg sync.WaitGroup
		all := make([][]float32, 8)
		for i := range all {
			wg.Go(func() {
				m, err := Open(path, s.options())
				if err != nil {
					t.Error(err)
					return
				}
				defer m.Close()
				all[i] = someLogits(t, m)
			})
		}
		wg.Wait()
		want := s.start(t, path, way)
		for i, got := range all {
			if !slices.Equal(got, want) {
				t.Errorf("start %d: other logits", i)
			}
		}
		s.silent(t)
		left, err := os.ReadDir(s.dir)
		if err != nil || len(left) != 2 { // and the lock
			t.Errorf("left: %v, %v", left, err)
		}
	})
}

// Nothing is kept of what is not read from files, nor for kernels that pack
// nothing.
func TestNothingKept(t *testing.T) {
	s := &shelf{dir: t.TempDir()}
	s.start(t, "builtin:tiny", "")
	restore := cpu.Set(cpu.Ref)
	s.start(t, tinyCopy(t, "llama/llama.gguf"), "")
	restore()
	if left, err := os.ReadDir(s.dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	s.silent(t)
}

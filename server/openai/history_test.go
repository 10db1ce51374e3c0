package openai

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/text/chat"
)

// Old answers make room, on the disk too, and what is not an answer is left
// alone.
func TestMemoryIsBounded(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"resp_000000000000000000000001.json": "nonsense", "resp_000000000000000000000002.json": `{"id":"resp_000000000000000000000003"}`, "other.json": "{}"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log := slog.New(slog.DiscardHandler)
	var m memory
	if err := m.open(dir, log); err != nil {
		t.Fatal(err)
	}
	var ids []string
	big := strings.Repeat("x", maxRememberedBytes/4)
	for range 6 {
		r := &remembered{ID: caller.NewID("resp_"), Owner: "a", Messages: []chat.Message{{Role: "user", Content: big}}}
		ids = append(ids, r.ID)
		if err := m.put(r, map[string]string{"id": r.ID}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(m *memory) {
		t.Helper()
		if n := m.order.Len(); n != 3 || m.bytes > maxRememberedBytes {
			t.Errorf("%d answers of %d bytes", n, m.bytes)
		}
		for i, id := range ids {
			if _, err := m.get(id, "a"); (err == nil) != (i >= 3) {
				t.Errorf("answer %d: %v", i, err)
			}
			if _, err := m.get(id, "b"); err == nil {
				t.Errorf("answer %d is another's", i)
			}
		}
	}
	check(&m)
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 6 {
		t.Errorf("%d files, %v", len(files), err)
	}
	var again memory
	if err := again.open(dir, log); err != nil {
		t.Fatal(err)
	}
	check(&again)
}

// What cannot be written, or is too large to be kept, is not said to be stored;
// what cannot be removed is not said to be deleted.
func TestMemorySaysWhatIsStored(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "responses")
	var m memory
	if err := m.open(dir, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	put := func(text string) (string, error) {
		r := &remembered{ID: caller.NewID("resp_"), Messages: []chat.Message{{Role: "user", Content: text}}}
		return r.ID, m.put(r, map[string]string{"id": r.ID})
	}
	kept, err := put("x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := put(strings.Repeat("x", maxRememberedBytes)); fault.As(err).Status != http.StatusBadRequest {
		t.Errorf("too large: %v", err)
	}
	if err := os.Rename(dir, dir+".moved"); err != nil {
		t.Fatal(err)
	}
	lost, err := put("x")
	if e := fault.As(err); err == nil || e.Code != "not_stored" || e.Status != http.StatusInternalServerError {
		t.Errorf("without a folder: %v", err)
	}
	if _, err := m.get(lost, ""); err == nil {
		t.Error("what was not stored is there")
	}
	if err := os.MkdirAll(filepath.Join(m.path(kept), "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := m.drop(kept, ""); err == nil {
		t.Error("deleted, but not on the disk")
	}
	if _, err := m.get(kept, ""); err != nil {
		t.Errorf("not deleted, and gone: %v", err)
	}
	if err := os.RemoveAll(m.path(kept)); err != nil {
		t.Fatal(err)
	}
	if err := m.drop(kept, ""); err != nil {
		t.Error(err)
	}
}

package suite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func openKept(t *testing.T, path string) *Kept {
	t.Helper()
	k, err := OpenKept(path)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestKept(t *testing.T) {
	for text, want := range map[string]string{
		"\n{\n":                         "line 2: expected a measured row",
		`{"identity": {}}`:              "line 1: result: expected an object, found none",
		`{"result": {"type_k": "f16"}}`: "line 1: expected a measured row: bench: result: test_time",
		"null":                          "line 1: result: expected",
	} {
		if _, err := OpenKept(write(t, text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	if _, err := OpenKept(t.TempDir()); err == nil {
		t.Error("a folder was opened")
	}
	if _, err := OpenKept(filepath.Join(t.TempDir(), "absent", "kept")); err == nil {
		t.Error("a file in no folder was opened, which can only fail after the first row")
	}
	var none *Kept
	if none.find(Identity{}) != nil || none.add(Measured{}) != nil {
		t.Error("nothing kept something")
	}
	// A last line without its end does not become one with the next.
	const line = `{"identity": {"model": "a"}, "result": {"type_k": "f16", "test_time": "2026-11-28T00:00:00Z"}}`
	path := write(t, line)
	k := openKept(t, path)
	again := k.rows[0]
	again.Identity.Model = "b"
	if err := k.add(again); err != nil {
		t.Fatal(err)
	}
	k = openKept(t, path)
	if len(k.rows) != 2 || k.find(Identity{Model: "a"}) == nil || k.find(Identity{Model: "b"}) == nil || !strings.HasPrefix(string(k.lines), line+"\n") {
		t.Errorf("%s", k.lines)
	}
}

const document = "# Title\n\ntext\n" + Begin + "\nold\ntables\n" + End + "\n\nmore\r\n"

func TestInto(t *testing.T) {
	path := write(t, document)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := CheckInto(path); err != nil {
		t.Error(err)
	}
	const want = "# Title\n\ntext\n" + Begin + "\nnew\n\n" + End + "\n\nmore\r\n"
	for range 2 { // a second time changes nothing
		if err := WriteInto(path, "new\n"); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(path); string(got) != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	for text, want := range map[string]string{
		"":                                      "expected " + Begin + " once, found it 0 times",
		strings.Replace(document, Begin, "", 1): "expected " + Begin + " once, found it 0 times",
		strings.Replace(document, End, "", 1):   "expected " + End + " once, found it 0 times",
		document + Begin:                        "expected " + Begin + " once, found it 2 times",
		document + End:                          "expected " + End + " once, found it 2 times",
		End + Begin:                             "expected " + Begin + " before " + End,
	} {
		path := write(t, text)
		for _, err := range []error{CheckInto(path), WriteInto(path, "new")} {
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
				t.Errorf("%q: error %v, want %q", text, err, want)
			}
		}
		if got, _ := os.ReadFile(path); string(got) != text {
			t.Errorf("%q was changed to %q", text, got)
		}
	}
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, filepath.Dir(path), path + "-absent"} {
		if CheckInto(path) == nil || WriteInto(path, "new") == nil {
			t.Errorf("%s was written", path)
		}
	}
	if got, _ := os.ReadFile(path); string(got) != want {
		t.Errorf("a file that is read-only was changed to %q", got)
	}
}

// Whatever a document holds and whatever is written, the rest stays, and only
// the last of several texts is there.
func TestIntoKeepsTheRest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "bytes")) })
		before, after := part.Draw(t, "before"), part.Draw(t, "after")
		texts := rapid.SliceOfN(part, 1, 3).Draw(t, "texts")
		if err := os.WriteFile(path, []byte(before+Begin+part.Draw(t, "old")+End+after), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			if err := WriteInto(path, text); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if want := before + Begin + "\n" + texts[len(texts)-1] + "\n" + End + after; err != nil || string(got) != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	})
}

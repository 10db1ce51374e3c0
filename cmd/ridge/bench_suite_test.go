package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ridge/measure/bench/suite"
	"ridge/measure/roofline"
	"ridge/weights/tensor"
)

func TestRowArgs(t *testing.T) {
	c := &suite.Case{Work: roofline.Work{Gen: 32, Depth: 4096, Seqs: 8}, Threads: 2, KV: tensor.Q8_0}
	want := "bench -o json -r 5 -t 2 --kv q8_0 --act int8 -d 4096 --npl 8 -p 0 -n 32 --peer a=b c -- -x.gguf"
	if got := strings.Join(rowArgs(c, "-x.gguf", 5, []string{"a=b c"}), " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	c = &suite.Case{Work: roofline.Work{Prompt: 4, Gen: 2, Seqs: 1}}
	want = "bench -o json -r 7 -t 0 --kv f32 --act int8 -d 0 --npl 1 -p 0 -n 0 --pg 4,2 -- x.gguf"
	if got := strings.Join(rowArgs(c, "x.gguf", 7, nil), " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The command that readers see has the folders of no machine, and is quoted.
func TestSuiteCommandText(t *testing.T) {
	f := suiteFlags{
		peers:  []string{"a=/opt/a b", `b="/opt/my programs/b" -x 'y z'`},
		models: []string{"m=/models/m.gguf"}, repeat: 9, seed: 2, into: "docs/speed.md", kept: "kept.jsonl", only: "x",
	}
	want := `ridge bench suite docs/speed.json \
  --peer "a=a b" \
  --peer "b=b -x 'y z'" \
  --model m=m.gguf \
  --repetitions 9 \
  --seed 2 \
  --into docs/speed.md`
	got := f.command("docs/speed.json")
	got = strings.ReplaceAll(got, `'b=b -x "y z"'`, `"b=b -x 'y z'"`) // the other kind of quotes says the same
	if got != want {
		t.Error(cmp.Diff(want, got))
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell")
	}
	for _, word := range []string{"", "a", "a b", "it's", `"`, `$HOME`, "`x`", `a\`, `'"`, "a!b", "~", "*"} {
		out, err := exec.Command(sh, "-c", "printf %s "+quoteWord(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("%q is quoted as %s, which a shell reads as %q (%v)", word, quoteWord(word), out, err)
		}
	}
}

// Ctrl-C while a peer runs ends the peer, too, and leaves the document alone.
func TestSuiteInterrupted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	document := suite.Begin + "\nold\n" + suite.End
	pid, into := filepath.Join(dir, "pid"), file("document.md", document)
	peer := file("peer", "#!/bin/sh\necho $$ > "+pid+".new\nmv "+pid+".new "+pid+"\nexec sleep 600\n")
	rows := file("suite.json", `{"models": {"m": {"title": "M", "from": "m"}}, "tables": [{"title": "T", "rows": [{"model": "m", "tests": ["tg1"], "peers": ["p"]}]}]}`)
	var stderr bytes.Buffer
	c := exec.Command("ridge", "bench", "suite", rows, "--model", "m="+tinyLlama, "--peer", "p="+peer, "--into", into)
	c.Stderr = &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var running int
	for end := time.Now().Add(patience); running == 0 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		text, _ := os.ReadFile(pid)
		running, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err := c.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted || !strings.HasSuffix(stderr.String(), "ridge: interrupted\n") {
		t.Errorf("%v: %s", err, stderr.String())
	}
	if p, err := os.FindProcess(running); running == 0 || err == nil && p.Signal(syscall.Signal(0)) == nil {
		t.Errorf("the peer, process %d, was not started or still runs", running)
	}
	if got, _ := os.ReadFile(into); string(got) != document {
		t.Errorf("the document is %q", got)
	}
}

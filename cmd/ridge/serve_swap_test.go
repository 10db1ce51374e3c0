//go:build unix

package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The folder of swapped sequences is there while the server runs, and gone with
// it; what one that was killed has left goes at the next start.
func TestServeSwapFolder(t *testing.T) {
	dir := t.TempDir()
	folders := func() (out []string) {
		entries, _ := os.ReadDir(filepath.Join(dir, "swap"))
		for _, e := range entries {
			if e.IsDir() {
				out = append(out, e.Name())
			}
		}
		return out
	}
	serve := func(end os.Signal) string {
		t.Helper()
		c := exec.Command("ridge", "serve", tinyLlama, "--port", "0", "--kv-memory", "1M", "--offline", "--data", dir, "--swap-ram", "1M", "--swap-disk", "10M", "--shed", "--deadline", "1m")
		c.Env = append(os.Environ(), "HOME="+dir)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		defer c.Process.Kill()
		lines := bufio.NewReader(out)
		if first, err := lines.ReadString('\n'); err != nil || !strings.Contains(first, "serves") {
			t.Fatalf("%q, %v", first, err)
		}
		go func() { _, _ = io.Copy(io.Discard, lines) }() // the rest is for people
		now := folders()
		if len(now) != 1 {
			t.Fatalf("the folders are %v", now)
		}
		if err := c.Process.Signal(end); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait() // who is killed ends with an error
		return now[0]
	}
	killed := serve(syscall.SIGKILL)
	if left := folders(); len(left) != 1 || left[0] != killed {
		t.Fatalf("the killed server left %v", left)
	}
	if next := serve(syscall.SIGTERM); next == killed {
		t.Error("the next server has the folder of the killed one")
	}
	if left := folders(); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

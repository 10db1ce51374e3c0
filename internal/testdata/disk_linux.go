package testdata

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// ownDisk tells a test that it is run by a child that may mount.
const ownDisk = "RIDGE_TEST_OWN_DISK"

// SmallDisk returns a folder on a file system of its own, of so many bytes, that
// goes with the test. Where the process may not mount one, a child does, which
// runs the same test once more as root of a name space of its own: then ok is
// false, the test has to return, and what became of the child is its result.
// It is called first in a test that is none of another's parts. Where name
// spaces are forbidden too the test is skipped.
func SmallDisk(t *testing.T, bytes int) (dir string, ok bool) {
	t.Helper()
	dir = t.TempDir()
	err := syscall.Mount("ridge", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes))
	if err == nil {
		t.Cleanup(func() {
			if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		return dir, true
	}
	if os.Getenv(ownDisk) != "" {
		t.Skipf("skipped: a small file system cannot be mounted: %v", err)
	}
	cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^"+regexp.QuoteMeta(t.Name())+"$", fmt.Sprintf("-test.short=%v", testing.Short()))
	cmd.Env = append(os.Environ(), ownDisk+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	switch {
	case cmd.Process == nil:
		t.Skipf("skipped: a small file system cannot be mounted: %v", err)
	case err != nil:
		t.Fatalf("with a disk of its own: %v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("skipped with a disk of its own:\n%s", out)
	}
	t.Logf("with a disk of its own:\n%s", out)
	return "", false
}

// Fill writes to the file at path until its disk is full.
func Fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 64 << 10; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
}

package keys

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	hash := sha256.Sum256([]byte("hidden"))
	write(t, path, "# people\nsk-1 name=alice requests=2 parallel=1 # me\n\nsha256:"+hex.EncodeToString(hash[:])+" name=bob day=10\n")
	var told []error
	s, err := New([]string{"given"}, path, func(err error) { told = append(told, err) })
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1e9, 0)
	s.now = func() time.Time { return now }
	for secret, name := range map[string]string{"sk-1": "alice", "hidden": "bob", "given": "key1"} {
		if k, ok := s.Find(secret); !ok || k.Name != name {
			t.Errorf("%s: got %v, %v", secret, k, ok)
		}
	}
	if _, ok := s.Find("sk-2"); ok {
		t.Error("found a key that is not there")
	}
	alice, _ := s.Find("sk-1")
	alice.Use(now, 5, 2)

	write(t, path, "sk-2 name=alice\n")
	now = now.Add(recheck)
	if _, ok := s.Find("sk-1"); ok {
		t.Error("a key that was taken out is still there")
	}
	if k, ok := s.Find("sk-2"); !ok || k.Today(now) != 7 {
		t.Error("the new key is not there, or what its owner used is forgotten")
	}
	write(t, path, "sk-3 name=carol speed=3\n")
	now = now.Add(recheck)
	if _, ok := s.Find("sk-2"); !ok {
		t.Error("a wrong file took the keys away")
	}
	if len(told) != 2 || told[0] != nil || told[1] == nil {
		t.Errorf("told %v", told)
	}
}

func TestWrongFiles(t *testing.T) {
	for _, text := range []string{"k requests=x", "k requests=-1", "k x", "sha256:12 name=a"} {
		path := filepath.Join(t.TempDir(), "keys")
		write(t, path, text)
		if _, err := New(nil, path, nil); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
	if _, err := New(nil, filepath.Join(t.TempDir(), "none"), nil); err == nil {
		t.Error("no error for a missing file")
	}
}

func TestLimits(t *testing.T) {
	now := time.Unix(1e9, 0)
	k := &Key{Limits: Limits{Requests: 2, Parallel: 3}}
	for range 2 {
		if _, err := k.Begin(now); err != nil {
			t.Fatal(err)
		}
	}
	_, err := k.Begin(now)
	var l *LimitError
	if !errors.As(err, &l) || l.RetryAfter < 29*time.Second || l.RetryAfter > 31*time.Second {
		t.Fatalf("got %v", err)
	}
	now = now.Add(l.RetryAfter)
	end, err := k.Begin(now)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	if _, err := k.Begin(now); err == nil {
		t.Fatal("four requests at one time")
	}
	end()
	end() // counts once
	if _, err := k.Begin(now); err != nil {
		t.Fatal(err)
	}

	k = &Key{Limits: Limits{Tokens: 60, Day: 200}}
	k.Use(now, 60, 30) // a debt of 30
	if _, err = k.Begin(now); !errors.As(err, &l) || l.RetryAfter != 31*time.Second {
		t.Fatalf("got %v after %v", err, l.RetryAfter)
	}
	now = now.Add(2 * time.Minute)
	if _, err = k.Begin(now); err != nil {
		t.Fatal(err)
	}
	k.Use(now, 110, 0)
	now = now.Add(10 * time.Minute)
	if _, err = k.Begin(now); !errors.As(err, &l) || l.RetryAfter > 24*time.Hour {
		t.Fatalf("got %v", err)
	}
	if _, err = k.Begin(now.Add(l.RetryAfter)); err != nil {
		t.Fatal(err)
	}
}

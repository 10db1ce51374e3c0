package hub

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// listOnDisk is List without the models that are part of the program.
func listOnDisk(o Options) ([]Model, error) {
	all, err := List(o)
	var out []Model
	for _, m := range all {
		if m.Owner != OwnerProgram {
			out = append(out, m)
		}
	}
	return out, err
}

// The embedded model is there on empty disks and without a network, under each
// spelling of its name; it is listed last and cannot be removed.
func TestEmbedded(t *testing.T) {
	sandbox(t)
	for _, name := range []string{"tiny", "Tiny", "tiny:latest", "builtin:tiny"} {
		m, err := Resolve(context.Background(), name, Options{Offline: true})
		if err != nil {
			t.Fatal(err)
		}
		if m.Name != EmbeddedName || m.Path() != "builtin:tiny" || m.Owner != OwnerProgram || m.Size < 1<<20 || m.License == "" {
			t.Errorf("%s: %+v", name, m)
		}
	}
	all, err := List(Options{})
	if err != nil || len(all) != 1 || all[0].Name != EmbeddedName {
		t.Errorf("List = %v, %v", all, err)
	}
	if err := Remove(EmbeddedName, Options{}); err == nil || !strings.Contains(err.Error(), "part of the program") {
		t.Errorf("Remove: %v", err)
	}
	if _, err := Find("tinny", Options{}); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), EmbeddedName) {
		t.Errorf("a misspelt name: %v", err)
	}
}

// Reachable is true for any answer, false in offline mode, and false within
// its bound for a server that says nothing.
func TestReachable(t *testing.T) {
	sandbox(t)
	t.Setenv("PIP_NO_INDEX", "1")
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	t.Setenv("HF_ENDPOINT", s.URL)
	const ref = "hf:org/model:Q4_0"
	if !Reachable(context.Background(), ref, Options{}) {
		t.Error("a server that answers 404 is not reachable")
	}
	if Reachable(context.Background(), ref, Options{Offline: true}) {
		t.Error("reachable in offline mode")
	}
	if Reachable(context.Background(), "tiny", Options{}) || Reachable(context.Background(), "no such name", Options{}) {
		t.Error("what cannot be downloaded is reachable")
	}
	release := make(chan struct{})
	mute := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer mute.Close()
	defer close(release)
	t.Setenv("HF_ENDPOINT", mute.URL)
	start := time.Now()
	if Reachable(context.Background(), ref, Options{}) || time.Since(start) > reasonable {
		t.Errorf("a mute server: %v", time.Since(start))
	}
	mute.CloseClientConnections()
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	t.Setenv("HF_ENDPOINT", dead.URL)
	if Reachable(context.Background(), ref, Options{}) {
		t.Error("a closed port is reachable")
	}
}

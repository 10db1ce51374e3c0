package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"ridge/internal/testdata"
)

// The setting of --act where nothing is said answers as nearly exact activations
// do a question whose answer int8 begins in French.
func TestCapital(t *testing.T) {
	path := testdata.Model(t, "smollm2")
	c := runCommand()
	c.SetErr(io.Discard)
	c.SetIn(strings.NewReader(""))
	out, err := runCobra(t, c, path, "What is the capital of France?", "--temp", "0", "-n", "8")
	if err != nil || !strings.Contains(out, "The capital of France is Paris") {
		t.Errorf("expected Paris, found %v\n%s", err, out)
	}
}

// A list that is asked for comes to an end.
func TestListsEnd(t *testing.T) {
	path := testdata.Model(t, "smollm2")
	c := runCommand()
	var notes bytes.Buffer
	c.SetErr(&notes)
	c.SetIn(strings.NewReader(""))
	out, err := runCobra(t, c, path, "Write a list of 20 animals.", "-n", "700")
	if err != nil || !strings.Contains(out, "\n20. ") || strings.Contains(out, "\n21. ") {
		t.Errorf("expected a list of 20, found %v\n%s", err, out)
	}
}

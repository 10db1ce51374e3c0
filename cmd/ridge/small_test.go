package main

import (
	"bytes"
	"strings"
	"testing"

	"ridge/internal/testdata"
)

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

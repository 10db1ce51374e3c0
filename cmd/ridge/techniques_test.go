package main

import (
	"strings"
	"testing"

	"ridge/internal/cmdline"
	"ridge/internal/techniques"
)

// The commands that show techniques are commands of this program, with flags
// that they have.
func TestTechniquesCommands(t *testing.T) {
	for _, x := range techniques.All {
		line, ours := strings.CutPrefix(x.Show, "ridge ")
		if !ours {
			continue
		}
		args, err := cmdline.Split(line)
		if err != nil {
			t.Fatal(err)
		}
		c, args, err := rootCommand().Find(args)
		if err == nil {
			err = c.ParseFlags(args)
		}
		if err == nil {
			err = c.ValidateArgs(c.Flags().Args())
		}
		if err != nil || c == c.Root() {
			t.Errorf("%s: %s: %v", x.ID, x.Show, err)
		}
	}
}

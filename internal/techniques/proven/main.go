// Proven reads what `go test -json` prints and prints what `go test` would: the
// result of each package, and the output of tests that failed. It fails if a test
// that the table of techniques names failed or did not run, and, when CI=true, if
// it or a part of it was skipped.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"ridge/internal/techniques"
)

// module begins the import paths of the tests.
const module = "ridge"

func main() {
	named := map[string][]string{}
	for _, x := range techniques.All {
		for _, test := range x.Tests {
			dir, name, _ := strings.Cut(test, " ")
			key := path.Join(module, dir) + " " + name
			named[key] = append(named[key], x.ID)
		}
	}
	if err := check(os.Stdin, os.Stdout, named, os.Getenv("CI") == "true"); err != nil {
		fmt.Fprintln(os.Stderr, "proven:", err)
		os.Exit(1)
	}
}

// event is one line of `go test -json`.
type event struct{ Action, Package, Test, Output string }

// check copies results from r to w. named has the ids of the techniques that a
// test "package Name" proves; strict forbids skipped ones.
func check(r io.Reader, w io.Writer, named map[string][]string, strict bool) error {
	said := map[string]map[string]string{} // by package and test, of those that run
	passed := map[string]bool{}
	var errs []error
	for d := json.NewDecoder(r); ; {
		var e event
		if err := d.Decode(&e); err == io.EOF {
			break
		} else if err != nil {
			return fmt.Errorf("expected the output of go test -json: %w", err)
		}
		if said[e.Package] == nil {
			said[e.Package] = map[string]string{}
		}
		top, _, _ := strings.Cut(e.Test, "/")
		key := e.Package + " " + top
		switch e.Action {
		case "build-output":
			fmt.Fprint(w, e.Output)
		case "output":
			if e.Test == "" {
				fmt.Fprint(w, e.Output)
				continue
			}
			said[e.Package][e.Test] += e.Output
		case "pass":
			passed[e.Package+" "+e.Test] = true
			delete(said[e.Package], e.Test)
		case "skip":
			if ids := named[key]; ids != nil && e.Test != "" {
				fmt.Fprintf(w, "%s\tskipped, and proves %s\n", e.Package+" "+e.Test, strings.Join(ids, ", "))
				if strict {
					errs = append(errs, fmt.Errorf("%s %s was skipped, and CI=true", e.Package, e.Test))
				}
				passed[key] = passed[key] || e.Test == top // is there, as was seen
			}
			delete(said[e.Package], e.Test)
		case "fail":
			if e.Test != "" {
				fmt.Fprint(w, said[e.Package][e.Test])
				delete(said[e.Package], e.Test)
				continue
			}
			errs = append(errs, fmt.Errorf("%s failed", e.Package))
			for _, out := range said[e.Package] { // of tests that did not come to an end
				fmt.Fprint(w, out)
			}
		}
	}
	for key, ids := range named {
		if !passed[key] {
			errs = append(errs, fmt.Errorf("%s, which proves %s, did not pass", key, strings.Join(ids, ", ")))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

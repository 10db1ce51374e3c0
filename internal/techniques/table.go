// Package techniques lists the techniques of the field that ridge has: what
// each is, how it is used, the tests that prove it, a command that shows it, and
// what is missing. The page docs/techniques.md is generated from it.
package techniques

import "slices"

// Technique is one row of the list.
type Technique struct {
	ID    string   `json:"id"`    // name in the surveys' atlas
	What  string   `json:"what"`  // one line
	Use   string   `json:"use"`   // flag, command or call
	Code  string   `json:"code"`  // file to begin reading
	Tests []string `json:"tests"` // package directory and test function each
	Show  string   `json:"show"`  // command whose output shows what is claimed
	Bench string   `json:"bench"` // package directory and benchmark, or a command; "" if speed is not the point
	// Missing is what the atlas asks for and ridge has not; "" if that is nothing.
	Missing string `json:"missing"`
}

// All are the techniques, by area.
var All = slices.Concat(architectures, kernels, formats, compressing, memory, scheduling, serving, speculation, measuring)

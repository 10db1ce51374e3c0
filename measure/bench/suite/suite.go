// Package suite measures a list of rows, each a test of a model beside other
// programs, and writes them as tables into a document. Rows that were measured
// by the same build on the same day are kept, so that a long list can be
// measured in several sittings.
package suite

import (
	"fmt"
	"os"
	"strings"

	"ridge/measure/roofline"
	"ridge/weights/tensor"
)

// Suite is what a suite file says.
type Suite struct {
	Models map[string]Model // by the names that rows use
	Tables []Table
}

// Model says where a model comes from: one of From and Synthetic is set.
type Model struct {
	Title     string // for readers
	From      string // name or file, as ridge pull takes it
	Synthetic string // shape and quantization of random weights, as bench.Synthetic takes it
}

// Table is a list of rows below a title.
type Table struct {
	Title string
	Cases []*Case
}

// Case is one line of a table: a test of a model.
type Case struct {
	Model   string // name in Suite.Models
	Title   string // of that model
	Work    roofline.Work
	Threads int // 0 for as many as are best
	KV      tensor.DType
	Tier    string            // kernels, as RIDGE_CPU names them; "" for the best of the machine
	Repeat  int               // measurements, at least
	Peers   []string          // names of the programs that are measured in turns
	Flags   map[string]string // words that a peer's command gets for this row alone, by name
}

// Cases returns the rows of all tables, in order.
func (s *Suite) Cases() []*Case {
	var all []*Case
	for _, t := range s.Tables {
		all = append(all, t.Cases...)
	}
	return all
}

// Peers returns the names of the programs that rows ask for, in order.
func (s *Suite) Peers() []string {
	var names []string
	for _, c := range s.Cases() {
		names = addNew(names, c.Peers...)
	}
	return names
}

// addNew adds to list what is not in it.
func addNew(list []string, more ...string) []string {
	seen := map[string]bool{}
	for _, s := range list {
		seen[s] = true
	}
	for _, s := range more {
		if !seen[s] {
			seen[s], list = true, append(list, s)
		}
	}
	return list
}

// ModelText names the model as a table does: its title, and the kernels if
// they are not the best.
func (c *Case) ModelText() string {
	if c.Tier == "" {
		return c.Title
	}
	return c.Title + ", " + strings.ToUpper(c.Tier)
}

// TestText names the test as a table does.
func (c *Case) TestText() string {
	text := c.Work.String()
	if c.KV != tensor.F16 {
		text += ", KV " + c.KV.String()
	}
	switch c.Threads {
	case 0:
	case 1:
		text += ", 1 thread"
	default:
		text += fmt.Sprintf(", %d threads", c.Threads)
	}
	return text
}

// Name is what a row is called while it is measured, and what patterns pick it
// by: "SmolLM2-135M Q8_0, AVX2: tg32 @ d4096".
func (c *Case) Name() string { return c.ModelText() + ": " + c.TestText() }

// maxFile bounds suite files, in bytes.
const maxFile = 1 << 20

// Read reads a suite file.
func Read(path string) (*Suite, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("bench suite: %w", err)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("bench suite: %s: expected at most %d bytes, found %d", path, maxFile, info.Size())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("bench suite: %w", err)
	}
	s, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("bench suite: %s: %w", path, err)
	}
	return s, nil
}

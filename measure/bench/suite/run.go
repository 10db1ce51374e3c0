package suite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"ridge/internal/cpu"
	"ridge/measure/bench"
)

// Peer is a program that rows name, and its command on this machine.
type Peer struct{ Name, Command string }

// Options say how a suite is measured.
type Options struct {
	Suite  *Suite
	Peers  []Peer // rows are measured without those that are not here
	Repeat int    // instead of what rows say, if more than 0

	// Only, when not nil, picks the rows that may be measured. Others are in
	// the report if they are kept.
	Only func(*Case) bool
	// Until, when not nil, reports whether another row may begin.
	Until func() bool
	Kept  *Kept

	Processors int // of this machine, for readers
	// Build, CPU and Day are those of the identities of rows.
	Build, CPU, Day string

	// Source names the content of a model that is on this machine, by its name
	// in the suite, and "" if it is not here. File fetches or makes it first.
	Source func(name string) string
	File   func(ctx context.Context, name string) (path string, err error)
	// Measure measures a row. peers are commands as bench.ParsePeer reads them.
	Measure func(ctx context.Context, c *Case, path string, repeat int, peers []string) (*bench.Result, error)
	// Progress, when not nil, is told of each row before it is measured, with
	// Measured nil, and after.
	Progress func(Row)
}

// Row is what became of a case. Without Measured, LeftOut and Err it is still
// to be measured.
type Row struct {
	*Case
	N, Of    int // place in the suite, from 1
	Measured *Measured
	Fresh    bool     // measured in this run and not kept from before
	LeftOut  string   // why it cannot be measured here
	NoPeers  []string // of its peers, those that are not here
	Err      error    // that measuring it gave
}

func (r *Row) open() bool { return r.Measured == nil && r.LeftOut == "" && r.Err == nil }

// Report is what a run of a suite gave: rows in the order of the suite.
type Report struct {
	Suite      *Suite
	Rows       []Row
	Processors int
}

// Open returns how many rows are still to be measured.
func (r *Report) Open() (n int) {
	for i := range r.Rows {
		if r.Rows[i].open() {
			n++
		}
	}
	return n
}

// Failed returns the errors of rows.
func (r *Report) Failed() []error {
	var all []error
	for _, row := range r.Rows {
		if row.Err != nil {
			all = append(all, fmt.Errorf("bench suite: %s: %w", row.Name(), row.Err))
		}
	}
	return all
}

// Run measures the rows of a suite that are not kept. A row that fails does not
// stop those after it. The report has all rows, also with an error, which is of
// ctx or of the file of kept results.
func Run(ctx context.Context, o Options) (*Report, error) {
	rep := &Report{Suite: o.Suite, Processors: o.Processors}
	cases := o.Suite.Cases()
	for i, c := range cases {
		r := Row{Case: c, N: i + 1, Of: len(cases)}
		_, r.NoPeers = o.peers(c)
		r.Measured = o.Kept.find(o.identity(c))
		rep.Rows = append(rep.Rows, r)
	}
	for i := range rep.Rows {
		r := &rep.Rows[i]
		if r.LeftOut = cannot(r.Case); r.LeftOut != "" || r.Measured != nil || o.Only != nil && !o.Only(r.Case) || o.Until != nil && !o.Until() {
			continue
		}
		if err := o.measure(ctx, r); err != nil {
			return rep, err
		}
		o.tell(*r)
	}
	return rep, nil
}

func (o *Options) tell(r Row) {
	if o.Progress != nil {
		o.Progress(r)
	}
}

// cannot says why a row cannot be measured on this processor, "" if it can.
func cannot(c *Case) string {
	tier, err := cpu.Parse(c.Tier)
	if c.Tier == "" || err == nil && tier.Runs() {
		return ""
	}
	return fmt.Sprintf("this processor runs %v, not %s", cpu.Tiers(), c.Tier)
}

func (o *Options) measure(ctx context.Context, r *Row) error {
	o.tell(*r)
	start := time.Now()
	path, err := o.File(ctx, r.Model)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.LeftOut = err.Error()
		return nil
	}
	peers, _ := o.peers(r.Case)
	// The identity is taken before: of a file that changes meanwhile nobody
	// knows which content was measured.
	m := &Measured{Identity: o.identity(r.Case)}
	m.Result, err = o.Measure(ctx, r.Case, path, o.repeat(r.Case), peers)
	if ctx.Err() != nil {
		return ctx.Err() // whatever the row says now, it is still to be measured
	}
	if r.Err = err; err != nil {
		return nil
	}
	if got := m.Result.Work.String(); got != r.Work.String() {
		r.Err = fmt.Errorf("expected a result of %s, found one of %s", r.Work, got)
		return nil
	}
	m.Seconds = time.Since(start).Seconds()
	r.Measured, r.Fresh = m, true
	return o.Kept.add(*m)
}

func (o *Options) repeat(c *Case) int {
	if o.Repeat > 0 {
		return o.Repeat
	}
	return c.Repeat
}

// peers returns the commands of a row's peers that are here, and the names of
// the others.
func (o *Options) peers(c *Case) (commands, missing []string) {
	for _, name := range c.Peers {
		i := slices.IndexFunc(o.Peers, func(p Peer) bool { return p.Name == name })
		if i < 0 {
			missing = append(missing, name)
			continue
		}
		commands = append(commands, strings.TrimSpace(name+"="+o.Peers[i].Command+" "+c.Flags[name]))
	}
	return commands, missing
}

func (o *Options) identity(c *Case) Identity {
	peers, _ := o.peers(c)
	tier := c.Tier
	if tier == "" {
		tier = cpu.Current().String()
	}
	return Identity{
		Model: c.Model, Source: o.Source(c.Model), Test: c.Work.String(), Threads: c.Threads, KV: c.KV.String(), Tier: tier,
		Repeat: o.repeat(c), Peers: strings.Join(peers, "; "), Build: o.Build, CPU: o.CPU, Day: o.Day,
	}
}

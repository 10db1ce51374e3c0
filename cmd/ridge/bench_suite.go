package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ridge/hub"
	"ridge/internal/cmdline"
	"ridge/measure/bench/suite"
	"ridge/measure/machine"
)

// suiteFlags are what of a suite is measured, and where it goes.
type suiteFlags struct {
	hubFlags
	into, only, kept, keep string
	peers, models          []string
	repeat                 int
	until                  time.Duration
	seed                   uint64
	list                   bool

	suite *suite.Suite
	paths map[string]string // files of models, by their names in the suite
	temp  string            // folder of synthetic models that are not kept
}

func benchSuiteCommand() *cobra.Command {
	var f suiteFlags
	c := &cobra.Command{
		Use:   "suite FILE",
		Short: "Measure a list of tests beside other programs, and write the tables into a document",
		Long: `Measure the rows of a suite file, each as "ridge bench" does and in a process of
its own, in turns with the programs that the row names. --peer gives the command
of a name on this machine, --model the file of a model; other models are found,
or fetched, by the names that the suite has for them. Rows whose model or peer is
missing are named below the tables.

With --keep-results rows of the same build, peers, models and day are not
measured again: a run that was cut off goes on, and --only and --for make short
sittings of a long list. With --into the tables replace what stands in a document
between the lines
  ` + suite.Begin + `
  ` + suite.End + `
once all rows are measured. Until then it stays as it is, and the status is 1.

A suite file is JSON: "models" by name, each with a "title" and "from" (a name as
ridge pull takes it, or a file) or "synthetic" (as --synthetic of ridge bench);
"tables", each with a "title" and "rows" of "model", "tests", "flags" (words for
the command of a peer, by its name), and, there or for a whole table, "peers",
"threads", "kv", "tier" (kernels, as RIDGE_CPU names them) and "repeat".`,
		Example: `  ridge bench suite docs/bench/speed.json --peer "llama.cpp=llama-bench -fa on" --into README.md
  ridge bench suite docs/bench/speed.json --only "Q8_0.*tg" --keep-results speed.jsonl
  ridge bench suite docs/bench/speed.json --list`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0]) },
	}
	fs := c.Flags()
	f.hubFlags.add(c)
	fs.StringVar(&f.into, "into", "", "document into which the tables are written (default: print them)")
	fs.StringVar(&f.only, "only", "", "regular expression: measure no other rows than those whose names, as --list prints them, match")
	fs.StringArrayVar(&f.peers, "peer", nil, "NAME=COMMAND of a program that rows name; may be repeated")
	fs.StringArrayVar(&f.models, "model", nil, "NAME=PATH of a model of the suite; may be repeated")
	fs.StringVar(&f.keep, "keep", "", "folder in which synthetic models are kept (default: removed at the end)")
	fs.StringVar(&f.kept, "keep-results", "", "file of measured rows, JSON lines: rows in it are not measured again")
	fs.DurationVar(&f.until, "for", 0, "begin no row later than this after the start, such as 60s; 0 for no limit")
	fs.IntVarP(&f.repeat, "repetitions", "r", 0, "times that each test is repeated (default: what the suite says; with peers at least 5)")
	fs.Uint64Var(&f.seed, "seed", 1, "seed of synthetic weights")
	fs.BoolVar(&f.list, "list", false, "print the names of the rows, and measure nothing")
	return c
}

func (f *suiteFlags) run(c *cobra.Command, file string) error {
	if f.repeat < 0 || f.until < 0 {
		return errors.New("--repetitions and --for: expected no negative values")
	}
	o, err := f.options(c, file)
	if err != nil {
		return err
	}
	if f.list {
		for _, k := range f.suite.Cases() {
			if o.Only == nil || o.Only(k) {
				fmt.Fprintln(c.OutOrStdout(), k.Name())
			}
		}
		return nil
	}
	if f.into != "" {
		if err := suite.CheckInto(f.into); err != nil {
			return err
		}
	}
	if f.kept != "" {
		if o.Kept, err = suite.OpenKept(f.kept); err != nil {
			return err
		}
	}
	bars := newProgress(os.Stderr)
	defer bars.close()
	if err := f.measuring(o, bars); err != nil {
		return err
	}
	defer func() { os.RemoveAll(f.temp) }()
	rep, err := suite.Run(c.Context(), *o)
	return errors.Join(err, f.write(c, file, rep, err == nil, bars))
}

// options reads the suite and the flags.
func (f *suiteFlags) options(c *cobra.Command, file string) (*suite.Options, error) {
	var err error
	if f.suite, err = suite.Read(file); err != nil {
		return nil, err
	}
	o := &suite.Options{Suite: f.suite, Repeat: f.repeat}
	if o.Peers, err = suitePeers(f.suite, f.peers); err != nil {
		return nil, err
	}
	f.paths = map[string]string{}
	for _, s := range f.models {
		name, path, ok := strings.Cut(s, "=")
		if _, known := f.suite.Models[name]; !ok || !known {
			return nil, fmt.Errorf("--model: expected NAME=PATH with a name of the suite's models, found %q", s)
		}
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("--model %s: %w", name, err)
		}
		f.paths[name] = path
	}
	if f.only != "" {
		re, err := regexp.Compile(f.only)
		if err != nil {
			return nil, fmt.Errorf("--only: %w", err)
		}
		o.Only = func(k *suite.Case) bool { return re.MatchString(k.Name()) }
		if !anyCase(f.suite, o.Only) {
			return nil, fmt.Errorf("--only: expected a pattern that a row's name matches (--list prints them), found %q", f.only)
		}
	}
	if f.until > 0 {
		end := time.Now().Add(f.until)
		o.Until = func() bool { return time.Now().Before(end) }
	}
	return o, nil
}

func anyCase(s *suite.Suite, is func(*suite.Case) bool) bool {
	for _, c := range s.Cases() {
		if is(c) {
			return true
		}
	}
	return false
}

// measuring adds to o what measures, and how models are found.
func (f *suiteFlags) measuring(o *suite.Options, bars *progress) error {
	self, err := selfPath()
	if err != nil {
		return err
	}
	if o.Build, err = buildText(self); err != nil {
		return err
	}
	ho, err := f.hubFlags.options(bars)
	if err != nil {
		return err
	}
	o.Processors, o.CPU, o.Day = runtime.NumCPU(), machine.Read().CPU, time.Now().Format(time.DateOnly)
	o.Source = func(name string) string { return f.source(name, ho) }
	o.File = func(ctx context.Context, name string) (string, error) { return f.file(ctx, name, ho, bars) }
	o.Measure = (&rowRunner{self: self}).measure
	o.Progress = rowProgress(bars, len(f.suite.Cases()))
	return nil
}

// suitePeers reads NAME=COMMAND for names that the suite knows and programs
// that are here.
func suitePeers(s *suite.Suite, flags []string) ([]suite.Peer, error) {
	var peers []suite.Peer
	given := map[string]bool{}
	known := s.Peers()
	for _, text := range flags {
		name, command, ok := strings.Cut(text, "=")
		found := false
		for _, k := range known {
			found = found || k == name
		}
		if !ok || !found || given[name] {
			return nil, fmt.Errorf("--peer: expected NAME=COMMAND, each once, with a name of %s, found %q", strings.Join(known, ", "), text)
		}
		given[name] = true
		words, err := cmdline.Split(command)
		if err == nil && len(words) == 0 {
			err = errors.New("expected a command, found none")
		}
		if err == nil {
			_, err = exec.LookPath(words[0])
		}
		if err != nil {
			return nil, fmt.Errorf("--peer %s: %w", name, err)
		}
		peers = append(peers, suite.Peer{Name: name, Command: command})
	}
	return peers, nil
}

// file returns the file of a model, which may be fetched or written first.
func (f *suiteFlags) file(ctx context.Context, name string, ho hub.Options, bars *progress) (string, error) {
	if path := f.paths[name]; path != "" {
		return path, nil
	}
	m := f.suite.Models[name]
	if m.Synthetic == "" {
		found, err := hub.Resolve(ctx, m.From, ho)
		if err != nil {
			return "", err
		}
		f.paths[name] = found.Path()
		return found.Path(), nil
	}
	dir := f.keep
	if dir == "" && f.temp == "" {
		var err error
		if f.temp, err = os.MkdirTemp("", "ridge-bench-"); err != nil {
			return "", err
		}
	}
	if dir == "" {
		dir = f.temp
	}
	return synthesize(dir, m.Synthetic, f.seed, bars)
}

// source names the content of a model: the same name is the same content.
func (f *suiteFlags) source(name string, ho hub.Options) string {
	m, path := f.suite.Models[name], f.paths[name]
	switch {
	case path != "":
	case m.Synthetic != "":
		return fmt.Sprintf("%s, seed %d", m.Synthetic, f.seed)
	default:
		found, err := hub.Find(m.From, ho)
		if err != nil {
			return ""
		}
		path = found.Path()
		f.paths[name] = path
	}
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return fmt.Sprintf("%s, %d bytes of %s", path, info.Size(), info.ModTime().UTC().Format(time.RFC3339Nano))
}

// write prints the tables, or writes them into the document if they are whole.
func (f *suiteFlags) write(c *cobra.Command, file string, rep *suite.Report, ended bool, bars *progress) error {
	text := rep.Markdown(f.command(file))
	if f.into == "" {
		_, err := fmt.Fprint(c.OutOrStdout(), text)
		return errors.Join(append(rep.Failed(), err)...)
	}
	if !ended {
		return nil // the document stays as it is, and the error is known
	}
	if failed := rep.Failed(); len(failed) > 0 {
		return errors.Join(append(failed, fmt.Errorf("bench suite: %s stays as it is: %d of %d rows failed", f.into, len(failed), len(rep.Rows)))...)
	}
	if n := rep.Open(); n > 0 {
		return fmt.Errorf("bench suite: %s stays as it is: %d of %d rows are still to be measured", f.into, n, len(rep.Rows))
	}
	if err := suite.WriteInto(f.into, text); err != nil {
		return err
	}
	bars.note(fmt.Sprintf("%s: %d rows written", f.into, len(rep.Rows)))
	return nil
}

// command is what makes the tables anew, without what is only for sittings and
// without the folders of this machine.
func (f *suiteFlags) command(file string) string {
	words := []string{"ridge bench suite " + quoteWord(shown(file))}
	add := func(name, value string) { words = append(words, "--"+name+" "+quoteWord(value)) }
	for _, p := range f.peers {
		name, command, _ := strings.Cut(p, "=")
		args, err := cmdline.Split(command)
		if err != nil || len(args) == 0 {
			continue // suitePeers has refused it
		}
		args[0] = filepath.Base(args[0])
		for i, a := range args {
			args[i] = quoteWord(a)
		}
		add("peer", name+"="+strings.Join(args, " "))
	}
	for _, m := range f.models {
		name, path, _ := strings.Cut(m, "=")
		add("model", name+"="+shown(path))
	}
	if f.repeat > 0 {
		add("repetitions", fmt.Sprint(f.repeat))
	}
	if f.seed != 1 {
		add("seed", fmt.Sprint(f.seed))
	}
	if f.into != "" {
		add("into", shown(f.into))
	}
	return strings.Join(words, " \\\n  ")
}

// shown is a path for readers on other machines.
func shown(path string) string {
	if filepath.IsAbs(path) {
		path = filepath.Base(path)
	}
	return filepath.ToSlash(path)
}

// quoteWord puts a word that a shell would split into quotes.
func quoteWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\n'\"\\$`&|;<>()*?[]{}~#!", r) }) {
		return s
	}
	if !strings.ContainsAny(s, "\"\\$`!") {
		return `"` + s + `"`
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

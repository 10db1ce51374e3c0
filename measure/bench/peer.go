package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ridge/internal/cmdline"
	"ridge/measure/roofline"
)

// Peer is another program that can do the same work and print its speed as
// llama-bench or llama-batched-bench do in JSON.
type Peer struct {
	Name string
	args []string
	kind peerKind
	ik   bool // llama-bench of ik_llama.cpp, which spells a depth in another way
}

type peerKind int

const (
	peerTemplate peerKind = iota // the command has places for the numbers
	peerBench                    // llama-bench: one sequence
	peerBatched                  // llama-batched-bench: several sequences
)

// PeerResult is a peer's speed at a work, measured in turns with ridge's.
type PeerResult struct {
	Name    string    `json:"name"`
	Version string    `json:"version"` // as the peer says, "" if it does not
	Samples []float64 `json:"samples_ts"`
	Speed   Spread    `json:"t_per_s"`
	// Ratio is ridge's median speed over the peer's. RatioMin and RatioMax are
	// the extremes of the ratios of neighbouring measurements.
	Ratio    float64 `json:"ratio"`
	RatioMin float64 `json:"ratio_min"`
	RatioMax float64 `json:"ratio_max"`
}

// ParsePeer reads a peer's command. Words are separated by spaces; quotes keep
// one together. If a word has one of {model} {pp} {tg} {depth} {seqs} {threads}
// {batch} {kv} {ctx}, the command is run with these replaced. Otherwise the
// flags of llama-bench are added, or of llama-batched-bench if the program's
// name has "batched" in it. A word NAME=PATH at the start names the peer. The
// llama-bench of ik_llama.cpp is known by its flag -rtr, which others do not
// have.
func ParsePeer(command string) (*Peer, error) {
	words, err := cmdline.Split(command)
	if err != nil {
		return nil, fmt.Errorf("bench: peer %q: %w", command, err)
	}
	if len(words) == 0 {
		return nil, errors.New("bench: peer: expected a command, found none")
	}
	p := &Peer{args: words, Name: filepath.Base(words[0]), kind: peerBench}
	if name, prog, ok := strings.Cut(words[0], "="); ok && name != "" && prog != "" {
		p.Name, p.args[0] = name, prog
	}
	for _, w := range words {
		if strings.Contains(w, "{model}") {
			p.kind = peerTemplate
			return p, nil
		}
	}
	if strings.Contains(filepath.Base(p.args[0]), "batched") {
		p.kind = peerBatched
	}
	p.ik = slices.Contains(words, "-rtr") || slices.Contains(words, "--run-time-repack")
	return p, nil
}

// command returns the arguments that make the peer do the work of r.
func (p *Peer) command(r *Result) []string {
	w := r.Work
	n := strconv.Itoa
	kv := kvName(r.KV)
	switch p.kind {
	case peerBench:
		args := []string{"-m", r.File, "-t", n(r.Threads), "-r", "1", "-o", "json", "-ub", n(w.Chunk), "-ctk", kv, "-ctv", kv}
		switch {
		case w.Prompt > 0 && w.Gen > 0:
			args = append(args, "-p", "0", "-n", "0", "-pg", n(w.Prompt)+","+n(w.Gen))
		case p.ik && w.Depth > 0:
			args = append(args, "-p", "0", "-n", "0", "-gp", n(w.Depth)+","+n(w.Gen))
		default:
			args = append(args, "-p", n(w.Prompt), "-n", n(w.Gen))
		}
		if w.Depth > 0 && !p.ik {
			args = append(args, "-d", n(w.Depth))
		}
		return append(append([]string{}, p.args...), args...)
	case peerBatched:
		prompt, gen := w.Prompt+w.Depth, max(w.Gen, 1)
		return append(append([]string{}, p.args...), "-m", r.File, "-t", n(r.Threads), "-c", n(w.Seqs*(prompt+gen)+64),
			"-ub", n(w.Chunk), "-ctk", kv, "-ctv", kv, "-npp", n(prompt), "-ntg", n(gen), "-npl", n(w.Seqs), "--output-format", "jsonl")
	}
	places := strings.NewReplacer("{model}", r.File, "{pp}", n(w.Prompt), "{tg}", n(w.Gen), "{depth}", n(w.Depth), "{seqs}", n(w.Seqs),
		"{threads}", n(r.Threads), "{batch}", n(w.Chunk), "{kv}", kv, "{ctx}", n(w.Seqs*w.Context()+64))
	var out []string
	for _, a := range p.args {
		out = append(out, places.Replace(a))
	}
	return out
}

// can says why the peer cannot do a work, nil if it can.
func (p *Peer) can(w roofline.Work) error {
	switch {
	case p.kind == peerBench && w.Seqs > 1:
		return errors.New("llama-bench runs one sequence (llama-batched-bench runs several)")
	case p.kind == peerBench && p.ik && w.Prompt > 0 && w.Depth > 0:
		return errors.New("the llama-bench of ik_llama.cpp reads prompts from the start only")
	case p.kind == peerBatched && w.Prompt > 0 && (w.Gen > 0 || w.Depth > 0):
		return errors.New("llama-batched-bench tells the speed of prompts from the start, or of generation, not of both")
	}
	return nil
}

// askPeer runs the peer once and notes its speed.
func (r *Result) askPeer(ctx context.Context, p *Peer) error {
	pr := r.peer(p.Name)
	args := p.command(r)
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return fmt.Errorf("peer %s: %w: %s", strings.Join(args, " "), err, lastLine(stderr.String()))
	}
	speed, version, err := readPeer(out, r.Work)
	if err != nil {
		return fmt.Errorf("peer %s: %w", strings.Join(args, " "), err)
	}
	pr.Samples, pr.Version = append(pr.Samples, speed), version
	return nil
}

func (r *Result) peer(name string) *PeerResult {
	for _, p := range r.Peers {
		if p.Name == name {
			return p
		}
	}
	p := &PeerResult{Name: name}
	r.Peers = append(r.Peers, p)
	return p
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// peerRecord has the fields of both programs that are read: those of
// llama-bench, and from PP on those of llama-batched-bench.
type peerRecord struct {
	Commit string  `json:"build_commit"`
	Number any     `json:"build_number"`
	Prompt int     `json:"n_prompt"`
	Gen    int     `json:"n_gen"`
	Depth  int     `json:"n_depth"`
	Seqs   *int    `json:"n_seqs"` // ridge's own
	Test   string  `json:"test"`   // of ik_llama.cpp: "tg32@pp4096" if only what is generated counts
	AvgTS  float64 `json:"avg_ts"`

	PP      *int    `json:"pp"`
	TG      int     `json:"tg"`
	PL      int     `json:"pl"`
	SpeedPP float64 `json:"speed_pp"`
	SpeedTG float64 `json:"speed_tg"`
}

func (r *peerRecord) seqs() int {
	if r.Seqs == nil {
		return 1
	}
	return *r.Seqs
}

// version is "" if the peer does not say which build it is.
func (r *peerRecord) version() string {
	if r.Commit == "" || r.Commit == "unknown" {
		return ""
	}
	return fmt.Sprintf("%s (%v)", r.Commit, r.Number)
}

// readPeer finds the speed of w in what a peer printed: a JSON array of
// records, or one record a line. Other lines are passed over.
func readPeer(out []byte, w roofline.Work) (speed float64, version string, err error) {
	records, err := peerRecords(out)
	if err != nil {
		return 0, "", err
	}
	for _, r := range records {
		switch {
		case r.PP != nil && r.PL == max(w.Seqs, 1):
			if w.Gen > 0 && r.TG == w.Gen && *r.PP == w.Prompt+w.Depth {
				return r.SpeedTG, "", positive(r.SpeedTG)
			}
			if w.Gen == 0 && *r.PP == w.Prompt {
				return r.SpeedPP, "", positive(r.SpeedPP)
			}
		case strings.Contains(r.Test, "@pp"):
			if w.Prompt == 0 && r.Gen == w.Gen && r.Prompt == w.Depth && max(w.Seqs, 1) == 1 {
				return r.AvgTS, r.version(), positive(r.AvgTS)
			}
		case r.PP == nil && r.Prompt == w.Prompt && r.Gen == w.Gen && r.Depth == w.Depth && r.seqs() == max(w.Seqs, 1):
			return r.AvgTS, r.version(), positive(r.AvgTS)
		}
	}
	return 0, "", fmt.Errorf("expected a record of %s, found %d other records", w, len(records))
}

func positive(speed float64) error {
	if !(speed > 0) {
		return fmt.Errorf("expected tokens per second, found %v", speed)
	}
	return nil
}

func peerRecords(out []byte) ([]peerRecord, error) {
	var records []peerRecord
	at := 0
	for line := range bytes.Lines(out) {
		rest := out[at:]
		at += len(line)
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] == '[' && json.NewDecoder(bytes.NewReader(rest)).Decode(&records) == nil {
			return records, nil
		}
		if len(line) == 0 || line[0] != '{' {
			continue
		}
		var r peerRecord
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("output: expected JSON, found %q: %w", clip(string(line), 80), err)
		}
		records = append(records, r)
	}
	if len(records) == 0 {
		return nil, fmt.Errorf("output: expected JSON records of llama-bench or llama-batched-bench, found %q: %w", clip(string(bytes.TrimSpace(out)), 80), io.ErrUnexpectedEOF)
	}
	return records, nil
}

func clip(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}

// finish compares the peer's speeds with ridge's.
func (p *PeerResult) finish(r *Result) {
	p.Speed = SpreadOf(p.Samples)
	p.Ratio = rate(r.Speed.Median, p.Speed.Median)
	var ratios []float64
	for i, s := range perSecond(r.Work.Tokens(), r.Seconds) {
		if i < len(p.Samples) {
			ratios = append(ratios, rate(s, p.Samples[i]))
		}
	}
	s := SpreadOf(ratios)
	p.RatioMin, p.RatioMax = s.Min, s.Max
}

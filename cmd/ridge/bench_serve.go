package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ridge/measure/bench/load"
)

// benchServeFlags are what a load test does.
type benchServeFlags struct {
	hubFlags
	url, model, key, api, tokenizer, extra string
	serve                                  string
	peers                                  []string
	eos, fresh                             bool

	workload           string
	w                  load.Workload
	trace              string
	share              float64
	clients, rates     string
	burstiness         float64
	requests, capacity int
	duration, timeout  time.Duration
	warmup, rounds     int
	slo                string
	seed               uint64

	json, records, verbose bool
	html, figures          string
	ready                  time.Duration
}

func benchServeCommand() *cobra.Command {
	var f benchServeFlags
	c := &cobra.Command{
		Use:   "serve [MODEL]",
		Short: "Put load on a server and measure what its clients see",
		Long: `Put load on a server that speaks OpenAI's protocol, and measure what its clients
see: times to the first token (TTFT), per token (TPOT), between tokens (ITL) and
to the end (E2E), throughput, goodput and failures.

Servers. With MODEL, "ridge serve MODEL" is started for the run, with the flags
of --serve. --peer starts another server for the same model; both are measured in
turns, who is first changing each round, and compared. In a peer's command {model}
{host} {port} are replaced; llama-server gets its flags for these by itself, and
the program "ridge" is this one: --peer "static=ridge --preset static". With --url
a server is measured that runs already.

Loads. --clients N is a closed loop: each client sends its next request when the
last one is answered. --rate R lets requests come by themselves, R a second: a
Poisson process, or with --burstiness below 1 in bursts (gamma distribution, as in
vLLM's benchmark). Both can be lists, 1,8,32, for a run each. --trace replays a
file of JSON lines with timestamp (ms), input_length, output_length and optionally
hash_ids or a prompt (Mooncake's format).

Workloads.
  sharegpt  lengths as in recorded conversations: log-normal with medians --input
            (120) and --output (170), at most --max-input and --max-output (1024);
            --sigma (1) is the spread of the answers
  fixed     prompts of --input (128) and answers of --output (64) tokens
  bimodal   prompts of --input (32) and answers of --output (16) tokens, one in eight
            of --max-output (400)
  prefix    prompts of --input (512) tokens of which --share (0.8) is common to a
            group, --groups (1) of these; answers of --output (32)
  turns     conversations of --turns (4) turns, --input (64) and --output (64)
            tokens each, with all that was said before, --pause between turns
  intruder  --streams (8) answers of --output (512) tokens under way all the time;
            --after 5s a prompt of --long (8000) tokens enters, --intruders times.
            Compares the time between tokens of the streams before and meanwhile
  agents    --streams (4) answers of --output (64) tokens under way all the time;
            --after 5s --intruders (10) coding agents come at once, which begin with
            the same --long (8000) tokens, or as many as leave room for the rest in
            the context that the server tells, and have --turns (4) turns with results
            of tools, --pause (2s) between them. Compares as intruder does
  trace     what --trace has; --speed and --scale change its clock and lengths

Texts are random words: as many as make the number of tokens, by the tokenizer of
MODEL or --tokenizer, else by what the server counted in a first request. Answers
have exactly their length where the server knows ignore_eos. Ctrl-C ends the run
and prints what there is.`,
		Example: `  ridge bench serve smollm2 --workload fixed --clients 8,32 --requests 128
  ridge bench serve smollm2 --clients 32 --rounds 3 --peer "llama-server -t 2 -np 32 -c 16384"
  ridge bench serve smollm2 --workload intruder --peer "llama-server -t 2 -np 9 -c 90000"
  ridge bench serve smollm2 --workload prefix --clients 4 --peer "no-cache=ridge --no-prefix-cache"
  ridge bench serve --url http://localhost:8000 --model NAME --rate 2 --slo ttft:1s,tpot:100ms --html report.html`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	f.add(c)
	return c
}

func (f *benchServeFlags) add(c *cobra.Command) {
	fs := c.Flags()
	f.hubFlags.add(c)
	fs.StringVar(&f.url, "url", "", "server that runs already, such as http://localhost:8000")
	fs.StringVar(&f.model, "model", "", "model that requests ask for (default with --url: the first one that the server lists)")
	fs.StringVar(&f.key, "api-key", "", "API key (also RIDGE_API_KEY, OPENAI_API_KEY)")
	fs.StringVar(&f.api, "api", "completions", "route: completions or chat")
	fs.StringVar(&f.tokenizer, "tokenizer", "", "local model whose tokenizer counts, for --url")
	fs.StringVar(&f.extra, "extra", "", `JSON with more fields for each request, such as {"top_k":40}`)
	fs.StringVar(&f.serve, "serve", "", "flags for ridge serve")
	fs.StringArrayVar(&f.peers, "peer", nil, "[NAME=]COMMAND of another server for the same model; may be repeated")
	fs.DurationVar(&f.ready, "ready", 3*time.Minute, "how long a server that is started may take to be ready")
	fs.BoolVar(&f.eos, "eos", false, "let models end their answers early: ignore_eos is not sent")
	fs.BoolVar(&f.fresh, "fresh", false, "a new connection for each request")

	fs.StringVarP(&f.workload, "workload", "w", "", "sharegpt, fixed, bimodal, prefix, turns, intruder, agents or trace (default: sharegpt, or trace with --trace)")
	fs.IntVar(&f.w.Input, "input", 0, "tokens of a prompt")
	fs.IntVar(&f.w.Output, "output", 0, "tokens of an answer")
	fs.IntVar(&f.w.MaxInput, "max-input", 0, "longest prompt of sharegpt and trace")
	fs.IntVar(&f.w.MaxOutput, "max-output", 0, "longest answer of sharegpt and trace")
	fs.Float64Var(&f.w.Sigma, "sigma", 0, "spread of sharegpt's answers: standard deviation of their logarithm (default 1)")
	fs.Float64Var(&f.share, "share", 0.8, "part of a prompt that is common to a group, 0 to 1")
	fs.IntVar(&f.w.Groups, "groups", 0, "groups with a common prefix")
	fs.IntVar(&f.w.Turns, "turns", 0, "turns of a conversation")
	fs.DurationVar(&f.w.Pause, "pause", 0, "between an answer and the next turn")
	fs.IntVar(&f.w.Streams, "streams", 0, "answers under way when an intruder comes")
	fs.IntVar(&f.w.Long, "long", 0, "tokens of the intruder's prompt, or of what agents have in common")
	fs.DurationVar(&f.w.After, "after", 0, "undisturbed time before each intruder, or the agents")
	fs.IntVar(&f.w.Intruders, "intruders", 0, "intruders, one after the other, or agents at once")
	fs.IntVar(&f.w.Priority, "intruder-priority", 0, "class of the intruders' requests, or the agents': 1 comes behind the others")
	fs.StringVar(&f.trace, "trace", "", "file of requests to replay")
	fs.Float64Var(&f.w.Speed, "speed", 1, "factor of a trace's clock: 2 is twice as fast")
	fs.Float64Var(&f.w.Scale, "scale", 1, "factor of a trace's lengths")
	fs.IntVar(&f.w.Block, "block", 0, "tokens of a trace's hashed blocks (default 512)")

	fs.StringVarP(&f.clients, "clients", "c", "", "clients of a closed loop; a list for a run each (default 8)")
	fs.StringVar(&f.rates, "rate", "", "requests that come per second; a list for a run each")
	fs.Float64Var(&f.burstiness, "burstiness", 1, "below 1 requests come in bursts, above it evenly")
	fs.IntVar(&f.capacity, "max-clients", 0, "with --rate or --trace: requests under way at one time, others wait")
	fs.IntVarP(&f.requests, "requests", "n", 0, "requests, or conversations, of a run (default 64, or what --duration or --trace hold)")
	fs.DurationVar(&f.duration, "duration", 0, "time in which requests begin")
	fs.DurationVar(&f.timeout, "timeout", 10*time.Minute, "time that a request may take")
	fs.IntVar(&f.warmup, "warmup", 1, "requests before a run that do not count")
	fs.IntVar(&f.rounds, "rounds", 0, "times that each load is run, with new texts (default 1, or 3 with --peer)")
	fs.StringVar(&f.slo, "slo", "", "what a good request keeps, such as ttft:500ms,tpot:50ms (also itl, e2e); with a list of loads, which of them is borne")
	fs.Uint64Var(&f.seed, "seed", 1, "seed of texts, lengths and arrivals")

	fs.BoolVar(&f.json, "json", false, "print JSON")
	fs.BoolVar(&f.records, "records", false, "with --json: every request, too")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "print the whole table of every run, even if there are many")
	fs.StringVar(&f.html, "html", "", "file for a report with plots")
	fs.StringVar(&f.figures, "figures", "", "folder for the plots as SVG files")
}

// run does all runs and prints them.
func (f *benchServeFlags) run(c *cobra.Command, args []string) error {
	loads, err := f.loads()
	if err != nil {
		return err
	}
	if err := writable(f.html); err != nil { // a run is long, and its page comes last
		return fmt.Errorf("--html: %w", err)
	}
	bars := newProgress(os.Stderr)
	defer bars.close()
	targets, stop, err := f.targets(c, args, bars)
	defer stop()
	if err != nil {
		return err
	}
	if f.rounds == 0 {
		f.rounds = 1
		if len(targets) > 1 {
			f.rounds = 3
		}
	}
	var all []*load.Report
	for i, l := range loads {
		reports, err := f.rounded(c, l, f.seed+uint64(i)*1e6, targets, bars)
		all = append(all, reports...)
		if err != nil {
			return errors.Join(err, f.write(c, all))
		}
		if !f.json && len(targets) > 1 {
			load.Compare(c.OutOrStdout(), reports)
		}
		if c.Context().Err() != nil {
			break
		}
	}
	if !f.json {
		load.Sweep(c.OutOrStdout(), all)
	}
	return errors.Join(f.write(c, all), c.Context().Err())
}

// writable reports why a file cannot be written, "" can. What is in it stays.
func writable(path string) error {
	if path == "" {
		return nil
	}
	_, absent := os.Stat(path)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil || absent == nil {
		return err
	}
	return os.Remove(path)
}

// rounded runs one load on all targets in turns, with texts that no other load
// and no other round has: servers keep what they have read.
func (f *benchServeFlags) rounded(c *cobra.Command, l load.Options, seed uint64, targets []*load.Target, bars *progress) ([]*load.Report, error) {
	var reports []*load.Report
	for round := range f.rounds {
		for i := range targets {
			if round%2 == 1 {
				i = len(targets) - 1 - i
			}
			o := l
			o.Target = targets[i]
			o.Workload.Text = f.w.Text
			o.Workload.Seed = seed + uint64(round)*1000
			if o.Arrivals != nil {
				a := *o.Arrivals
				a.Seed = o.Workload.Seed
				o.Arrivals = &a
			}
			label := fmt.Sprintf("%s, round %d of %d", o.Target.Name, round+1, f.rounds)
			o.Progress = loadProgress(bars, label)
			rep, err := load.Run(c.Context(), o)
			if err != nil {
				return reports, err
			}
			rep.Round = round + 1
			reports = append(reports, rep)
			switch {
			case f.json:
			case f.verbose || f.rounds == 1:
				rep.Print(c.OutOrStdout())
			default:
				fmt.Fprintf(c.OutOrStdout(), "%s: %d of %d answered, %.1f output tok/s, TTFT p50 %.0f ms, TPOT p50 %.1f ms, ITL p99 %.0f ms\n",
					label, rep.Completed, rep.Completed+rep.Failed, rep.OutputRate, rep.TTFT.P50, rep.TPOT.P50, rep.ITL.P99)
			}
			if rep.Interrupted {
				return reports, nil
			}
		}
	}
	return reports, nil
}

// loadProgress shows a run on one line of a terminal.
func loadProgress(bars *progress, label string) func(load.Progress) {
	if !bars.tty {
		return nil
	}
	var last load.Progress
	speed := 0.0
	return func(p load.Progress) {
		if d := (p.Elapsed - last.Elapsed).Seconds(); d > 0 {
			speed += (float64(p.Pieces-last.Pieces)/d - speed) * 0.3
		}
		last = p
		part := ""
		if p.Of > 0 {
			const width = 24
			full := min(width, width*p.Sessions/p.Of)
			part = fmt.Sprintf("[%s%s] %d/%d ", strings.Repeat("█", full), strings.Repeat("·", width-full), p.Sessions, p.Of)
		}
		fmt.Fprintf(os.Stderr, "\r\x1b[K%s %s%d running, %d failed, %.0f tok/s, %.0f s", label, part, p.Running, p.Failed, speed, p.Elapsed.Seconds())
		if p.Running == 0 && (p.Of == 0 || p.Sessions >= p.Of) {
			fmt.Fprint(os.Stderr, "\r\x1b[K")
		}
	}
}

// write prints JSON and writes the page with plots.
func (f *benchServeFlags) write(c *cobra.Command, all []*load.Report) error {
	if f.html != "" && len(all) > 0 {
		page, err := os.Create(f.html)
		if err != nil {
			return fmt.Errorf("--html: %w", err)
		}
		err = load.HTML(page, all, version())
		if err = errors.Join(err, page.Close()); err != nil {
			return fmt.Errorf("--html: %w", err)
		}
	}
	if f.figures != "" && len(all) > 0 {
		if err := load.WriteFigures(f.figures, all); err != nil {
			return fmt.Errorf("--figures: %w", err)
		}
	}
	if !f.json {
		return nil
	}
	if !f.records {
		for _, r := range all {
			r.Records = nil
		}
	}
	e := json.NewEncoder(c.OutOrStdout())
	e.SetIndent("", "  ")
	return e.Encode(all)
}

// loads are the runs that the flags ask for.
func (f *benchServeFlags) loads() ([]load.Options, error) {
	o := load.Options{Workload: f.w, MaxClients: f.capacity, Sessions: f.requests, Duration: f.duration, Timeout: f.timeout, Warmup: f.warmup}
	w := &o.Workload
	w.Kind, w.Share = load.Kind(f.workload), f.share
	if f.workload == "" {
		w.Kind = load.ShareGPT
		if f.trace != "" {
			w.Kind = load.Trace
		}
	}
	if f.trace != "" {
		in, err := os.Open(f.trace)
		if err != nil {
			return nil, fmt.Errorf("--trace: %w", err)
		}
		defer in.Close()
		if w.Trace, err = load.ReadTrace(in); err != nil {
			return nil, fmt.Errorf("--trace: %w", err)
		}
	}
	var err error
	if o.SLO, err = load.ParseSLO(f.slo); err != nil {
		return nil, fmt.Errorf("--slo: %w", err)
	}
	if f.rounds < 0 || f.warmup < 0 || f.requests < 0 || f.capacity < 0 || f.duration < 0 || f.timeout < 0 {
		return nil, errors.New("--rounds, --warmup, --requests, --max-clients, --duration and --timeout: expected no negative numbers")
	}
	check := *w
	if err := check.Complete(); err != nil {
		return nil, err
	}
	if f.clients == "" && f.rates == "" && f.trace == "" {
		f.clients = "8"
	}
	if o.Sessions == 0 && o.Duration == 0 && f.trace == "" {
		o.Sessions = 64
	}
	var all []load.Options
	for _, s := range strings.FieldsFunc(f.clients, isComma) {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("--clients: expected numbers from 1, found %q", s)
		}
		l := o
		if l.Clients = n; w.Kind == load.Intruder || w.Kind == load.Agents {
			l.Clients = 0
		}
		all = append(all, l)
	}
	for _, s := range strings.FieldsFunc(f.rates, isComma) {
		r, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil || !(r > 0) {
			return nil, fmt.Errorf("--rate: expected requests per second, found %q", s)
		}
		l := o
		l.Arrivals = &load.Arrivals{Rate: r, Burstiness: f.burstiness}
		all = append(all, l)
	}
	if len(all) == 0 || w.Kind == load.Intruder || w.Kind == load.Agents {
		all = []load.Options{o}
	}
	return all, nil
}

func isComma(r rune) bool { return r == ',' }

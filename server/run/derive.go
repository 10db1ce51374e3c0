package run

import (
	"cmp"
	"context"
	"time"

	"ridge/text/chat"
)

// Derivation says how a model differs from another one whose files it has.
type Derivation struct {
	Name      string
	Created   time.Time
	System    string         // of conversations that have no system message
	Before    []chat.Message // before each conversation, after the system message
	License   string         // "": the other's
	Template  string         // chat template, "": the other's
	Sampling  Sampling       // what is nil is the other's
	Stop      []string       // of requests that say none
	MaxTokens *int           // of requests that say none; nil: as many as fit
}

// Derive returns the model that differs from m as d says. It shares m's files and
// memory. An error is the template's.
func (m *Model) Derive(d *Derivation) (*Model, error) {
	out := m.twin(d.Name, d.Created)
	out.foreign, out.ownTmpl = m.foreign || d.Template != "", m.ownTmpl || d.Template != ""
	if d.License != "" {
		out.info.License = d.License
	}
	if d.Template != "" {
		err := m.templates.do(context.Background(), "template", d.Template, func(l chat.Limits) error {
			if err := out.setTemplate(d.Template, "", l); err != nil {
				return err
			}
			out.tmpl = out.tmpl.Within(chat.Limits{})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	out.ends = m.ends // of the vocabulary that grammars are compiled for
	out.hold = m.hold.With(out.syntax)
	out.defaults, out.stops, out.maxTokens = d.Sampling.Or(m.defaults), d.Stop, cmp.Or(d.MaxTokens, m.maxTokens)
	out.system, out.before = cmp.Or(d.System, m.system), d.Before
	return out, nil
}

// twin is a model of m's files and memory that does what m does, under another name.
func (m *Model) twin(name string, created time.Time) *Model {
	out := bare(m.backend, m.tok, m.info)
	out.base, out.slots, out.templates, out.adapters, out.own = m, m.slots, m.templates, m.adapters, m.own
	out.info.Name, out.info.Aliases, out.info.Created, out.info.Modified = name, nil, created, created
	out.tmpl, out.foreign, out.ownTmpl = m.tmpl, m.foreign, m.ownTmpl
	out.syntax, out.marks, out.ends, out.hold = m.syntax, m.marks, m.ends, m.hold
	out.defaults, out.stops, out.maxTokens = m.defaults, m.stops, m.maxTokens
	out.system, out.before, out.args, out.omit = m.system, m.before, m.args, m.omit
	return out
}

// opening puts a derived model's words before a conversation.
func (m *Model) opening(msgs []chat.Message) []chat.Message {
	if m.system == "" && len(m.before) == 0 {
		return msgs
	}
	var out []chat.Message
	if m.system != "" && (len(msgs) == 0 || msgs[0].Role != "system") {
		out = append(out, chat.Message{Role: "system", Content: m.system})
	} else if len(msgs) > 0 && msgs[0].Role == "system" {
		out, msgs = append(out, msgs[0]), msgs[1:]
	}
	return append(append(out, m.before...), msgs...)
}

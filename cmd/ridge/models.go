package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ridge"
	"ridge/hub"
	"ridge/internal/packfile"
	"ridge/text/chat"
	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// modelNames are the names that completion offers: what is here and what the
// catalogue has.
func modelNames() []string {
	var names []string
	if local, err := hub.List(hub.Options{Offline: true}); err == nil {
		for _, m := range local {
			names = append(names, m.Name)
		}
	}
	for _, e := range hub.Catalog() {
		names = append(names, e.Name)
	}
	return names
}

func pullCommand() *cobra.Command {
	var f hubFlags
	c := &cobra.Command{
		Use:   "pull MODEL...",
		Short: "Download models",
		Long: `Download models to this machine, unless they are here already: in ridge's own
store, or in the cache of Hugging Face, llama.cpp, Ollama or LM Studio, which
are used in place. An interrupted download goes on where it stopped.`,
		Example: `  ridge pull smollm2 gemma3:270m
  ridge pull hf:bartowski/SmolLM2-135M-Instruct-GGUF:Q8_0`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			for _, name := range args {
				bars := newProgress(os.Stderr)
				o, err := f.options(bars)
				if err != nil {
					return err
				}
				m, err := hub.Resolve(c.Context(), name, o)
				bars.close()
				if err != nil {
					return err
				}
				fmt.Fprintf(c.OutOrStdout(), "%s\t%s\t%s\n", m.Name, bytesText(m.Size), m.Path())
				if m.Note != "" {
					fmt.Fprintln(c.ErrOrStderr(), m.Note)
				}
			}
			return nil
		},
	}
	f.add(c)
	return c
}

func rmCommand() *cobra.Command {
	var packed bool
	c := &cobra.Command{
		Use:   "rm MODEL...",
		Short: "Delete models that ridge downloaded",
		Long: `Delete models that ridge downloaded, and the packed weights that --pack-cache has
kept of them; with --packed only these, of any model.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			for _, name := range args {
				if packed {
					n, err := hub.RemovePacked(name, hub.Options{Offline: true})
					if err != nil {
						return err
					}
					if n == 0 {
						return fmt.Errorf("%s: packed weights: none are kept", name)
					}
					fmt.Fprintf(c.OutOrStdout(), "deleted the packed weights of %s (%s)\n", name, bytesText(n))
					continue
				}
				if err := hub.Remove(name, hub.Options{}); err != nil {
					return err
				}
				fmt.Fprintf(c.OutOrStdout(), "deleted %s\n", name)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&packed, "packed", false, "delete the packed weights only")
	return c
}

func showCommand() *cobra.Command {
	var f modelFlags
	var asJSON, template bool
	c := &cobra.Command{
		Use:   "show MODEL",
		Short: "Describe a model: architecture, sizes, quantization, context, template",
		Long: `Describe a model: architecture, sizes, quantization, context, template. Of a model
of the catalogue that is not on this machine it prints what the catalogue tells: size,
licence, context and sources. Nothing is downloaded for that.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if e, ok := catalogued(c, args[0]); ok && !template {
				if asJSON {
					return writeJSON(c.OutOrStdout(), &e)
				}
				return writeEntry(c.OutOrStdout(), &e)
			}
			m, err := f.open(c, args[0], "")
			if err != nil {
				return err
			}
			defer m.Close()
			if template {
				_, err := fmt.Fprintln(c.OutOrStdout(), m.ChatTemplate())
				return err
			}
			info := describeModel(m)
			if asJSON {
				return writeJSON(c.OutOrStdout(), info)
			}
			return writeModelInfo(c.OutOrStdout(), info)
		},
	}
	f.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&template, "template", false, "print the chat template only")
	return c
}

// modelInfo is what show prints.
type modelInfo struct {
	Name         string            `json:"name"`
	Path         string            `json:"path"`
	Architecture string            `json:"architecture"`
	Parameters   int64             `json:"parameters"`
	Layers       int               `json:"layers"`
	Hidden       int               `json:"hidden_size"`
	FFN          int               `json:"feed_forward_size"`
	Heads        int               `json:"heads"`
	KVHeads      int               `json:"kv_heads"`
	HeadDim      int               `json:"head_dim"`
	Vocab        int               `json:"vocabulary"`
	Tokenizer    string            `json:"tokenizer"`
	Context      int               `json:"context"`
	ContextMade  int               `json:"context_trained"`
	Window       int               `json:"sliding_window,omitempty"`
	Types        map[string]string `json:"quantization"`
	Method       string            `json:"quantization_method,omitempty"`
	MethodNotes  []string          `json:"quantization_notes,omitempty"`
	WeightBytes  int64             `json:"bytes_per_token_weights"`
	KVBytes      int               `json:"bytes_per_position_kv"`
	License      string            `json:"license,omitempty"`
	HasTemplate  bool              `json:"chat_template"`
	Form         string            `json:"chat_form,omitempty"`
	Sampling     string            `json:"sampling,omitempty"`
	SamplingFrom string            `json:"sampling_from,omitempty"`
	ChatSampling string            `json:"sampling_of_chats,omitempty"`
	Pooling      string            `json:"pooling,omitempty"`
	Ends         []string          `json:"end_tokens"`
	Note         string            `json:"note,omitempty"`
	Packed       int64             `json:"packed_file_bytes,omitempty"`
	PackedFile   string            `json:"packed_file,omitempty"`
}

func describeModel(m *ridge.Model) modelInfo {
	c := m.Config()
	info := modelInfo{
		Name: m.Name, Path: m.Path, Architecture: c.Arch, Parameters: m.Parameters(),
		Layers: c.Layers, Hidden: c.Hidden, FFN: c.FFN, Heads: c.Heads, KVHeads: c.KVHeads[0], HeadDim: c.HeadDim,
		Vocab: c.Vocab, Tokenizer: m.Tokenizer().Kind(), Context: m.Context(), ContextMade: c.Context,
		WeightBytes: m.WeightBytes(), KVBytes: m.TokenBytes(), HasTemplate: m.ChatTemplate() != "",
		Types: map[string]string{}, License: m.From.License, Note: m.From.Note,
	}
	if !info.HasTemplate {
		info.Form = formText(m.Form())
	}
	d := m.Engine().Model().Defaults()
	info.Sampling, info.SamplingFrom, info.Pooling = d.Sampling.String(), d.Sampling.From, string(d.Pooling)
	if isSmall(m) {
		info.ChatSampling = fmt.Sprintf("repeat-penalty %g, repeat-last-n %d", smallPenalty, smallLastN)
	}
	for _, id := range m.Tokenizer().Ends() {
		info.Ends = append(info.Ends, string(m.Tokenizer().Piece(id)))
	}
	for _, w := range c.Window {
		info.Window = max(info.Window, w)
	}
	dir := packfile.Dir()
	if info.Packed = packfile.Kept(dir, m.Path); info.Packed > 0 {
		info.PackedFile = packfile.Path(dir, m.Path)
	}
	info.Method, info.MethodNotes = m.Engine().Model().Quantized()
	if f := m.Engine().Model().GGUF(); f != nil {
		info.Types = typesByClass(f.Tensors())
		info.License = cmp.Or(f.String("general.license", ""), info.License)
	}
	return info
}

// formText says what stands in for a chat template.
func formText(f chat.Form) string {
	if f.Known {
		return "none; the form " + f.Name + " is used, which the vocabulary or the name tells"
	}
	return "none; the form " + f.Name + " is used, whose marks the vocabulary lacks: this may be a base model, which continues text (run --raw)"
}

// typesByClass says how each class of tensors is stored: "attn_q": "Q4_0 x30".
func typesByClass(tensors []gguf.TensorInfo) map[string]string {
	counts := map[string]map[tensor.DType]int{}
	for _, t := range tensors {
		name := t.Name
		if rest, ok := strings.CutPrefix(name, "blk."); ok {
			_, name, _ = strings.Cut(rest, ".")
		}
		name = strings.TrimSuffix(name, ".weight")
		if counts[name] == nil {
			counts[name] = map[tensor.DType]int{}
		}
		counts[name][t.Type]++
	}
	out := map[string]string{}
	for name, byType := range counts {
		var parts []string
		for t, n := range byType {
			parts = append(parts, fmt.Sprintf("%v x%d", t, n))
		}
		sort.Strings(parts)
		out[name] = strings.Join(parts, ", ")
	}
	return out
}

func writeModelInfo(w io.Writer, in modelInfo) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(tw, name+"\t"+format+"\n", args...) }
	row("name", "%s", in.Name)
	row("file", "%s", in.Path)
	row("architecture", "%s", in.Architecture)
	row("parameters", "%.1f M", float64(in.Parameters)/1e6)
	row("layers", "%d of %d wide, feed-forward %d", in.Layers, in.Hidden, in.FFN)
	row("heads", "%d of %d, %d for keys and values", in.Heads, in.HeadDim, in.KVHeads)
	row("vocabulary", "%d (%s)", in.Vocab, in.Tokenizer)
	row("context", "%d in use, made for %d", in.Context, in.ContextMade)
	if in.Window > 0 {
		row("sliding window", "%d", in.Window)
	}
	row("bytes per token", "%s of weights, and %s for each position before it", bytesText(in.WeightBytes), bytesText(int64(in.KVBytes)))
	if in.License != "" {
		row("licence", "%s", in.License)
	}
	if in.Note != "" {
		row("note", "%s", in.Note)
	}
	row("chat template", "%s", map[bool]string{true: "the model's own", false: in.Form}[in.HasTemplate])
	row("end tokens", "%q", in.Ends)
	if in.Sampling != "" {
		row("sampling", "%s (%s)", in.Sampling, in.SamplingFrom)
	}
	if in.ChatSampling != "" {
		row("chats", "%s in ridge run, where no flag says otherwise", in.ChatSampling)
	}
	if in.Pooling != "" {
		row("pooling", "%s", in.Pooling)
	}
	if in.Packed > 0 {
		row("packed weights", "%s, kept in %s", bytesText(in.Packed), in.PackedFile)
	}
	if in.Method != "" {
		row("quantized by", "%s", in.Method)
	}
	for _, n := range in.MethodNotes {
		row("", "%s", n)
	}
	var names []string
	for n := range in.Types {
		names = append(names, n)
	}
	sort.Strings(names)
	for i, n := range names {
		row(map[bool]string{true: "quantization", false: ""}[i == 0], "%s: %s", n, in.Types[n])
	}
	return tw.Flush()
}

func inspectCommand() *cobra.Command {
	var asJSON, full bool
	var to, match string
	c := &cobra.Command{
		Use:   "inspect FILE|MODEL",
		Short: "Print the metadata and the tensor directory of a GGUF or safetensors file",
		Example: `  ridge inspect smollm2
  ridge inspect smollm2 --extract layer0.safetensors --match 'blk.0.*'`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if to != "" {
				bars := newProgress(os.Stderr)
				defer bars.close()
				n, err := extract(args[0], match, to, countBar(bars, "tensors"))
				if err == nil {
					fmt.Fprintf(c.OutOrStdout(), "%s: %d tensors\n", to, n)
				}
				return err
			}
			if match != "*" {
				return errors.New("--match: expected --extract beside it")
			}
			v, err := inspect(args[0], full || asJSON)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), v)
			}
			return v.write(c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&full, "full", false, "print long values whole")
	c.Flags().StringVar(&to, "extract", "", "write tensors to this safetensors file, as float32, instead of printing")
	c.Flags().StringVar(&match, "match", "*", "which tensors to extract: a pattern for their names, such as 'blk.0.*'")
	return c
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// bytesText prints a size for people.
func bytesText(n int64) string {
	switch {
	case n <= 0:
		return "?"
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
}

func ago(t time.Time) string {
	switch d := time.Since(t); {
	case t.IsZero():
		return ""
	case d < time.Hour:
		return fmt.Sprintf("%d minutes ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d hours ago", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days ago", int(d.Hours()/24))
	}
}

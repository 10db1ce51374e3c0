package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"ridge"
	"ridge/engine"
	"ridge/internal/atomicfile"
)

// embedFlags say how texts become embeddings.
type embedFlags struct {
	pooling, prompt, long string
	dim                   int
}

func (f *embedFlags) add(c *cobra.Command, prompt string) {
	c.Flags().StringVar(&f.pooling, "pooling", "own", "how states of tokens become one: own (as the model's files say), mean, last or cls")
	c.Flags().StringVar(&f.prompt, "prompt", "", "name of the model's own prompt that goes before texts (default: "+prompt+" if it has that, else as its files say)")
	c.Flags().StringVar(&f.long, "long", "refuse", "texts longer than the context: refuse, truncate, or windows (pieces of them, whose mean counts)")
	c.Flags().IntVar(&f.dim, "dimensions", 0, "numbers of an embedding that are kept, the first ones; 0 means all")
}

// open opens a model for texts of the kind that prompt names.
func (f *embedFlags) open(c *cobra.Command, model *modelFlags, name, prompt string) (m *ridge.Model, o ridge.Embedding, err error) {
	if m, err = model.open(c, name, ""); err != nil {
		return nil, o, err
	}
	if o, err = f.options(m, prompt); err != nil {
		m.Close()
		return nil, o, err
	}
	return m, o, nil
}

// options are the flags for m. texts are of the kind that prompt names.
func (f *embedFlags) options(m *ridge.Model, prompt string) (o ridge.Embedding, err error) {
	poolings := map[string]ridge.Pooling{"own": ridge.PoolOwn, "mean": ridge.PoolMean, "last": ridge.PoolLast, "cls": ridge.PoolCLS}
	longs := map[string]ridge.Long{"refuse": ridge.LongRefused, "truncate": ridge.LongTruncated, "windows": ridge.LongWindows}
	var ok bool
	if o.Pooling, ok = poolings[f.pooling]; !ok {
		return o, fmt.Errorf("--pooling: expected own, mean, last or cls, found %q", f.pooling)
	}
	if o.Long, ok = longs[f.long]; !ok {
		return o, fmt.Errorf("--long: expected refuse, truncate or windows, found %q", f.long)
	}
	if f.dim < 0 {
		return o, fmt.Errorf("--dimensions: expected 0 or more, found %d", f.dim)
	}
	d := m.Engine().Model().Defaults()
	if o.Prompt = f.prompt; o.Prompt == "" && d.Prompt == "" {
		if _, ok := d.Prompts[prompt]; ok {
			o.Prompt = prompt
		}
	}
	o.Dimensions = f.dim
	return o, nil
}

// embedded is a line that embed writes and search reads.
type embedded struct {
	ID        json.RawMessage `json:"id,omitempty"`
	Text      string          `json:"text,omitempty"`
	Embedding []float32       `json:"embedding,omitempty"`
}

func embedCommand() *cobra.Command {
	var f modelFlags
	var e embedFlags
	var to string
	var asJSON bool
	c := &cobra.Command{
		Use:   "embed MODEL [FILE]",
		Short: "Write embeddings of the lines of a file",
		Long: `Write the embedding of each line of FILE, or of standard input: texts, or with
--jsonl, or of a FILE whose name ends in .jsonl, objects with "text" and possibly
"id". Each is scaled to length 1.

The embeddings are lines of JSON with the texts, or in a FILE.npy rows of float32,
as numpy reads them. ridge search finds texts by them.`,
		Example: `  ridge embed ./all-MiniLM-L6-v2 docs.txt --out docs.jsonl
  ridge embed ./all-MiniLM-L6-v2 docs.jsonl --out docs.npy --long windows`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			name := "-"
			if len(args) == 2 {
				name = args[1]
			}
			in, name, err := openInput(c.InOrStdin(), name)
			if err != nil {
				return err
			}
			defer in.Close()
			m, o, err := e.open(c, &f, args[0], "document")
			if err != nil {
				return err
			}
			defer m.Close()
			bars := newProgress(os.Stderr)
			defer bars.close()
			lines := &textLines{in: in, name: name, json: asJSON || strings.HasSuffix(name, ".jsonl"), size: sizeOf(in)}
			lines.bar = countBar(bars, "texts")
			job := func(w vectorWriter) error { return embedLines(c, m, o, lines, w) }
			switch {
			case to == "":
				w := bufio.NewWriter(c.OutOrStdout())
				return errors.Join(job(&jsonVectors{w}), w.Flush())
			case strings.HasSuffix(to, ".npy"):
				return atomicfile.Write(to, func(w io.Writer) error { return writeNpy(w, job) })
			}
			return atomicfile.Write(to, func(w io.Writer) error {
				b := bufio.NewWriter(w)
				return errors.Join(job(&jsonVectors{b}), b.Flush())
			})
		},
	}
	f.add(c)
	e.add(c, "document")
	c.Flags().StringVarP(&to, "out", "o", "", "write to this file (.jsonl, or .npy for rows of float32) instead of standard output")
	c.Flags().BoolVar(&asJSON, "jsonl", false, "lines are JSON, whatever the file's name")
	return c
}

// vectorWriter takes embeddings in their order.
type vectorWriter interface{ write(e *embedded) error }

// jsonVectors writes lines of JSON.
type jsonVectors struct{ w io.Writer }

func (j *jsonVectors) write(e *embedded) error {
	b, err := json.Marshal(e)
	if err == nil {
		_, err = j.w.Write(append(b, '\n'))
	}
	return err
}

// embedLines embeds all lines.
func embedLines(c *cobra.Command, m *ridge.Model, o ridge.Embedding, lines *textLines, w vectorWriter) error {
	for v, err := range m.Embeddings(c.Context(), lines.texts(), o) {
		if err == nil {
			e := lines.took[0]
			lines.took = lines.took[1:]
			e.Embedding = v
			err = w.write(&e)
		}
		// A text is refused before the next one is taken.
		if long := (*engine.ContextError)(nil); errors.As(err, &long) {
			err = fmt.Errorf("%s: line %d: expected at most %d tokens, the context, found %d: see --long", lines.name, lines.no, long.Context, long.Tokens)
		}
		if err != nil {
			return errors.Join(lines.err, err)
		}
	}
	if lines.err == nil && lines.n == 0 {
		return fmt.Errorf("%s: expected texts, found none", lines.name)
	}
	return lines.err
}

// textLines are the texts of a file.
type textLines struct {
	in   io.Reader
	name string
	json bool
	size int64 // of the file, 0 if it is not known
	bar  func(done, total int)
	n    int   // texts
	no   int   // of the last line
	read int64 // bytes
	took []embedded
	err  error
}

// maxLine bounds a line.
const maxLine = 64 << 20

// texts gives the texts that are not empty.
func (l *textLines) texts() iter.Seq[string] {
	return func(yield func(string) bool) {
		s := bufio.NewScanner(l.in)
		s.Buffer(nil, maxLine)
		for s.Scan() {
			l.no++
			l.read += int64(len(s.Bytes())) + 1
			if len(bytes.TrimSpace(s.Bytes())) == 0 {
				continue
			}
			e, err := l.parse(s.Bytes())
			if err != nil {
				l.err = fmt.Errorf("%s: line %d: %w", l.name, l.no, err)
				return
			}
			l.n++
			l.took = append(l.took, e)
			if l.size > 0 {
				l.bar(l.n, max(l.n, int(float64(l.n)*float64(l.size)/float64(l.read))))
			}
			if !yield(e.Text) {
				return
			}
		}
		if err := s.Err(); err != nil {
			l.err = fmt.Errorf("%s: %w", l.name, err)
		}
	}
}

// parse reads a line.
func (l *textLines) parse(b []byte) (e embedded, err error) {
	if !l.json {
		e.Text = string(b)
		return e, nil
	}
	if err = json.Unmarshal(b, &e); err != nil {
		return e, fmt.Errorf(`expected an object with "text": %w`, err)
	}
	if e.Embedding = nil; e.Text == "" {
		return e, errors.New(`expected an object with "text", found none or an empty one`)
	}
	return e, nil
}

// sizeOf returns the size of a file, 0 if it is none.
func sizeOf(r io.Reader) int64 {
	if f, ok := r.(*os.File); ok {
		if st, err := f.Stat(); err == nil && st.Mode().IsRegular() {
			return st.Size()
		}
	}
	return 0
}

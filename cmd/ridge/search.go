package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ridge"
)

// found is a text that search has found.
type found struct {
	Index int             `json:"index"` // of its line
	ID    json.RawMessage `json:"id,omitempty"`
	Text  string          `json:"text,omitempty"`
	Score float64         `json:"score"` // cosine of the angle
}

func searchCommand() *cobra.Command {
	var f modelFlags
	var e embedFlags
	var texts string
	var k int
	var asJSON bool
	c := &cobra.Command{
		Use:   "search MODEL EMBEDDINGS QUERY",
		Short: "Find texts by their embeddings",
		Long: `Find the texts whose embeddings, as ridge embed wrote them with the same model, are
nearest to that of QUERY: all are compared, so that the nearest are the nearest.
EMBEDDINGS is a file of lines of JSON or a FILE.npy.`,
		Example: `  ridge search ./all-MiniLM-L6-v2 docs.jsonl "How do I reset my password?"
  ridge search ./all-MiniLM-L6-v2 docs.npy "opening hours" --texts docs.txt -k 3`,
		Args: cobra.ExactArgs(3),
		RunE: func(c *cobra.Command, args []string) error {
			if k < 1 {
				return fmt.Errorf("--top: expected 1 or more, found %d", k)
			}
			if strings.TrimSpace(args[2]) == "" {
				return errors.New("QUERY: expected a text, found none")
			}
			in, err := os.Open(args[1])
			if err != nil {
				return err
			}
			defer in.Close()
			m, o, err := e.open(c, &f, args[0], "query")
			if err != nil {
				return err
			}
			defer m.Close()
			q, err := embedQuery(c, m, o, args[2])
			if err != nil {
				return err
			}
			best := &nearest{query: q, k: k}
			if err := best.read(in, args[1]); err != nil {
				return fmt.Errorf("%s: %w", args[1], err)
			}
			if err := nameTexts(best.list, texts); err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), best.list)
			}
			return writeFound(c.OutOrStdout(), best.list)
		},
	}
	f.add(c)
	e.add(c, "query")
	c.Flags().StringVar(&texts, "texts", "", "file with the texts, a line each, of a FILE.npy")
	c.Flags().IntVarP(&k, "top", "k", 10, "texts to find")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func embedQuery(c *cobra.Command, m *ridge.Model, o ridge.Embedding, text string) ([]float32, error) {
	var q []float32
	for v, err := range m.Embeddings(c.Context(), slices.Values([]string{text}), o) {
		if err != nil {
			return nil, err
		}
		q = v
	}
	return q, nil
}

// nearest keeps the k embeddings nearest to a query, the nearest first; of equal ones
// the earlier.
type nearest struct {
	query []float32
	k, n  int
	list  []found
}

// add compares one embedding.
func (b *nearest) add(e *embedded) error {
	if len(e.Embedding) != len(b.query) {
		return fmt.Errorf("embedding %d: expected %d numbers, those of the query, found %d", b.n, len(b.query), len(e.Embedding))
	}
	var dot, square float64
	for i, x := range e.Embedding {
		dot, square = dot+float64(x)*float64(b.query[i]), square+float64(x)*float64(x)
	}
	if square > 0 {
		dot /= math.Sqrt(square)
	}
	if dot != dot {
		return fmt.Errorf("embedding %d: expected numbers, found NaN or infinities", b.n)
	}
	x := found{Index: b.n, ID: e.ID, Text: e.Text, Score: dot}
	b.n++
	if len(b.list) == b.k && b.list[b.k-1].Score >= dot {
		return nil
	}
	at, _ := slices.BinarySearchFunc(b.list, dot, func(f found, s float64) int {
		if f.Score >= s {
			return -1
		}
		return 1
	})
	b.list = slices.Insert(b.list, at, x)
	b.list = b.list[:min(len(b.list), b.k)]
	return nil
}

// read compares all embeddings of a file.
func (b *nearest) read(r io.Reader, name string) error {
	r = bufio.NewReaderSize(r, 1<<20)
	if strings.HasSuffix(name, ".npy") {
		return readNpy(r, func(v []float32) error { return b.add(&embedded{Embedding: v}) })
	}
	d := json.NewDecoder(r)
	for {
		var e embedded
		if err := d.Decode(&e); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("embedding %d: %w", b.n, err)
		}
		if err := b.add(&e); err != nil {
			return err
		}
	}
}

// nameTexts gives what was found the lines of a file.
func nameTexts(list []found, name string) error {
	if name == "" {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := &textLines{in: f, name: name, json: strings.HasSuffix(name, ".jsonl")}
	for range lines.texts() {
		for i := range list {
			if list[i].Index == lines.n-1 {
				list[i].Text, list[i].ID = lines.took[0].Text, lines.took[0].ID
			}
		}
		lines.took = lines.took[:0]
	}
	if lines.err != nil {
		return lines.err
	}
	if last := slices.MaxFunc(list, func(a, b found) int { return cmp.Compare(a.Index, b.Index) }); last.Index >= lines.n {
		return fmt.Errorf("--texts: %s: expected a line for each embedding, found %d", name, lines.n)
	}
	return nil
}

func writeFound(w io.Writer, list []found) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range list {
		text := strings.Join(strings.Fields(f.Text), " ")
		if id := string(f.ID); id != "" {
			text = id + "  " + text
		}
		fmt.Fprintf(tw, "%.4f\t%d\t%s\n", f.Score, f.Index, text)
	}
	return tw.Flush()
}

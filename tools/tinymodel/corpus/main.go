// Command corpus makes the training text of the embedded model: a teacher
// model answers prompts from a grammar of templates, and each token of an
// answer is written with the teacher's most probable tokens at that place, the
// soft targets of distillation.
//
//	go run ./tools/tinymodel/corpus -model teacher.gguf -out corpus.bin -tokens 1000000 -seed 1
//
// The same flags give the same file. Prompts fall into two disjoint sets by a
// hash of their text: -heldout writes answers to the small set only.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"time"

	"ridge/model"
)

// settings are the command's flags.
type settings struct {
	model, out string
	tokens     int
	seed       uint64
	slots      int
	workers    int
	limit      int
	heldout    bool
	greedy     bool
	natural    bool
	show       int
}

func main() {
	var s settings
	flag.StringVar(&s.model, "model", "", "the teacher: a GGUF file")
	flag.StringVar(&s.out, "out", "", "file to write")
	flag.IntVar(&s.tokens, "tokens", 100000, "answer tokens to write")
	flag.Uint64Var(&s.seed, "seed", 1, "seed of prompts and answers")
	flag.IntVar(&s.slots, "slots", 64, "conversations generated side by side")
	flag.IntVar(&s.workers, "workers", 0, "threads; 0: one per core")
	flag.IntVar(&s.limit, "limit", 110, "longest answer in tokens")
	flag.BoolVar(&s.heldout, "heldout", false, "use the prompts that training never sees")
	flag.BoolVar(&s.greedy, "greedy", false, "every answer greedily, one turn, each prompt once")
	flag.BoolVar(&s.natural, "natural", false, "do not end answers early at sentence ends")
	flag.IntVar(&s.show, "show", 0, "print this many conversations instead of writing a file")
	flag.Parse()
	if err := run(&s); err != nil {
		fmt.Fprintln(os.Stderr, "corpus:", err)
		os.Exit(1)
	}
}

func run(s *settings) error {
	o := model.DefaultOptions()
	o.Workers, o.PageTokens, o.Context = s.workers, 16, 1024
	o.KVBytes = int64(s.slots+1) * 640 * 30 * 2 * 192 * 2
	m, err := model.Open(s.model, o)
	if err != nil {
		return err
	}
	defer m.Close()
	g, err := newGenerator(m, s)
	if err != nil {
		return err
	}
	if s.show > 0 {
		return g.show(s.show)
	}
	f, err := os.Create(s.out)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	start, written, docs := time.Now(), 0, 0
	next := 50000
	err = g.run(func(d *document) (bool, error) {
		written += d.answer
		docs++
		if written >= next {
			next += 50000
			fmt.Printf("%d answer tokens, %d documents, %d dropped, %.0f tokens/s\n", written, docs, g.dropped, float64(written)/time.Since(start).Seconds())
			if err := w.Flush(); err != nil {
				return false, err
			}
		}
		return written < s.tokens, d.write(w)
	})
	if err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

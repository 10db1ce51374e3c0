package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"ridge/weights/gguf"
)

// Defaults are what a model's files recommend to those who use it, where they say
// nothing else.
type Defaults struct {
	Name     string // that the files or their folder have for the model, "" for none
	Sampling Sampling
	Pooling  Pooling
	// Prompts are what the model wants before texts, by what these are for, such as
	// "query"; Prompt names the one for texts of which nothing is said, "" for none.
	Prompts map[string]string
	Prompt  string
	// Labels are those of the model's classifier, in the order of its scores; nil if
	// the files do not name them. RawScores says that its only score is meant as it is,
	// and not behind a sigmoid.
	Labels    []string
	RawScores bool
	// Rerank is the text in which a reranker that writes otherwise reads two texts, with
	// {query} and {document} in their places; "" for none.
	Rerank string
}

// Sampling says how tokens should be chosen. What is nil is not said. Package
// sample has what the numbers mean.
type Sampling struct {
	Temperature, TopP, MinP, TypicalP, RepetitionPenalty   *float64
	XTCProbability, XTCThreshold, MirostatTau, MirostatEta *float64
	TopK, PenaltyLastN, Mirostat                           *int
	Samplers                                               []string // names of the steps in their order

	From string // the file that says it, "" if none does
}

// Pooling is how the states of a text's tokens become its embedding.
type Pooling string

// The poolings. Others are named as the files have them, and cannot be computed.
const (
	PoolingUnsaid Pooling = ""
	PoolingMean   Pooling = "mean"
	PoolingLast   Pooling = "last"
	PoolingCLS    Pooling = "cls"  // first token
	PoolingRank   Pooling = "rank" // scores by the model's classifier
)

// ReadDefaults reads the defaults of the model at path: of f, or without a file
// of the directory's generation_config.json and of sentence-transformers'
// modules.json.
func ReadDefaults(path string, f *gguf.File) (d Defaults, err error) {
	if d.Name = filepath.Base(path); f != nil {
		d = ggufDefaults(f)
	} else if err = d.Sampling.readHF(path); err == nil {
		var p parts
		p, err = hfParts(path)
		d.Pooling, d.Prompts, d.Prompt, d.Rerank = p.pooling, p.prompts, p.prompt, p.rerank
		if err == nil {
			err = d.readLabels(path)
		}
		if p.judge != nil {
			d.Labels = p.judge.labels()
		}
	}
	if err == nil {
		err = d.Sampling.check(path)
	}
	return d, err
}

func ggufDefaults(f *gguf.File) (d Defaults) {
	d.Name = f.String("general.name", "")
	if v, ok := f.Lookup(f.String("general.architecture", "") + ".classifier.output_labels"); ok {
		d.Labels, _ = v.([]string)
	}
	d.Rerank = f.String("tokenizer.chat_template.rerank", "")
	if j := ggufJudge(f); j != nil {
		d.Labels, d.Rerank = j.labels(), cmp.Or(d.Rerank, rerankPrompt)
	}
	s := &d.Sampling
	float := func(key string) *float64 {
		key = "general.sampling." + key
		if _, ok := f.Lookup(key); !ok {
			return nil
		}
		s.From = filepath.Base(f.Name())
		v := f.Float(key, 0)
		return &v
	}
	integer := func(key string) *int {
		v, _ := f.Lookup("general.sampling." + key)
		n, ok := asInt(v)
		if !ok {
			return nil
		}
		s.From = filepath.Base(f.Name())
		return &n
	}
	s.Temperature, s.TopP, s.MinP = float("temp"), float("top_p"), float("min_p")
	s.RepetitionPenalty = float("penalty_repeat")
	s.XTCProbability, s.XTCThreshold = float("xtc_probability"), float("xtc_threshold")
	s.MirostatTau, s.MirostatEta = float("mirostat_tau"), float("mirostat_eta")
	s.TopK, s.PenaltyLastN, s.Mirostat = integer("top_k"), integer("penalty_last_n"), integer("mirostat")
	if order := f.String("general.sampling.sequence", ""); order != "" {
		s.Samplers, s.From = strings.Split(order, ";"), filepath.Base(f.Name())
	}
	switch n := f.Uint(f.String("general.architecture", "")+".pooling_type", 0); n {
	case 0:
	case 1:
		d.Pooling = PoolingMean
	case 2:
		d.Pooling = PoolingCLS
	case 3:
		d.Pooling = PoolingLast
	case 4:
		d.Pooling = PoolingRank
	default:
		d.Pooling = Pooling(fmt.Sprint("type ", n))
	}
	return d
}

// readLabels reads the names of a classifier's labels, and whether its score is
// meant as it is, which cross-encoders say.
func (d *Defaults) readLabels(dir string) error {
	var c struct {
		Labels map[string]any `json:"id2label"`
		Act    string         `json:"sbert_ce_default_activation_function"`
		Cross  struct {
			Act string `json:"activation_fn"`
		} `json:"sentence_transformers"`
	}
	if _, err := readFile(dir, "config.json", &c); err != nil {
		return err
	}
	var s struct {
		Act string `json:"activation_fn"`
	}
	if _, err := readFile(dir, "config_sentence_transformers.json", &s); err != nil {
		return err
	}
	d.RawScores = strings.HasSuffix(c.Act, "Identity") || strings.HasSuffix(c.Cross.Act, "Identity") || strings.HasSuffix(s.Act, "Identity")
	for i := range len(c.Labels) {
		name, ok := c.Labels[strconv.Itoa(i)].(string)
		if !ok {
			d.Labels = nil
			return nil
		}
		d.Labels = append(d.Labels, name)
	}
	return nil
}

// readFile reads the JSON of a file of dir into v. A file that is not there is no
// error.
func readFile(dir, name string, v any) (found bool, err error) {
	path := filepath.Join(dir, name)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("model: %w", err)
	}
	if err := json.Unmarshal(strictJSON(b), v); err != nil {
		return false, fmt.Errorf("model: %s: %w", path, err)
	}
	return true, nil
}

// readHF reads generation_config.json. As in transformers, what chooses among
// tokens counts only where do_sample is true; a temperature that is not given is 1
// then.
func (s *Sampling) readHF(dir string) error {
	const name = "generation_config.json"
	var c struct {
		Sample      bool     `json:"do_sample"`
		Temperature *float64 `json:"temperature"`
		TopK        *float64 `json:"top_k"`
		TopP        *float64 `json:"top_p"`
		MinP        *float64 `json:"min_p"`
		TypicalP    *float64 `json:"typical_p"`
		Repetition  *float64 `json:"repetition_penalty"`
	}
	if _, err := readFile(dir, name, &c); err != nil {
		return err
	}
	if c.Repetition != nil && *c.Repetition != 1 {
		all := -1 // of the whole text, as transformers does
		s.RepetitionPenalty, s.PenaltyLastN, s.From = c.Repetition, &all, name
	}
	if !c.Sample {
		return nil
	}
	if s.From = name; c.Temperature == nil {
		one := 1.0
		c.Temperature = &one
	}
	s.Temperature, s.TopP, s.MinP, s.TypicalP = c.Temperature, c.TopP, c.MinP, c.TypicalP
	if c.TopK != nil {
		k := int(max(-1, min(*c.TopK, math.MaxInt32)))
		s.TopK = &k
	}
	return nil
}

// check reports the first number that no sampler takes.
func (s *Sampling) check(path string) error {
	for _, f := range []struct {
		name   string
		v      *float64
		lo, hi float64
	}{
		{"temperature", s.Temperature, 0, 100}, {"top_p", s.TopP, 0, 1}, {"min_p", s.MinP, 0, 1}, {"typical_p", s.TypicalP, 0, 1},
		{"repetition penalty", s.RepetitionPenalty, 0.01, 100}, {"xtc_probability", s.XTCProbability, 0, 1}, {"xtc_threshold", s.XTCThreshold, 0, 1},
		{"mirostat_tau", s.MirostatTau, 0, 1000}, {"mirostat_eta", s.MirostatEta, 0, 1000},
	} {
		if f.v != nil && !(*f.v >= f.lo && *f.v <= f.hi) {
			return fmt.Errorf("model: %s: %s: sampling: %s: expected %g to %g, found %g", path, s.From, f.name, f.lo, f.hi, *f.v)
		}
	}
	if n := s.Mirostat; n != nil && (*n < 0 || *n > 2) {
		return fmt.Errorf("model: %s: %s: sampling: mirostat: expected 0 to 2, found %d", path, s.From, *n)
	}
	return nil
}

// String lists what is said, as flags name it: "temperature 0.6, top-p 0.9".
func (s *Sampling) String() string {
	var parts []string
	add := func(name string, v *float64) {
		if v != nil {
			parts = append(parts, fmt.Sprintf("%s %.4g", name, *v))
		}
	}
	count := func(name string, n *int) {
		if n != nil {
			parts = append(parts, fmt.Sprintf("%s %d", name, *n))
		}
	}
	add("temperature", s.Temperature)
	count("top-k", s.TopK)
	add("top-p", s.TopP)
	add("min-p", s.MinP)
	add("typical", s.TypicalP)
	add("repeat-penalty", s.RepetitionPenalty)
	count("repeat-last-n", s.PenaltyLastN)
	add("xtc-probability", s.XTCProbability)
	add("xtc-threshold", s.XTCThreshold)
	count("mirostat", s.Mirostat)
	add("mirostat-ent", s.MirostatTau)
	add("mirostat-lr", s.MirostatEta)
	if s.Samplers != nil {
		parts = append(parts, "samplers "+strings.Join(s.Samplers, ";"))
	}
	return strings.Join(parts, ", ")
}

// hfEnds returns the tokens that end an answer by the files of a directory: all
// that any of them has.
func hfEnds(dir string) ([]int32, error) {
	var ends []int32
	for _, name := range []string{"generation_config.json", "config.json"} {
		var c struct {
			EOS  any `json:"eos_token_id"`
			Text struct {
				EOS any `json:"eos_token_id"`
			} `json:"text_config"`
		}
		if _, err := readFile(dir, name, &c); err != nil {
			return nil, err
		}
		for _, v := range []any{c.EOS, c.Text.EOS} {
			ids, ok := asInts(v)
			if id, one := asInt(v); one {
				ids, ok = []int{id}, true
			}
			if !ok && v != nil {
				return nil, fmt.Errorf("model: %s: eos_token_id: expected an integer or a list of them, found %s", filepath.Join(dir, name), describe(v))
			}
			for _, id := range ids {
				if id >= 0 && id < 1<<31 {
					ends = append(ends, int32(id))
				}
			}
		}
	}
	return ends, nil
}

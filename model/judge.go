package model

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ridge/weights/gguf"
	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

// judge makes a reranker of a model that writes text: it is asked whether a text
// answers a query, and what counts are the logits of two words behind the question.
// The rows of these words in the output matrix are the matrix of a classifier.
type judge struct {
	yes, no int // tokens; no is -1 where the logit of yes is the score
}

// classWeight is the last matrix of a classifier.
const classWeight = "cls.output.weight"

// rerankPrompt is the question of Qwen3-Reranker (Zhang et al. 2025, arXiv 2506.05176),
// with places for the two texts as GGUF files have them.
const rerankPrompt = "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. " +
	"Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n" +
	"<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n<Query>: {query}\n<Document>: {document}<|im_end|>\n" +
	"<|im_start|>assistant\n<think>\n\n</think>\n\n"

// labels names the scores.
func (j *judge) labels() []string {
	if j.no < 0 {
		return []string{"yes"}
	}
	return []string{"yes", "no"}
}

// rows returns the matrix of the classifier, a copy of rows of the output matrix.
func (j *judge) rows(m tensor.Mat) (tensor.Mat, error) {
	out := tensor.Mat{Type: m.Type, Cols: m.Cols}
	for _, id := range []int{j.yes, j.no} {
		if id < 0 {
			continue
		}
		if id >= m.Rows {
			return out, fmt.Errorf("token of a reranker: expected less than the %d of the output matrix, found %d", m.Rows, id)
		}
		out.Data = append(out.Data, m.Row(id)...)
		out.Rows++
	}
	return out, nil
}

// isReranker reports whether a name is that of Qwen3-Reranker, whose files say it
// nowhere else.
func isReranker(name string) bool {
	return strings.Contains(strings.NewReplacer(" ", "-", "_", "-").Replace(strings.ToLower(name)), "qwen3-reranker")
}

// readJudge reads the words of sentence-transformers' module LogitScore.
func (p *parts) readJudge(dir, path string) error {
	var c struct {
		Yes *int `json:"true_token_id"`
		No  *int `json:"false_token_id"`
	}
	file := filepath.Join(dir, path, "config.json")
	if found, err := readFile(filepath.Join(dir, path), "config.json", &c); err != nil {
		return err
	} else if !found || c.Yes == nil || *c.Yes < 0 || c.No != nil && *c.No < 0 {
		return fmt.Errorf("model: %s: expected true_token_id, and false_token_id or null, found none", file)
	}
	p.judge, p.pooling = &judge{yes: *c.Yes, no: -1}, PoolingRank
	if c.No != nil {
		p.judge.no = *c.No
	}
	return nil
}

// nameJudge makes a reranker of a folder that nothing but its name says to be one: its
// own, that of the repository in a cache of the hub, or the title of its README.
func (p *parts) nameJudge(dir string) error {
	var c struct {
		Type    string   `json:"model_type"`
		Classes []string `json:"architectures"`
	}
	if _, err := readFile(dir, "config.json", &c); err != nil || c.Type != "qwen3" || slices.Contains(c.Classes, "Qwen3ForSequenceClassification") {
		return err
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	name := filepath.Base(path)
	if at := filepath.Dir(path); filepath.Base(at) == "snapshots" {
		name += " " + filepath.Base(filepath.Dir(at))
	}
	readme, _ := os.ReadFile(filepath.Join(dir, "README.md"))
	if !isReranker(name) && !strings.Contains(strings.ToLower(string(readme)), "# qwen3-reranker") {
		return nil
	}
	var t struct {
		Model struct {
			Vocab map[string]int `json:"vocab"`
		} `json:"model"`
	}
	if _, err := readFile(dir, "tokenizer.json", &t); err != nil {
		return err
	}
	j := &judge{}
	for word, id := range map[string]*int{"yes": &j.yes, "no": &j.no} {
		n, ok := t.Model.Vocab[word]
		if !ok {
			return fmt.Errorf("model: %s: expected the tokens yes and no of a reranker, found no %q", filepath.Join(dir, "tokenizer.json"), word)
		}
		*id = n
	}
	p.judge, p.pooling, p.rerank = j, PoolingRank, rerankPrompt
	return nil
}

// ggufJudge returns the words of a GGUF file that is a reranker by its name alone: nil
// for others, such as one with the rows themselves.
func ggufJudge(f *gguf.File) *judge {
	if _, ok := f.Tensor(classWeight); ok || !isReranker(f.String("general.name", "")) || f.String("general.architecture", "") != "qwen3" {
		return nil
	}
	v, _ := f.Lookup("tokenizer.ggml.tokens")
	tokens, _ := v.([]string)
	j := &judge{slices.Index(tokens, "yes"), slices.Index(tokens, "no")}
	if j.yes < 0 || j.no < 0 {
		return nil
	}
	return j
}

// judgeFiles are the files of a model with the matrix of its judge.
type judgeFiles struct {
	hfFiles
	judge    *judge
	name, of string // of the matrix and of the one that has its rows
}

// beside adds the matrix of the judge, which may be nil, to the files of a checkpoint.
func (j *judge) beside(files hfFiles, l *hfNames, c *Config) (hfFiles, error) {
	if j == nil {
		return files, nil
	}
	has := map[string]bool{}
	for _, t := range files.Tensors() {
		has[t.Name] = true
	}
	rows := l.at("output.weight", has, c)
	if !rows.found {
		rows = l.at("token_embd.weight", has, c)
	}
	score := l.at(classWeight, has, c)
	if score.found || len(score.names) == 0 || len(rows.names) != 1 || rows.fix != nil {
		return nil, fmt.Errorf("expected a model whose output matrix scores words, found none")
	}
	return &judgeFiles{hfFiles: files, judge: j, name: score.names[0], of: rows.names[0]}, nil
}

// Tensors has no size for the matrix: its bytes are others'.
func (f *judgeFiles) Tensors() []safetensors.TensorInfo {
	all := slices.Clip(f.hfFiles.Tensors())
	for _, t := range all {
		if t.Name == f.of && len(t.Shape) == 2 {
			t.Name, t.Size, t.Shape = f.name, 0, slices.Clone(t.Shape)
			t.Shape[0] = uint64(len(f.judge.labels()))
			return append(all, t)
		}
	}
	return all
}

func (f *judgeFiles) Mat(name string) (tensor.Mat, error) {
	if name != f.name {
		return f.hfFiles.Mat(name)
	}
	m, err := f.hfFiles.Mat(f.of)
	if err != nil {
		return m, err
	}
	return f.judge.rows(m)
}

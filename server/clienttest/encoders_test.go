package clienttest

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	cohere "github.com/cohere-ai/cohere-go/v2"
	cohereclient "github.com/cohere-ai/cohere-go/v2/client"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"ridge/internal/testdata"
)

// crossEncoder is a tiny one with random weights.
const crossEncoder = "../../internal/tinymodel/encoders/xlm-roberta-class"

var documents = []string{"A man is eating food.", "Someone eats a piece of bread.", "The girl carries a baby.", "A cheetah chases its prey across a field."}

// golden returns some texts, and parts of their embeddings by the real all-MiniLM-L6-v2
// as Hugging Face transformers computes them: where they stand, and what they are. See
// internal/tinymodel/gen/minilm.py.
func golden(t *testing.T) (texts []string, check func(i int, v []float64)) {
	t.Helper()
	var g struct {
		Extra  []string
		Tokens []int
		Parts  string
	}
	b, err := os.ReadFile("../../testdata/minilm.json")
	if err == nil {
		err = json.Unmarshal(b, &g)
	}
	if err == nil {
		b, err = base64.StdEncoding.DecodeString(g.Parts)
	}
	if err != nil {
		t.Fatal(err)
	}
	parts := len(b) / 2 / len(g.Tokens)
	var number []int
	for i, text := range g.Extra {
		if text != "" && g.Tokens[i] < 512 { // the others were cut
			texts, number = append(texts, text), append(number, i)
		}
	}
	return texts, func(i int, v []float64) {
		t.Helper()
		i = number[i]
		if len(v) != 384 {
			t.Fatalf("text %d: %d numbers, want 384", i, len(v))
		}
		for k := range parts {
			at, want := (7*i+24*k)%384, float64(int16(binary.LittleEndian.Uint16(b[2*(parts*i+k):])))/32767
			if math.Abs(v[at]-want) > 1e-4 {
				t.Errorf("text %d, number %d: %v, want %v", i, at, v[at], want)
			}
		}
	}
}

// OpenAI's client gets the embeddings of transformers from the real model, as numbers
// and as base64, with fewer dimensions too.
func TestOpenAIEmbeddings(t *testing.T) {
	c := openai.NewClient(option.WithBaseURL(open(t, "minilm", testdata.Model(t, "minilm"))+"/v1"), option.WithAPIKey("x"), option.WithMaxRetries(0))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	texts, check := golden(t)
	p := openai.EmbeddingNewParams{Model: "minilm", Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: texts}}
	r, err := c.Embeddings.New(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Data) != len(texts) || r.Usage.TotalTokens == 0 {
		t.Fatalf("%d embeddings of %d texts, usage %+v", len(r.Data), len(texts), r.Usage)
	}
	for i, e := range r.Data {
		check(i, e.Embedding)
	}
	p.Input = openai.EmbeddingNewParamsInputUnion{OfString: openai.String(texts[0])}
	p.EncodingFormat = openai.EmbeddingNewParamsEncodingFormatBase64
	one, err := c.Embeddings.New(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	var raw struct {
		Data []struct{ Embedding string }
	}
	if err := json.Unmarshal([]byte(one.RawJSON()), &raw); err != nil || len(raw.Data) != 1 {
		t.Fatalf("%v: %s", err, one.RawJSON())
	}
	b, err := base64.StdEncoding.DecodeString(raw.Data[0].Embedding)
	if err != nil || len(b) != 4*384 {
		t.Fatalf("%v: %d bytes", err, len(b))
	}
	for i, want := range r.Data[0].Embedding {
		if got := math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])); got != float32(want) {
			t.Fatalf("base64: number %d: %v, want %v", i, got, want)
		}
	}
	p.EncodingFormat, p.Dimensions = openai.EmbeddingNewParamsEncodingFormatFloat, openai.Int(64)
	short, err := c.Embeddings.New(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	length, e := 0.0, short.Data[0].Embedding
	for _, x := range e {
		length += x * x
	}
	if len(e) != 64 || math.Abs(length-1) > 1e-5 || math.Abs(e[1]/e[0]-r.Data[0].Embedding[1]/r.Data[0].Embedding[0]) > 1e-3 {
		t.Errorf("%d numbers of length %v: %v", len(e), length, e[:2])
	}
}

// Cohere's client orders texts, by a cross-encoder and by the angle between embeddings of
// the real model.
func TestCohereRerank(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for name, path := range map[string]string{"cross": crossEncoder, "minilm": testdata.Model(t, "minilm")} {
		c := cohereclient.NewClient(cohereclient.WithBaseURL(open(t, name, path)), cohereclient.WithToken("x"))
		r, err := c.V2.Rerank(ctx, &cohere.V2RerankRequest{Model: name, Query: "A man eats bread.", Documents: documents})
		if err != nil {
			t.Fatal(err)
		}
		var order []int
		for i, x := range r.Results {
			order = append(order, x.Index)
			if x.RelevanceScore <= 0 && name == "cross" || x.RelevanceScore > 1 || i > 0 && x.RelevanceScore > r.Results[i-1].RelevanceScore {
				t.Errorf("%s: result %d: score %v", name, i, x.RelevanceScore)
			}
		}
		if sorted := slices.Sorted(slices.Values(order)); !slices.Equal(sorted, []int{0, 1, 2, 3}) {
			t.Errorf("%s: order %v", name, order)
		}
		if name == "minilm" && (order[0] > 1 || order[1] > 1) {
			t.Errorf("of texts about eating and others, the order is %v", order)
		}
		top, whole := 2, true
		docs := make([]*cohere.RerankRequestDocumentsItem, len(documents))
		for i, d := range documents {
			docs[i] = &cohere.RerankRequestDocumentsItem{String: d}
		}
		old, err := c.Rerank(ctx, &cohere.RerankRequest{Model: &name, Query: "A man eats bread.", Documents: docs, TopN: &top, ReturnDocuments: &whole})
		if err != nil {
			t.Fatal(err)
		}
		if len(old.Results) != 2 || old.Results[0].Index != order[0] || old.Results[0].Document == nil || old.Results[0].Document.Text != documents[order[0]] {
			t.Errorf("%s: version 1: %+v", name, old.Results)
		}
		if _, err := c.V2.Rerank(ctx, &cohere.V2RerankRequest{Model: name, Query: "x"}); err == nil || !strings.Contains(err.Error(), "documents") {
			t.Errorf("%s: without documents: %v", name, err)
		}
	}
}

// hub is a program with Hugging Face's own client, for the forms of its server of
// embeddings: it prints what it gets as JSON.
const hub = `
import json, sys
from huggingface_hub import InferenceClient
url, text, short = sys.argv[1:]
one = InferenceClient(model=url + "/embed").feature_extraction(text)
more = InferenceClient(model=url + "/embed").feature_extraction(short * 2000, normalize=True, truncate=True, truncation_direction="right")
print(json.dumps({"shapes": [one.shape, more.shape], "one": one[0].tolist(), "length": float((more[0] ** 2).sum())}))
`

// Hugging Face's client gets embeddings in the form of text-embeddings-inference.
func TestHuggingFaceEmbed(t *testing.T) {
	programs := os.Getenv("RIDGE_AGENT_PROGRAMS")
	if programs == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("RIDGE_AGENT_PROGRAMS is not set, and CI=true: the folder that server/testdata/agents/programs/install.sh fills")
		}
		t.Skip("skipped: RIDGE_AGENT_PROGRAMS is not set: the folder that server/testdata/agents/programs/install.sh fills")
	}
	texts, check := golden(t)
	cmd := exec.Command(filepath.Join(programs, "clients", "bin", "python"), "-c", hub, open(t, "minilm", testdata.Model(t, "minilm")), texts[0], "word ")
	cmd.Env = append(os.Environ(), "HF_TOKEN=x")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var got struct {
		Shapes [][]int
		One    []float64
		Length float64
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	check(0, got.One)
	if len(got.Shapes) != 2 || !slices.Equal(got.Shapes[0], []int{1, 384}) || !slices.Equal(got.Shapes[1], []int{1, 384}) || math.Abs(got.Length-1) > 1e-5 {
		t.Errorf("shapes %v, length %v", got.Shapes, got.Length)
	}
}

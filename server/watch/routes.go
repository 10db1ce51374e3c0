package watch

import "strings"

// Names of the APIs in the description of routes.
const (
	ofRidge     = "ridge"
	ofOpenAI    = "OpenAI"
	ofAnthropic = "Anthropic"
	ofOllama    = "Ollama"
	ofLlama     = "llama-server"
	ofVLLM      = "vLLM"
	ofTGI       = "Text Generation Inference"
	ofTEI       = "Text Embeddings Inference"
	ofOperation = "operation"
)

// described is what is said of each route.
var described = map[string]description{
	"GET /ridge/status":       {"What the server does now.", ofRidge, nil, nil, Status{}, ""},
	"GET /ridge/events":       {"The status every second, and steps as they come.", ofRidge, nil, nil, nil, "text/event-stream"},
	"GET /ridge/steps":        {"The last steps of a model.", ofRidge, []string{ofModel, "last at most so many, 120 if it is not there"}, nil, Steps{}, ""},
	"GET /ridge/kv":           {"What pages of keys and values are used for, and the prefix cache.", ofRidge, []string{ofModel}, nil, Pages{}, ""},
	"GET /ridge/roofline":     {"How near to its limits the machine works.", ofRidge, []string{ofModel}, nil, Roofline{}, ""},
	"GET /ridge/requests":     {"Requests that run, and the last that are over.", ofRidge, []string{"last at most so many, 200 if it is not there"}, nil, Requests{}, ""},
	"GET /ridge/keys":         {"Use and limits of keys.", ofRidge, nil, nil, Keys{}, ""},
	"GET /ridge/models":       {"Models that are here or can be pulled, and whether they fit.", ofRidge, nil, nil, Models{}, ""},
	"GET /ridge/adapters":     {"LoRA adapters that requests may name, and that clients may load.", ofRidge, nil, nil, Adapters{}, ""},
	"POST /ridge/load":        {"Load a model.", ofRidge, nil, nameBody{}, nil, ""},
	"POST /ridge/unload":      {"Unload a model when its requests are over.", ofRidge, nil, nameBody{}, nil, ""},
	"GET /ridge/openapi.json": {"This description.", ofRidge, nil, nil, nil, ""},

	"POST /v1/chat/completions":              {summary: "Answer a conversation.", tag: ofOpenAI},
	"POST /v1/chat/completions/input_tokens": {summary: "Count the tokens of a conversation's prompt.", tag: ofLlama},
	"POST /v1/chat/completions/render":       {summary: "The prompt of a conversation as text.", tag: ofVLLM},
	"POST /v1/completions":                   {summary: "Continue prompts.", tag: ofOpenAI},
	"POST /v1/embeddings":                    {summary: "Embed texts.", tag: ofOpenAI},
	"GET /v1/models":                         {summary: "List models.", tag: ofOpenAI},
	"GET /v1/models/{id...}":                 {summary: "Describe a model.", tag: ofOpenAI},
	"POST /v1/responses":                     {summary: "Answer with items.", tag: ofOpenAI},
	"GET /v1/responses/{id}":                 {summary: "An answer that was kept.", tag: ofOpenAI},
	"DELETE /v1/responses/{id}":              {summary: "Forget an answer.", tag: ofOpenAI},
	"POST /v1/responses/{id}/cancel":         {summary: "End an answer that is being streamed.", tag: ofOpenAI},
	"GET /v1/responses/{id}/input_items":     {summary: "What an answer answers.", tag: ofOpenAI},
	"POST /v1/responses/input_tokens":        {summary: "Count the tokens of what would be answered.", tag: ofOpenAI},
	"POST /v1/responses/compact":             {summary: "Sum up a conversation.", tag: ofOpenAI},
	"POST /v1/files":                         {summary: "Store a file.", tag: ofOpenAI},
	"GET /v1/files":                          {summary: "List files.", tag: ofOpenAI},
	"GET /v1/files/{id}":                     {summary: "Describe a file.", tag: ofOpenAI},
	"GET /v1/files/{id}/content":             {summary: "A file.", tag: ofOpenAI, kind: "application/octet-stream"},
	"DELETE /v1/files/{id}":                  {summary: "Remove a file.", tag: ofOpenAI},
	"POST /v1/batches":                       {summary: "Run the requests of a file.", tag: ofOpenAI},
	"GET /v1/batches":                        {summary: "List batches.", tag: ofOpenAI},
	"GET /v1/batches/{id}":                   {summary: "Describe a batch.", tag: ofOpenAI},
	"POST /v1/batches/{id}/cancel":           {summary: "Cancel a batch.", tag: ofOpenAI},
	"POST /v1/rerank":                        {summary: "Order documents by relevance.", tag: ofVLLM},
	"POST /v1/score":                         {summary: "How alike texts are.", tag: ofVLLM},
	"POST /pooling":                          {summary: "Embed texts.", tag: ofVLLM},
	"POST /embed":                            {summary: "Embed texts.", tag: ofTEI},
	"POST /classify":                         {summary: "Probabilities of a classifier's labels.", tag: ofVLLM},

	"POST /v1/messages":              {summary: "Answer a conversation.", tag: ofAnthropic},
	"POST /v1/messages/count_tokens": {summary: "Count the tokens of a conversation's prompt.", tag: ofAnthropic},

	"POST /api/chat":               {summary: "Answer a conversation.", tag: ofOllama, kind: "application/x-ndjson"},
	"POST /api/generate":           {summary: "Answer a prompt.", tag: ofOllama, kind: "application/x-ndjson"},
	"POST /api/embed":              {summary: "Embed texts.", tag: ofOllama},
	"POST /api/embeddings":         {summary: "Embed a text.", tag: ofOllama},
	"GET /api/tags":                {summary: "List models.", tag: ofOllama},
	"GET /api/ps":                  {summary: "List loaded models.", tag: ofOllama},
	"POST /api/show":               {summary: "Describe a model.", tag: ofOllama},
	"GET /api/version":             {summary: "Versions.", tag: ofOllama},
	"POST /api/pull":               {summary: "Download a model.", tag: ofOllama, kind: "application/x-ndjson"},
	"POST /api/push":               {summary: "Not offered: 501.", tag: ofOllama},
	"POST /api/copy":               {summary: "Give a model another name.", tag: ofOllama},
	"POST /api/create":             {summary: "Make a model from another one.", tag: ofOllama, kind: "application/x-ndjson"},
	"DELETE /api/delete":           {summary: "Remove a model.", tag: ofOllama},
	"HEAD /api/blobs/{digest}":     {summary: "Not offered: 501.", tag: ofOllama},
	"POST /api/blobs/{digest}":     {summary: "Not offered: 501.", tag: ofOllama},
	"GET /props":                   {summary: "What the server is.", tag: ofLlama},
	"GET /slots":                   {summary: "Sequences that run, and idle places.", tag: ofLlama},
	"POST /slots/{id}":             {summary: "Save, restore or erase what a sequence has computed.", tag: ofLlama, query: []string{"action save, restore or erase"}},
	"GET /lora-adapters":           {summary: "Adapters, and how much of each requests have that say nothing.", tag: ofLlama},
	"POST /lora-adapters":          {summary: "Set how much of each adapter requests have that say nothing.", tag: ofLlama, query: []string{ofModel}},
	"POST /tokenize":               {summary: "The tokens of a text.", tag: ofLlama},
	"POST /detokenize":             {summary: "The text of tokens.", tag: ofLlama},
	"POST /apply-template":         {summary: "The prompt of a conversation as text.", tag: ofLlama},
	"POST /completion":             {summary: "Continue prompts.", tag: ofLlama},
	"POST /infill":                 {summary: "Fill in between two texts.", tag: ofLlama},
	"POST /embedding":              {summary: "Embed texts.", tag: ofLlama},
	"GET /version":                 {summary: "The version.", tag: ofVLLM},
	"GET /load":                    {summary: "Requests under way.", tag: ofVLLM},
	"GET /tokenizer_info":          {summary: "What the tokenizer is.", tag: ofVLLM},
	"POST /v1/load_lora_adapter":   {summary: "Load an adapter, which requests may name as their model then.", tag: ofVLLM, kind: "text/plain"},
	"POST /v1/unload_lora_adapter": {summary: "Take an adapter's name away; answers under way keep it.", tag: ofVLLM, kind: "text/plain"},
	"POST /reset_prefix_cache":     {summary: "Empty the prefix cache.", tag: ofVLLM},
	"POST /{$}":                    {summary: "Continue a prompt.", tag: ofTGI},
	"POST /generate":               {summary: "Continue a prompt.", tag: ofTGI},
	"POST /generate_stream":        {summary: "Continue a prompt, as a stream.", tag: ofTGI, kind: "text/event-stream"},
	"GET /health":                  {summary: "Whether a model can answer.", tag: ofOperation},
	"GET /v1/health":               {summary: "Whether a model can answer.", tag: ofOperation},
	"GET /live":                    {summary: "Whether the engine does steps.", tag: ofOperation},
	"GET /ready":                   {summary: "Whether the server takes requests.", tag: ofOperation},
	"GET /ping":                    {summary: "Whether the engine does steps.", tag: ofOperation},
	"GET /metrics":                 {summary: "Metrics for Prometheus.", tag: ofOperation, kind: "text/plain"},
	"GET /{$}":                     {summary: "The page, for who accepts HTML, else a line that clients look for.", tag: ofOperation, kind: "text/html"},
	"GET /ui/{file}":               {summary: "The files of the page.", tag: ofOperation, kind: "text/html"},
}

// ofModel is the field of a query that names a model.
const ofModel = "model a loaded model, the first one if it is not there"

// same are routes under another name, by what is said of them.
var same = map[string]string{
	"POST /chat/completions": "POST /v1/chat/completions", "POST /chat/completions/input_tokens": "POST /v1/chat/completions/input_tokens",
	"POST /completions": "POST /v1/completions", "POST /embeddings": "POST /v1/embeddings", "GET /models": "GET /v1/models",
	"POST /responses": "POST /v1/responses", "POST /responses/input_tokens": "POST /v1/responses/input_tokens", "POST /responses/compact": "POST /v1/responses/compact",
	"POST /v2/rerank": "POST /v1/rerank", "POST /rerank": "POST /v1/rerank", "POST /reranking": "POST /v1/rerank", "POST /v1/reranking": "POST /v1/rerank", "POST /score": "POST /v1/score",
}

// describe is what is said of a route.
func describe(pattern string) description {
	if d, ok := described[pattern]; ok {
		return d
	}
	if of, ok := same[pattern]; ok {
		d := described[of]
		_, path, _ := strings.Cut(of, " ")
		d.summary = strings.TrimSuffix(d.summary, ".") + ", as " + path + "."
		return d
	}
	return description{tag: "undescribed"}
}

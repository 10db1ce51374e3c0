package pagetest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"ridge/server"
)

// Conversations go to a file and come back from it; a damaged file changes nothing.
// A text file is dropped in, and the meter tells that the context does not hold it.
func TestExportImport(t *testing.T) {
	url := start(t)
	b := browse(t, url, 1200, 800)
	b.ask("Hello")
	b.until(`document.querySelectorAll(".conversations li").length === 1`)
	// A download would leave the test's reach: its contents are kept.
	value[any](b, `(() => { const create = URL.createObjectURL; URL.createObjectURL = (x) => (window.saved = x, create(x)); HTMLAnchorElement.prototype.click = () => {} })()`)
	b.press(".side", "Export")
	b.until(`window.saved`)
	file := filepath.Join(t.TempDir(), "conversations.json")
	text := value[string](b, `window.saved.text()`)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	want := value[string](b, `document.querySelector(".log").innerText`)
	b.do(chromedp.Click(`.conversations [aria-label^="Delete"]`), chromedp.Click("dialog .primary"))
	b.until(`document.querySelectorAll(".conversations li").length === 0`)
	damaged := filepath.Join(t.TempDir(), "damaged.json")
	if err := os.WriteFile(damaged, []byte(strings.Replace(text, `"parent": null`, `"parent": "nobody"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.SetUploadFiles(`.side input[type=file]`, []string{damaged}))
	b.until(`document.querySelector(".toast.error")?.innerText.includes("damaged")`)
	b.do(chromedp.SetUploadFiles(`.side input[type=file]`, []string{file}))
	b.until(`document.querySelectorAll(".conversations li").length === 1`)
	b.do(chromedp.Click(".conversations .title"))
	b.until(`document.querySelectorAll(".message").length === 2`)
	if got := value[string](b, `document.querySelector(".log").innerText`); got != want {
		t.Errorf("from the file: %q, want %q", got, want)
	}
	value[any](b, `(() => { const d = new DataTransfer(); d.items.add(new File(["one fence `+"```"+` inside\n" + "many words ".repeat(3000)], "notes.txt", {type: "text/plain"})); document.querySelector(".chat").dispatchEvent(new DragEvent("drop", {dataTransfer: d, bubbles: true, cancelable: true})) })()`)
	b.until(`document.querySelector(".composer textarea").value.startsWith("notes.txt:\n` + "````" + `\none fence")`)
	b.until(`document.querySelector(".meter .bad")?.innerText.includes("too long for this model")`)
	b.clean(url)
}

// What is copied as code gives the same answer: with the settings that the answer had,
// and with the key from the environment.
func TestCopyAsCode(t *testing.T) {
	url := start(t, func(o *server.Options) { o.Keys = []string{"sk-right"} })
	b := browse(t, url, 1200, 800)
	b.until(`document.querySelector("dialog[open] input")`)
	b.do(chromedp.SetValue("dialog input", "sk-right"), chromedp.Click("dialog .primary"))
	b.until(`document.querySelector(".bar select")?.value`)
	set := func(name, v string) {
		value[any](b, fmt.Sprintf(`(() => { const e = document.querySelector("#set-%s"); e.value = %q; e.dispatchEvent(new Event("input")) })()`, name, v))
	}
	for name, v := range map[string]string{"system": "It's \"short\", $HOME `x` \\ true.", "temperature": "0.7", "top_k": "20", "max_tokens": "12", "stop": "xyzzy"} {
		set(name, v)
	}
	b.ask("What's a cat? null")
	set("temperature", "1.9") // the answer that is there had another
	content := value[string](b, `[...document.querySelectorAll(".message.assistant .markdown")].at(-1).innerText`)
	value[any](b, `navigator.clipboard.writeText = async (t) => { window.copied = t }`)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	python := "python3"
	if programs := os.Getenv("RIDGE_AGENT_PROGRAMS"); programs != "" {
		python = filepath.Join(programs, "clients", "bin", "python") // which has OpenAI's library
	} else if os.Getenv("CI") == "true" {
		t.Fatal("RIDGE_AGENT_PROGRAMS is not set, and CI=true: the folder that server/testdata/agents/programs/install.sh fills")
	} else {
		// As much of the library as the program uses.
		write("openai.py", `
import json, os, types, urllib.request
class OpenAI:
    def __init__(self, base_url, api_key=None):
        def create(extra_body={}, **body):
            r = urllib.request.Request(base_url + "/chat/completions", json.dumps({**body, **extra_body}).encode(), {"Content-Type": "application/json", "Authorization": "Bearer " + (api_key or os.environ["OPENAI_API_KEY"])})
            return json.load(urllib.request.urlopen(r), object_hook=lambda o: types.SimpleNamespace(**o))
        self.chat = types.SimpleNamespace(completions=types.SimpleNamespace(create=create))
`)
	}
	for language, run := range map[string]func(code string) *exec.Cmd{
		"curl":   func(code string) *exec.Cmd { return exec.Command("sh", write("ask.sh", code)) },
		"Python": func(code string) *exec.Cmd { return exec.Command(python, write("ask.py", code)) },
		"Go":     func(code string) *exec.Cmd { return exec.Command("go", "run", write("ask.go", code)) },
	} {
		value[any](b, fmt.Sprintf(`(() => { window.copied = ""; const e = document.querySelector('select[aria-label="Copy as code"]'); e.value = %q; e.dispatchEvent(new Event("change")) })()`, language))
		b.until(`window.copied`)
		code := value[string](b, `window.copied`)
		if strings.Contains(code, "sk-right") {
			t.Errorf("%s: the key is in the program", language)
		}
		cmd := run(code)
		cmd.Env = append(os.Environ(), "OPENAI_API_KEY=sk-right")
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v: %s\n%s", language, err, stderr.String(), code)
		}
		got := string(out)
		if language == "curl" {
			var answer struct {
				Choices []struct{ Message struct{ Content string } }
			}
			if err := json.Unmarshal(out, &answer); err != nil {
				t.Fatalf("curl: %v: %s", err, out)
			}
			got = answer.Choices[0].Message.Content
		}
		if words := strings.Join(strings.Fields(got), " "); words == "" || words != strings.Join(strings.Fields(content), " ") {
			t.Errorf("%s gives %q, the page has %q", language, got, content)
		}
	}
}

// An answer follows a schema that was pasted, and shows what of it the grammar forced;
// a text that is no schema is refused where it stands. Reasoning is folded, and calls of
// tools are shown.
func TestSchemaAndCalls(t *testing.T) {
	url := scriptedEvents(t, []map[string]any{
		{"reasoning_content": "Let me <b>think</b>."}, {"content": "I look it up."},
		{"tool_calls": []any{map[string]any{"index": 0, "id": "a", "type": "function", "function": map[string]any{"name": "weather", "arguments": `{"city":`}}}},
		{"tool_calls": []any{map[string]any{"index": 0, "function": map[string]any{"arguments": `"Ulm"}`}}}},
	})
	b := browse(t, url, 1200, 800)
	b.ask("script")
	b.until(`document.querySelector(".message.assistant .code figcaption")?.innerText === "calls weather"`)
	if got := b.text(".message.assistant .code pre"); got != `{"city":"Ulm"}` {
		t.Errorf("the call's arguments read %q", got)
	}
	if folded := value[bool](b, `(() => { const d = document.querySelector(".message.assistant .thought"); return !d.hidden && !d.open && d.querySelector(".plain-text").textContent === "Let me <b>think</b>." })()`); !folded {
		t.Error("the reasoning is not folded")
	}
	b.press(".split", "New")
	value[any](b, `document.querySelector(".drawer").open = true`)
	b.do(chromedp.SendKeys("#set-schema", "{bad"))
	b.until(`document.querySelector(".settings .bad:not(:empty)")`)
	schema := `{"type":"object","properties":{"animal":{"enum":["cat","dog"]},"legs":{"type":"integer"}},"required":["animal","legs"],"additionalProperties":false}`
	value[any](b, fmt.Sprintf(`(() => { const e = document.querySelector("#set-schema"); e.value = %q; e.dispatchEvent(new Event("input")) })()`, schema))
	b.ask("Name an animal.")
	var animal struct {
		Animal string
		Legs   *int
	}
	if text := b.text(".message.assistant .markdown"); json.Unmarshal([]byte(text), &animal) != nil || animal.Legs == nil || animal.Animal != "cat" && animal.Animal != "dog" {
		t.Errorf("the answer reads %q", text)
	}
	b.press(".message.assistant .tools", "Tokens")
	b.until(`document.querySelectorAll(".tokens .token.forced").length > 0`)
	value[any](b, `document.querySelector(".tokens .token.forced").click()`)
	b.until(`document.querySelector(".token-detail").innerText.includes("forced by the grammar")`)
	b.clean(url)
}

package pagetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"ridge/engine"
	"ridge/internal/builtin"
	"ridge/kvcache"
	"ridge/model"
	"ridge/server"
	"ridge/server/run"
)

// A model is loaded and unloaded through the page; the picker tells its size and
// whether it is loaded or cannot run. An encoder is no model to chat with, and one to
// see the tokens of.
func TestLoadAndUnload(t *testing.T) {
	configs := []run.ModelConfig{{Name: "other", Path: builtin.Prefix + "tiny"}, {Name: "broken", Path: t.TempDir() + "/none.gguf"}, {Name: "reader", Path: "../../internal/tinymodel/encoders/bert"}}
	reg, err := engine.NewRegistry(func(context.Context, string, *kvcache.Budget) (*model.Model, engine.Options, error) {
		o := model.DefaultOptions()
		o.KVBytes = 16 << 20
		m, err := model.Open(builtin.Prefix+"tiny", o)
		return m, engine.Options{}, err
	}, engine.RegistryOptions{KeepAlive: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	find := func(name string) (run.ModelConfig, bool) {
		for _, c := range configs {
			if c.Name == name {
				return c, true
			}
		}
		return run.ModelConfig{}, false
	}
	url := start(t, func(o *server.Options) {
		o.Source = &run.Source{Registry: reg, Find: find, List: func() []run.ModelConfig { return configs }}
	})
	loaded := func() (yes bool) {
		type list struct {
			Models []struct {
				Name   string
				Loaded bool
			}
		}
		for _, m := range fetch[list](t, url+"/ridge/models").Models {
			yes = yes || m.Name == "other" && m.Loaded
		}
		return yes
	}
	b := browse(t, url+"/#models", 1200, 800)
	b.until(`document.querySelector("[data-model=tiny] .loaded") && document.querySelector("[data-model=other] .here") && document.querySelector("[data-model=broken] .cannot-run")`)
	option := func(name string) string {
		value[any](b, `document.querySelector("select[aria-label=Model]").refresh()`)
		b.until(fmt.Sprintf(`document.querySelector("select[aria-label=Model] option[value=%s]")`, name))
		return value[string](b, fmt.Sprintf(`document.querySelector("select[aria-label=Model] option[value=%s]").innerText`, name))
	}
	b.press("[data-model=other]", "Load")
	b.until(`document.querySelector("[data-model=other] .loaded")`)
	if !loaded() {
		t.Error("the page says that the model is loaded, the server does not")
	}
	b.press("[data-model=other]", "Unload")
	b.until(`document.querySelector("[data-model=other] .here")`)
	if loaded() {
		t.Error("the page says that the model is not loaded, the server does not")
	}
	value[any](b, `location.hash = "chat"`)
	b.until(`document.querySelectorAll("select[aria-label=Model] option").length >= 2`)
	if s := option("other"); !strings.Contains(s, "B, not loaded)") {
		t.Errorf("other: %q", s)
	}
	if s := option("tiny"); !strings.Contains(s, "tiny (") || strings.Contains(s, "not loaded") {
		t.Errorf("tiny: %q", s)
	}
	names := `[...document.querySelectorAll("select[aria-label=Model] option")].map((o) => o.value).join()`
	if got := value[string](b, names); got != "other,broken,tiny" {
		t.Errorf("to chat with there are %s", got)
	}
	value[any](b, `location.hash = "tokens"`)
	b.until(`document.querySelector("h1").innerText === "Tokens" && ` + names + ` === "other,broken,reader,tiny"`)
}

package jinja

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"ridge/internal/testdata"
)

// maxFuzz bounds the bytes of a fuzzed template and of its input.
const maxFuzz = 4096

// FuzzTemplate: any source with any JSON input compiles or not, renders or
// not, in bounded time, with an error that is not an internal one.
func FuzzTemplate(f *testing.F) {
	_, sources := features(f)
	for _, s := range sources {
		f.Add(s, `{"k": [1, "a", null, 2.5, true]}`)
	}
	for _, source := range hostile {
		if len(source) <= maxFuzz {
			f.Add(source, `[]`)
		}
	}
	var random [][2]*string
	readJSON(f, "testdata/random.json", &random)
	for i := 0; i < len(random); i += 10 {
		f.Add(*random[i][0], `{"x": {"a": [1.5, "é", {}]}}`)
	}
	vars := testVars(f)
	f.Fuzz(func(t *testing.T, source, input string) {
		if len(source) > maxFuzz || len(input) > maxFuzz {
			return
		}
		p, err := Compile(source)
		if err != nil {
			checkError(t, err)
			return
		}
		all := map[string]any{"x": json.RawMessage(input), "input": input}
		for k, v := range vars {
			all[k] = v
		}
		testdata.Within(t, 10*time.Second, "rendering", func() {
			_, err = p.Render(all, Options{Now: testNow, Limits: Limits{Time: 2 * time.Second, Steps: 20_000, Bytes: 4 << 20}})
		})
		if err != nil {
			checkError(t, err)
		}
	})
}

func checkError(t *testing.T, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Line < 1 || strings.HasPrefix(e.Msg, "internal") {
		t.Errorf("unclean error: %v", err)
	}
}

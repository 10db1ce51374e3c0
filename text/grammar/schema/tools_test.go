package schema

import (
	"strings"
	"testing"

	"ridge/text/grammar/internal/grammartest"
)

func TestTools(t *testing.T) {
	weather := Tool{Name: "weather", Parameters: []byte(`{"type":"object","properties":{"city":{"type":"string"},"days":{"$ref":"#/$defs/d"}},"required":["city"],"$defs":{"d":{"type":"integer","minimum":1,"maximum":9}}}`)}
	stop := Tool{Name: "stop"}
	for _, c := range []struct {
		name      string
		o         ToolOptions
		good, bad []string
	}{
		{"one", ToolOptions{}, []string{`{"name": "weather", "arguments": {"city": "x", "days": 3}}`, `{"name":"stop","arguments":{"any":[1]}}`},
			[]string{`{"name":"weather","arguments":{}}`, `{"name":"rain","arguments":{}}`, `{"name":"stop"}`, ``, `{"name":"weather","arguments":{"city":"x","days":10}}`}},
		{"tagged", ToolOptions{Begin: "<tool_call>\n", End: "\n</tool_call>", Between: "\n", MaxCalls: 2, MinCalls: 1},
			[]string{"<tool_call>\n{\"name\": \"stop\", \"arguments\": {}}\n</tool_call>", "<tool_call>\n{\"name\": \"stop\", \"arguments\": {}}\n</tool_call>\n<tool_call>\n{\"name\": \"stop\", \"arguments\": {}}\n</tool_call>"},
			[]string{"{\"name\": \"stop\", \"arguments\": {}}", ""}},
		{"list", ToolOptions{Before: "[", After: "]", Between: ", ", MinCalls: 0, MaxCalls: -1, ArgumentsKey: "parameters", NameKey: "function"},
			[]string{`[]`, `[{"function": "stop", "parameters": {}}, {"function": "stop", "parameters": {}}, {"function": "stop", "parameters": {}}]`}, []string{`[{"name": "stop", "parameters": {}}]`}},
		{"only", ToolOptions{Only: "stop"}, []string{`{"name":"stop","arguments":{}}`}, []string{`{"name":"weather","arguments":{"city":""}}`}},
	} {
		g, err := Tools(grammartest.Small(), []Tool{weather, stop}, c.o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for _, text := range c.good {
			if err := grammartest.Accepts(g, text); err != nil {
				t.Errorf("%s: %s: %v", c.name, text, err)
			}
		}
		for _, text := range c.bad {
			if grammartest.Accepts(g, text) == nil {
				t.Errorf("%s: %s is accepted", c.name, text)
			}
		}
	}
	for _, c := range []struct {
		tools []Tool
		o     ToolOptions
		want  string
	}{
		{nil, ToolOptions{}, "at least one tool"},
		{[]Tool{stop, stop}, ToolOptions{}, "each once"},
		{[]Tool{{Name: ""}}, ToolOptions{}, "not empty"},
		{[]Tool{stop}, ToolOptions{Only: "go"}, `"go": no such tool`},
		{[]Tool{stop}, ToolOptions{MinCalls: 3, MaxCalls: 2}, "MaxCalls"},
		{[]Tool{stop, {Name: "x", Parameters: []byte(`{"properties":{"a":{"$dynamicRef":"#x"}}}`)}}, ToolOptions{}, `tool "x" #/properties/a`},
	} {
		_, err := Tools(nil, c.tools, c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

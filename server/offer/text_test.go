package offer

import (
	"encoding/json"
	"ridge/server/wire"
	"strings"
	"testing"
)

// However the arguments are cut, the pieces of the text are the text.
func TestText(t *testing.T) {
	for _, text := range []string{"", "*** Begin Patch\n+\"a\\b\"\n", "größe 😀 \u2028 </tool_call>", strings.Repeat("\\\"\n", 20)} {
		escaped := `{"input":"`
		for _, c := range text {
			b, _ := json.Marshal(string(c))
			switch {
			case c > 0xffff:
				escaped += `\ud83d\ude00`
			case c > 127:
				escaped += `\u` + string("0123456789abcdef"[c>>12]) + string("0123456789abcdef"[c>>8&15]) + string("0123456789abcdef"[c>>4&15]) + string("0123456789abcdef"[c&15])
			default:
				escaped += string(b[1 : len(b)-1])
			}
		}
		plain, _ := wire.EncodeJSON(map[string]string{"input": text})
		for _, args := range []string{string(plain), " {\n \"input\" : " + string(plain[len(`{"input":`):]), escaped + `"}`} {
			for size := 1; size < len(args)+2; size++ {
				var a Text
				got := ""
				for at := 0; at < len(args); at += size {
					got += a.Add(args[at:min(len(args), at+size)])
				}
				whole, rest := a.End()
				if whole != text || got+rest != text {
					t.Fatalf("%s in pieces of %d: got %q, then %q, whole %q, want %q", args, size, got, rest, whole, text)
				}
			}
		}
	}
	for args, want := range map[string]string{
		`{"patch":"x"}`: "x", `{"input":"a","b":1}`: "a", `{"b":1,"input":"a"}`: "a", `{}`: "", `{"a":1}`: `{"a":1}`, `"plain"`: "plain",
		`no JSON`: "no JSON", `{"input":"cut o`: "cut o", `{"input":5}`: `{"input":5}`, `{"input":null}`: `{"input":null}`,
	} {
		var a Text
		got := a.Add(args)
		if whole, rest := a.End(); whole != want || !strings.HasPrefix(want, got) || got+rest != want {
			t.Errorf("%s: got %q and %q, whole %q, want %q", args, got, rest, whole, want)
		}
	}
}

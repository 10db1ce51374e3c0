package main

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	named := map[string][]string{"ridge/a TestX": {"x", "y"}}
	pass := `{"Action":"pass","Package":"ridge/a","Test":"TestX"}`
	part := `{"Action":"skip","Package":"ridge/a","Test":"TestX/real"}` + "\n" + pass
	for _, c := range []struct {
		name, in string
		strict   bool
		want     string // in the error; "": none
	}{
		{"passed", pass, true, ""},
		{"absent", `{"Action":"pass","Package":"ridge/a","Test":"TestXY"}`, false, "x, y, did not pass"},
		{"in another package", `{"Action":"pass","Package":"ridge/b","Test":"TestX"}`, false, "did not pass"},
		{"skipped", `{"Action":"skip","Package":"ridge/a","Test":"TestX"}`, true, "TestX was skipped"},
		{"may be skipped", `{"Action":"skip","Package":"ridge/a","Test":"TestX"}`, false, ""},
		{"a part skipped", part, true, "TestX/real was skipped"},
		{"a part may be skipped", part, false, ""},
		{"failed", `{"Action":"fail","Package":"ridge/a","Test":"TestX"}`, false, "did not pass"},
		{"another package failed", pass + "\n" + `{"Action":"fail","Package":"ridge/b"}`, false, "ridge/b failed"},
		{"not JSON", "ok ridge/a", false, "go test -json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			err := check(strings.NewReader(c.in), &out, named, c.strict)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// What a failed test said is printed, what a passed one said is not.
func TestOutput(t *testing.T) {
	in := `{"Action":"output","Package":"p","Test":"TestA","Output":"good\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB","Output":"bad\n"}
{"Action":"fail","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Test":"TestC","Output":"lost\n"}
{"Action":"output","Package":"p","Output":"FAIL p\n"}
{"Action":"fail","Package":"p"}
`
	var out strings.Builder
	if err := check(strings.NewReader(in), &out, nil, false); err == nil {
		t.Error("no error")
	}
	if got, want := out.String(), "bad\nFAIL p\nlost\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}

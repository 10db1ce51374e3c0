package wire

import (
	"fmt"
	"strings"
	"testing"
)

// A key that is there twice is refused, at any depth and however it is written;
// keys of different objects may be the same.
func TestKeysOnce(t *testing.T) {
	var many, twice []string
	for i := range 500 {
		many = append(many, fmt.Sprintf(`"k%d":{"a":1}`, i))
	}
	twice = append(append(twice, many...), `"k250":1`)
	for body, ok := range map[string]bool{
		`{}`: true,
		`{"a":1,"b":{"a":1},"c":[{"a":1},{"a":2}],"d":"\"a\":1"}`: true,
		`{"a":1,"a":1}`:                                    false,
		`{"a":1,"A":1}`:                                    false, // the decoder takes both for one
		`{"x":{"a":1,"A":1}}`:                              true,  // properties of a schema may differ so
		`{"x":[1,{"y":{"a":1,"\u0061":2}}]}`:               false,
		`{"x":{"a":[{},[{"a":1}]],"b":"}","a":null}}`:      false,
		`{"x":{` + strings.Join(many, ",") + `}}`:          true,
		`{"x":{` + strings.Join(twice, ",") + `}}`:         false,
		`{"x":[` + strings.Repeat(`{},`, 300000) + `{}]}`:  false,
		`{"x":[` + strings.Repeat(`"",`, 1100000) + `""]}`: false,
		`{"x":[` + strings.Repeat(`1,`, 1100000) + `1]}`:   true,
		`{"x":[` + strings.Repeat(`1,`, 2100000) + `1]}`:   false,
		`{"x":"\\\"","y":"\"\\","x":1}`:                    false, // quotes and escapes end no string
	} {
		var v struct {
			X any `json:"ignored"`
		}
		if _, err := DecodeJSON([]byte(body), &v); (err == nil) != ok {
			t.Errorf("%.80s: %v", body, err)
		}
	}
	// What is no JSON is the decoder's to refuse, whatever it is.
	for _, body := range []string{`{"a`, `{"a\`, `{,"a"`, `{}}`, `{"a":1]}`, `{:,,"`, `{"a":1,`} {
		if _, err := DecodeJSON([]byte(body), &struct{}{}); err == nil || !strings.Contains(err.Error(), "not valid JSON") {
			t.Errorf("%s: %v", body, err)
		}
	}
}

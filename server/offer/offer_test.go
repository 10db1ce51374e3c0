package offer

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"ridge/server/fault"
	"ridge/text/chat"
)

// Names after flattening are accepted by models, differ, do not depend on anything
// but the request, and lead back to what the client calls the tool.
func TestFlatNames(t *testing.T) {
	long := strings.Repeat("very_long_", 12)
	tools := []Tool{
		{"function", "", "a__b"}, {"function", "a", "b"}, {"function", "a_", "_b"}, {"function", "a", "b"},
		{"custom", "", "apply_patch"}, {"apply_patch", "", "apply_patch"}, {"function", "", "apply_patch"},
		{"function", "mcp.server/x", "größe"}, {"function", long, "one"}, {"function", long, "two"}, {"function", "", long},
	}
	names := func() (out []string) {
		var o Tools
		for i, x := range tools {
			o.Add(fmt.Sprint("tool ", i), x, chat.Tool{})
		}
		got, err := o.Functions()
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range got {
			out = append(out, x.Name)
			if back := o.Client(x.Name); back != tools[i] {
				t.Errorf("%s is %+v, want %+v", x.Name, back, tools[i])
			}
			if tools[i].Kind == "function" && tools[i].Namespace == "" {
				if x.Name != tools[i].Name {
					t.Errorf("a function without a namespace is %q, want %q", x.Name, tools[i].Name)
				}
			} else if !regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`).MatchString(x.Name) {
				t.Errorf("%q is no name for a model", x.Name)
			}
		}
		return out
	}
	first := names()
	if second := names(); fmt.Sprint(first) != fmt.Sprint(second) {
		t.Errorf("got %v, then %v", first, second)
	}
	want := []string{"a__b", "a__b_2", "a__b_3", "a__b_4", "apply_patch_2", "apply_patch_3", "apply_patch", "mcp_server_x__gr__e"}
	for i, w := range want {
		if got := first[i]; got != w && i != 7 {
			t.Errorf("%+v: got %s, want %s", tools[i], got, w)
		}
	}
}

// Two functions of one name are refused as before; a choice finds a tool by what
// the client calls it, and one that was left out cannot be forced.
func TestOfferChoice(t *testing.T) {
	var o Tools
	var left []fault.Left
	f := Tool{"function", "", "f"}
	o.Add("tool 0", f, chat.Tool{})
	twice := o
	twice.Add("tool 7", f, chat.Tool{})
	if _, err := twice.Functions(); err == nil || !strings.Contains(err.Error(), `tool 7: expected names that differ, found "f" again`) {
		t.Errorf("a name twice: %v", err)
	}
	for _, x := range []Tool{{"function", "ns", "g"}, {"local_shell", "", "local_shell"}} {
		o.Add("tool", x, chat.Tool{})
	}
	o.LeaveOut("tool 4", "web_search", "", &left)
	if _, err := o.Functions(); err != nil || len(left) != 1 || left[0].String() != `tool 4: web_search: left out: this server runs no tools itself` {
		t.Fatalf("%v, %v", err, left)
	}
	for _, c := range []struct {
		mode string
		only []Tool
		want string
	}{
		{"auto", nil, "auto []"},
		{"required", []Tool{f}, "required [f]"},
		{"required", []Tool{{"function", "", "g"}}, "required [ns__g]"},
		{"required", []Tool{{"function", "ns", "g"}}, "required [ns__g]"},
		{"required", []Tool{{"local_shell", "", "local_shell"}}, "required [local_shell]"},
		{"required", []Tool{{"web_search", "", ""}}, "runs no tools itself"},
		{"auto", []Tool{{"web_search", "", ""}, f}, "auto [f]"},
		{"auto", []Tool{{"web_search", "", ""}}, "none []"},
		{"required", []Tool{{"function", "", "none"}}, `found "none"`},
	} {
		got, err := o.Choice(c.mode, c.only)
		text := fmt.Sprint(got.Mode, " ", got.Only)
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, c.want) {
			t.Errorf("%s %v: got %s, want %s", c.mode, c.only, text, c.want)
		}
	}
}

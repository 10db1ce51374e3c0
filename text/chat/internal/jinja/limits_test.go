package jinja

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"ridge/internal/testdata"
)

// hostile are templates that would take forever, or all memory, or the stack.
var hostile = map[string]string{
	"nested ranges":            `{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}`,
	"huge range":               `{{ range(10**9)|length }}`,
	"huge range 2":             `{{ range(-9223372036854775807, 9223372036854775807, 1)|length }}`,
	"doubling with ~":          `{% set ns = namespace(x='xxxxxxxx') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}`,
	"doubling with +":          `{% set ns = namespace(x='xxxxxxxx') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}`,
	"doubling a list":          `{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}`,
	"doubling a tuple":         `{% set ns = namespace(x=(1,)) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}`,
	"doubling by %":            `{% set ns = namespace(x='xxxxxxxx') %}{% for i in range(99) %}{% set ns.x = '%s%s' % (ns.x, ns.x) %}{% endfor %}`,
	"doubling by format":       `{% set ns = namespace(x='xxxxxxxx') %}{% for i in range(99) %}{% set ns.x = '{0}{0}'.format(ns.x) %}{% endfor %}`,
	"doubling by block":        `{% set ns = namespace(x='xxxxxxxx') %}{% for i in range(99) %}{% set y %}{{ ns.x }}{{ ns.x }}{% endset %}{% set ns.x = y %}{% endfor %}`,
	"doubling by join":         `{% set ns = namespace(x='xxxxxxxx') %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x]|join %}{% endfor %}`,
	"doubling by json":         `{% set ns = namespace(x='""""""""') %}{% for i in range(99) %}{% set ns.x = ns.x|tojson %}{% endfor %}`,
	"doubling by macro":        `{% macro m(x, n) %}{% if n %}{{ m(x ~ x, n - 1) }}{% endif %}{% endmacro %}{{ m('xxxxxxxx', 90) }}`,
	"shared structure":         `{% set ns = namespace(x=['x']) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}`,
	"shared structure 2":       `{% set ns = namespace(x=['x']) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x|tojson }}`,
	"shared structure 3":       `{% set ns = namespace(x=['x'], y=['x']) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}`,
	"repeat":                   `{{ 'x' * 10**15 }}`,
	"repeat 2":                 `{{ ('x' * 10**6) * 10**18 }}`,
	"repeat a list":            `{{ [1, 2] * 10**12 }}`,
	"repeat overflow":          `{{ [1, 2] * (2**62) }}`,
	"power":                    `{{ 10 ** 10 ** 10 }}`,
	"int overflow":             `{{ 9223372036854775807 + 1 }}`,
	"replace":                  `{% set x = 'a' * 100000 %}{{ x|replace('a', x) }}`,
	"replace empty":            `{% set x = 'a' * 1000000 %}{{ x.replace('', x) }}`,
	"join":                     `{% set x = 'a' * 100000 %}{{ x|join(x) }}`,
	"indent":                   `{{ ('\n' * 100000)|indent(1000000, blank=true) }}`,
	"center":                   `{{ 'x'.center(10**15) }}`,
	"zfill":                    `{{ 'x'.zfill(10**15) }}`,
	"width":                    `{{ '%1000000000d' % 1 }}`,
	"precision":                `{{ '{:.1000000000f}'.format(1.5) }}`,
	"tojson indent":            `{{ [[[1]]]|tojson(indent=10**9) }}`,
	"tojson indent 2":          `{% set ns = namespace(x=1) %}{% for i in range(150) %}{% set ns.x = [ns.x] %}{% endfor %}{% for i in range(10**5) %}{{ ns.x|tojson(indent=1000) }}{% endfor %}`,
	"endless recursion":        `{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}`,
	"mutual recursion":         `{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}`,
	"recursion by call":        `{% macro m() %}{% call m() %}{% endcall %}{{ caller() }}{% endmacro %}{% call m() %}{% endcall %}`,
	"recursive loop":           `{% set l = [1] %}{% for x in l recursive %}{{ loop(l) }}{% endfor %}`,
	"wide recursion":           `{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(90) }}`,
	"list in itself":           `{% set l = [] %}{% set _ = l.append(l) %}{{ l }}`,
	"list in itself 2":         `{% set l = [] %}{% set _ = l.append(l) %}{{ l|tojson }}`,
	"list in itself 3":         `{% set l = [] %}{% set _ = l.append(l) %}{% set m = [] %}{% set _ = m.append(m) %}{{ l == m }}`,
	"list in itself 4":         `{% set l = [] %}{% set _ = l.append(l) %}{% set m = [] %}{% set _ = m.append(m) %}{{ l < m }}`,
	"dict in itself":           `{% set d = {} %}{% set _ = d.update({'d': d}) %}{{ d }}`,
	"namespace in it":          `{% set n = namespace() %}{% set n.n = n %}{{ [n] }}`,
	"extend itself":            `{% set l = [1] %}{% for i in range(99) %}{% set _ = l.extend(l) %}{% endfor %}`,
	"deep value":               `{% set ns = namespace(x=1) %}{% for i in range(100000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}`,
	"deep json":                `{{ ('[' * 100000)|fromjson }}`,
	"big json":                 `{{ ('[' ~ '0,' * 10000000 ~ '0]')|fromjson|length }}`,
	"chars":                    `{% set x = 'x' * 50000000 %}{% for c in x %}{% for c in x %}{% endfor %}{% endfor %}`,
	"search":                   `{% set x = 'a' * 30000000 %}{% for i in range(100000) %}{{ x.find('b') }}{% endfor %}`,
	"count":                    `{% set x = 'a' * 30000000 %}{% for i in range(100000) %}{{ x.count('ab') }}{% endfor %}`,
	"compare":                  `{% set x = 'a' * 30000000 %}{% set y = 'a' * 30000000 %}{% for i in range(100000) %}{{ x == y }}{% endfor %}`,
	"strip":                    `{% set x = 'a' * 30000000 %}{% for i in range(100000) %}{{ x.strip('abcdefgh')|length }}{% endfor %}`,
	"text in a loop":           `{% for a in range(100000) %}{% for b in range(100000) %}` + strings.Repeat("x", 10000) + `{% endfor %}{% endfor %}`,
	"output":                   `{% set x = 'x' * 1000000 %}{% for i in range(100000) %}{{ x }}{% endfor %}`,
	"split":                    `{% set x = 'a,' * 10000000 %}{{ x.split(',')|length }}`,
	"sort":                     `{% set x = range(100000)|list %}{% for i in range(100000) %}{% set y = x|sort(reverse=true) %}{% endfor %}`,
	"batch":                    `{{ [1]|batch(10**9, 'x')|list }}`,
	"slice":                    `{{ [1]|slice(10**9)|list }}`,
	"round":                    `{{ 1.5|round(10**9) }}`,
	"map in map":               `{% set x = range(100000)|list %}{% for i in x %}{{ x|map('string')|join|length }}{% endfor %}`,
	"in a big list":            `{% set x = range(100000)|list %}{% for i in x %}{{ -1 in x }}{% endfor %}`,
	"star arguments":           `{% macro m() %}{{ varargs|length }}{% endmacro %}{% set x = range(100000)|list %}{% for i in x %}{{ m(*x) }}{% endfor %}`,
	"joined macro":             `{% macro m(x) %}{{ x }}{{ x }}{% endmacro %}{% set ns = namespace(x='xxxxxxxx') %}{% for i in range(99) %}{% set ns.x = m(ns.x) %}{% endfor %}`,
	"strftime":                 `{% set f = '%c' * 10000000 %}{{ strftime_now(f)|length }}`,
	"map of map":               `{% set l = [] %}{% set _ = l.append(l) %}{{ l|map(*(['map'] * 100000))|list }}`,
	"deep stack":               `{% macro m() %}` + strings.Repeat("{% if 1 %}", 95) + `{{ ` + strings.Repeat("[", 60) + strings.Repeat("not (", 60) + `m()` + strings.Repeat(")", 60) + strings.Repeat("]", 60) + ` }}` + strings.Repeat("{% endif %}", 95) + `{% endmacro %}{{ m() }}`,
	"big expression":           `{% for a in range(100000) %}{% for b in range(100000) %}{{ ` + strings.Repeat("(1+1)+", 200) + `1 }}{% endfor %}{% endfor %}`,
	"long tilde":               `{% for a in range(100000) %}{% for b in range(100000) %}{% set x = ''` + strings.Repeat("~''", 100_000) + ` %}{% endfor %}{% endfor %}`,
	"many sets":                `{% for a in range(100000) %}{% for b in range(100000) %}{% if false %}` + sets(10_000) + `{% endif %}{% endfor %}{% endfor %}`,
	"many variables":           `{% macro m() %}` + sets(10_000) + `{{ m() }}{% endmacro %}{{ m() }}`,
	"many parameters":          `{% macro m(` + strings.Join(numbered(50_000), ", ") + `) %}{% endmacro %}{% set d = dict(` + strings.Join(numbered(50_000), "=1, ") + `=1) %}{% for i in range(99) %}{{ m(**d) }}{% endfor %}`,
	"shared tuple as key":      `{% set ns = namespace(x=(1,)) %}{% for i in range(60) %}{% set ns.x = (ns.x, ns.x) %}{% endfor %}{{ {}[ns.x] }}`,
	"deep tuple as key":        `{% set ns = namespace(x=(1,)) %}{% for i in range(9999) %}{% set ns.x = (ns.x,) %}{% endfor %}{{ {ns.x: 1} }}`,
	"long keys":                `{% set d = {'a' * 1000000: 1} %}{% for i in range(100000) %}{{ d['a' * 999999] }}{% endfor %}`,
	"truncate":                 `{% set x = 'a' * 10000000 %}{% for i in range(100000) %}{{ x|truncate(99999999, leeway=0)|length }}{% endfor %}`,
	"is lower":                 `{% set x = 'a' * 10000000 %}{% for i in range(100000) %}{{ x is lower }}{% endfor %}`,
	"safe":                     `{% set x = '<' * 3000000 %}{% set y = x|safe %}{% for i in range(100000) %}{{ (y + x)|length }}{% endfor %}`,
	"sum of lists":             `{% set x = range(100000)|list %}{{ [x, x, x, x, x, x, x, x]|sum(start=[]) }}`,
	"nested captures":          `{% set ns = namespace(x='xxxxxxxx') %}{% for i in range(99) %}{% filter trim %}{% set y %}{% filter upper %}{{ ns.x }}{{ ns.x }}{% endfilter %}{% endset %}{% set ns.x = y %}{% endfilter %}{% endfor %}`,
	"group by":                 `{% set x = [{'a': 1}] * 10000 %}{% for i in range(100000) %}{% set y = x|groupby('a') %}{% endfor %}`,
	"recursive loop in itself": `{% set l = [] %}{% set _ = l.append(l) %}{% for x in l recursive %}{{ loop(x) }}{% endfor %}`,
	"loops":                    strings.Repeat(`{% for a in range(99) %}`, 90) + strings.Repeat(`{% endfor %}`, 90),
}

// numbered returns n names.
func numbered(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("v%d", i)
	}
	return out
}

// sets assigns n variables.
func sets(n int) string {
	return "{% set " + strings.Join(numbered(n), " = 1 %}{% set ") + " = 1 %}"
}

// testLimits are smaller than the defaults, to keep the tests quick.
var testLimits = Limits{Time: 20 * time.Second, Steps: 200_000, Bytes: 16 << 20}

func TestHostileTemplates(t *testing.T) {
	for name, source := range hostile {
		t.Run(name, func(t *testing.T) {
			p, err := Compile(source)
			if err == nil {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				var out string
				testdata.Within(t, 15*time.Second, "rendering", func() { out, err = p.Render(nil, Options{Limits: testLimits}) })
				runtime.ReadMemStats(&after)
				if err == nil {
					t.Errorf("no error; output of %d bytes", len(out))
				}
				if n := after.TotalAlloc - before.TotalAlloc; n > 1<<30 {
					t.Errorf("allocated %d MiB", n>>20)
				}
			}
			var e *Error
			if err != nil && (!errors.As(err, &e) || e.Line < 1 || strings.Contains(e.Msg, "internal")) {
				t.Errorf("error %q is not a clean one", err)
			}
		})
	}
}

// TestHostileSources: sources that are too deep or too long to compile, or
// that are fine however long they are.
func TestHostileSources(t *testing.T) {
	rep := strings.Repeat
	const n = 100_000
	for name, c := range map[string]struct {
		source string
		ok     bool
	}{
		"parentheses":  {"{{ " + rep("(", n) + "1" + rep(")", n) + " }}", false},
		"brackets":     {"{{ " + rep("[", n) + rep("]", n) + " }}", false},
		"braces":       {"{{ " + rep("{1:", n) + "1" + rep("}", n) + " }}", false},
		"open":         {"{{ " + rep("(", n), false},
		"minus":        {"{{ " + rep("-", n) + "1 }}", false},
		"not":          {"{{ " + rep("not ", n) + "1 }}", true},
		"plus":         {"{{ 1" + rep("+1", n) + " }}", false},
		"tilde":        {"{{ 1" + rep("~1", n) + " }}", true},
		"compare":      {"{{ 1" + rep("<1", n) + " }}", true},
		"and":          {"{{ 1" + rep(" and 1", n) + " }}", false},
		"inline if":    {"{{ 1" + rep(" if 1 else 1", n) + " }}", false},
		"inline if 2":  {"{{ 1" + rep(" if 1", n) + " }}", false},
		"attributes":   {"{{ a" + rep(".a", n) + " }}", false},
		"items":        {"{{ a" + rep("[0]", n) + " }}", false},
		"nested items": {"{{ " + rep("a[", n) + "0" + rep("]", n) + " }}", false},
		"calls":        {"{{ a" + rep("()", n) + " }}", false},
		"nested calls": {"{{ " + rep("a(", n) + rep(")", n) + " }}", false},
		"filters":      {"{{ a" + rep("|e", n) + " }}", false},
		"tests":        {"{{ a" + rep(" is in a", n) + " }}", false},
		"power":        {"{{ 1" + rep("**1", n) + " }}", false},
		"list":         {"{{ [" + rep("1,", n) + "]|length }}", true},
		"strings":      {"{{ " + rep("'a'", n) + "|length }}", true},
		"if":           {rep("{% if 1 %}", n/10) + rep("{% endif %}", n/10), false},
		"for":          {rep("{% for a in b %}", n/10) + rep("{% endfor %}", n/10), false},
		"with":         {rep("{% with %}", n/10) + rep("{% endwith %}", n/10), false},
		"set":          {rep("{% set a %}", n/10) + rep("{% endset %}", n/10), false},
		"elif":         {"{% if 0 %}" + rep("{% elif 0 %}", n/10) + "{% endif %}", true},
		"targets":      {"{% set " + rep("(", n) + "a" + rep(")", n) + " = 1 %}", false},
		"statements":   {rep("{% set a = 1 %}", n/10), true},
		"outputs":      {rep("{{ 1 }}", n), true},
		"comments":     {rep("{##}", n), true},
		"long":         {rep("x", 2<<20), false},
		"integer":      {"{{ " + rep("9", n) + " }}", false},
		"float":        {"{{ 1e" + rep("9", n) + " }}", true},
		"macros":       {rep("{% macro m() %}", n/10) + rep("{% endmacro %}", n/10), false},
		"open quote":   {rep("{{ '", n), false},
		"raw":          {rep("{% raw %}", n), false},
		"unicode":      {"{{ " + rep("\u00a0", n) + "1 }}", true},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			testdata.Within(t, 10*time.Second, "compiling and rendering", func() {
				var p *Program
				if p, err = Compile(c.source); err == nil {
					_, err = p.Render(nil, Options{Limits: testLimits})
				}
			})
			if (err == nil) != c.ok {
				t.Errorf("error %v, want ok %v", err, c.ok)
			}
		})
	}
}

// TestErrorLines: messages carry the line of the mistake.
func TestErrorLines(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"a\n{{ 1 + }}", "line 2: unexpected end of print statement"},
		{"a\n\n{% if x %}\n", "line 3: unexpected end of template, expected 'elif' or 'else' or 'endif'"},
		{"{% for x in y %}\n{% endif %}", "line 2: unknown tag 'endif', expected 'endfor' or 'else'"},
		{"{% include 'x' %}", "line 1: 'include' is not supported: a chat template is one file"},
		{"\n{{ x | nope }}", "line 2: no filter named 'nope'"},
		{"\n\n{{ x is nope }}", "line 3: no test named 'nope'"},
		{"{# x\n\n#}\n{{ a.b.c }}", "line 4: 'a' is undefined"},
		{"{% set a = {} %}\n{{ a.b.c }}", "line 2: 'a.b' is undefined"},
		{"{% set a = {} %}\n{{ a['b']['c'] }}", "line 2: 'a['b']' is undefined"},
		{"{% if true %}\n{{ none + 'x' }}\n{% endif %}", "line 2: unsupported operand types for +: 'NoneType' and 'str'"},
		{"\n{{ raise_exception('no') }}", "line 2: no"},
		{"\n{{ f(1) }}", "line 2: 'f' is undefined"},
		{"{{ 'a\n' }}\n{{ \"a", "line 3: unterminated string literal"},
		{"{% macro m(a) %}\n{{ a.b }}{% endmacro %}\n{{ m() }}", "line 2: 'a' is undefined"},
		{"{{ 'x'|replace('a') }}", "line 1: filter 'replace': missing argument 'new'"},
		{"{{ a\n b }}", "line 2: expected '}}', got 'b'"},
	} {
		p, err := Compile(c.source)
		if err == nil {
			_, err = p.Render(nil, Options{})
		}
		if err == nil || err.Error() != c.want {
			t.Errorf("%q: got %v, want %s", c.source, err, c.want)
		}
	}
}

func TestTimeLimit(t *testing.T) {
	p, err := Compile(hostile["nested ranges"])
	if err != nil {
		t.Fatal(err)
	}
	testdata.Within(t, 5*time.Second, "rendering for 50 ms", func() {
		_, err = p.Render(nil, Options{Limits: Limits{Time: 50 * time.Millisecond, Steps: 1 << 40, Bytes: 1 << 40}})
	})
	if err == nil || !strings.Contains(err.Error(), "longer than 50ms") {
		t.Errorf("got %v", err)
	}
}

// TestBounds: a template that exceeds a limit says which.
func TestBounds(t *testing.T) {
	const (
		bytes = "template makes more than 16777216 bytes of text and lists"
		steps = "template takes more than 200000 steps"
	)
	rep := strings.Repeat
	for _, c := range []struct{ source, want string }{
		{"{{ 'a' * 10**9 }}", bytes},
		{"{{ [1] * 10**9 }}", bytes},
		{hostile["doubling with ~"], bytes},
		{hostile["doubling with +"], bytes},
		{hostile["doubling by block"], bytes},
		{hostile["join"], bytes},
		{hostile["replace"], bytes},
		{hostile["indent"], bytes},
		{hostile["center"], bytes},
		{hostile["output"], steps},
		{hostile["extend itself"], bytes},
		{hostile["nested ranges"], steps},
		{hostile["shared structure"], steps},
		{hostile["wide recursion"], steps},
		{hostile["big expression"], steps},
		{hostile["in a big list"], steps},
		{hostile["huge range"], "range(): more than 100000 items"},
		{hostile["width"], "format width or precision above 65536"},
		{hostile["precision"], "format width or precision above 65536"},
		{hostile["power"], "result of '**' does not fit in 64 bits"},
		{hostile["endless recursion"], "macro 'm' called more than 100 deep"},
		{hostile["mutual recursion"], "called more than 100 deep"},
		{hostile["recursive loop"], "recursive loop called more than 100 deep"},
		{hostile["list in itself"], "value nested deeper than 200"},
		{hostile["list in itself 2"], "value nested deeper than 200"},
		{hostile["deep stack"], "macro 'm' called more than 100 deep"},
		{hostile["deep tuple as key"], "value nested deeper than 200"},
		{hostile["deep json"], "exceeded max depth"},
		{"{{ ('[' * 300 ~ ']' * 300)|fromjson }}", "JSON nested deeper than 200"},
		{"{{ " + rep("(", 300) + "1" + rep(")", 300) + " }}", "expression nested deeper than 250"},
		{"{{ 1" + rep("+1", 300) + " }}", "expression nested deeper than 250"},
		{rep("{% if 1 %}", 101) + rep("{% endif %}", 101), "blocks nested deeper than 100"},
		{rep("x", 1<<20+1), "template of 1048577 bytes, the limit is 1048576"},
	} {
		var err error
		testdata.Within(t, 5*time.Second, "a template beyond its limits", func() {
			var p *Program
			if p, err = Compile(c.source); err == nil {
				_, err = p.Render(nil, Options{Limits: testLimits})
			}
		})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80s: got %v, want %s", c.source, err, c.want)
		}
	}
	p, err := Compile("{{ 'a' * 10**9 }}")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = p.Render(nil, Options{}); err == nil || !strings.Contains(err.Error(), "more than 536870912 bytes") {
		t.Errorf("with the default limits: got %v", err)
	}
}

package model

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var updateFamilies = flag.Bool("update-families", false, "write the list of families in docs/models.md")

// The list of families in the docs is what Open knows: names, model_type values,
// and what the comment of each architecture says first.
func TestFamiliesDocument(t *testing.T) {
	const path, begin, end = "../docs/models.md", "<!-- families: begin -->\n", "<!-- families: end -->\n"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(b), begin)
	old, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no list between %q and %q", path, begin, end)
	}
	want := familyTable(t)
	if *updateFamilies {
		if err := os.WriteFile(path, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if old != want {
		t.Errorf("%s: the list of families is not that of the code (go test ./model -run FamiliesDocument -update-families writes it)", path)
	}
}

func familyTable(t *testing.T) string {
	comments := architectureComments(t)
	rows := []string{}
	for _, a := range architectures {
		text := comments[a.name]
		if text == "" {
			t.Errorf("architecture %s has no comment", a.name)
		}
		hf := "-"
		if len(a.hf) > 0 {
			hf = "`" + strings.Join(a.hf, "`, `") + "`"
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", a.name, hf, text))
	}
	slices.Sort(rows)
	return "| GGUF | `model_type` | what |\n|---|---|---|\n" + strings.Join(slices.Compact(rows), "")
}

// papers are references in parentheses.
var papers = regexp.MustCompile(` \([^()]*(et al\.|arXiv)[^()]*\)`)

// architectureComments returns the first sentence about each architecture.
func architectureComments(t *testing.T) map[string]string {
	out := map[string]string{}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR || g.Doc == nil || len(g.Specs) != 1 {
				continue
			}
			v := g.Specs[0].(*ast.ValueSpec)
			if len(v.Values) != 1 {
				continue
			}
			lit, ok := v.Values[0].(*ast.CompositeLit)
			if !ok {
				continue
			}
			if id, ok := lit.Type.(*ast.Ident); !ok || id.Name != "architecture" {
				continue
			}
			text := papers.ReplaceAllString(strings.Join(strings.Fields(g.Doc.Text()), " "), "")
			if i := strings.Index(text, ". "); i >= 0 {
				text = text[:i]
			}
			for _, e := range lit.Elts {
				kv := e.(*ast.KeyValueExpr)
				if key := kv.Key.(*ast.Ident).Name; key == "name" {
					name := nameOf(kv.Value)
					if out[name] == "" {
						out[name] = strings.TrimSuffix(text, ".")
					} else {
						out[name] += "; " + strings.TrimSuffix(text, ".")
					}
				}
			}
		}
	}
	return out
}

// nameOf returns the text of a literal, or of a constant declared in the same file.
func nameOf(e ast.Expr) string {
	if id, ok := e.(*ast.Ident); ok {
		e = id.Obj.Decl.(*ast.ValueSpec).Values[0]
	}
	return strings.Trim(e.(*ast.BasicLit).Value, `"`)
}

// Package lint keeps the project's shape: who may import whom, and how long
// files and functions may be.
package lint

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// mayImport lists, for each package, the packages of this module that it may
// import besides those under internal. What is not listed is forbidden; a new
// package adds its line here.
var mayImport = map[string][]string{
	"weights/tensor":      {},
	"text/tokenizer":      {},
	"sample":              {},
	"weights/gguf":        {"weights/tensor"},
	"weights/safetensors": {"weights/tensor"},
	"weights/quantized":   {"weights/safetensors", "weights/tensor"},
	"hub":                 {},
	"measure/machine":     {"kernel", "kvcache", "weights/tensor"},
	"text/chat":           {"text/tokenizer"},
	"text/constraint":     {"text/chat", "text/grammar", "text/grammar/schema", "text/tokenizer"},
	"kernel":              {"weights/tensor"},
	"kvcache":             {"weights/tensor"},
	"nn":                  {"kernel", "kvcache", "weights/tensor"},
	"model":               {"weights/gguf", "weights/quantized", "weights/safetensors", "text/tokenizer", "kernel", "kvcache", "nn", "weights/tensor"},
	"measure/eval":        {"engine", "text/tokenizer"},
	"sched":               {"kvcache"},
	"sched/sim":           {"kvcache", "sched", "weights/tensor"},
	"compress":            {"model", "weights/gguf", "weights/tensor"},
	"spec":                {"kvcache", "model"},
	"spec/lookahead":      {"spec"},
	"spec/many":           {"spec"},
	"spec/skip":           {"kvcache", "model", "nn", "spec"},
	"engine/trace":        {},
	"engine":              {"engine/trace", "kvcache", "model", "sample", "sched", "spec"},
	"lab/drafts":          {"engine", "measure/bench/chart", "model", "sample", "spec"},
	"lab/quant":           {"compress", "engine", "measure/bench/chart", "measure/eval", "model", "weights/gguf"},
	"text/grammar":        {},
	"text/grammar/schema": {"text/grammar"},
	"measure/bench":       {"measure/bench/chart", "measure/machine", "weights/gguf", "kernel", "kvcache", "model", "measure/roofline", "weights/tensor"},
	"measure/bench/chart": {},
	"measure/bench/load":  {"measure/bench/chart"},
	"measure/bench/suite": {"measure/machine", "measure/bench", "measure/roofline", "weights/tensor"},
	"measure/roofline":    {"measure/machine", "kernel", "kvcache", "model", "nn", "weights/tensor"},
	"server":              {"server/adapters", "server/anthropic", "server/caller", "server/fault", "server/internal/folder", "server/llama", "server/ollama", "server/openai", "server/page", "server/run", "server/watch", "server/wire", "engine", "hub"},
	"server/page":         {},
	"server/fault":        {"engine", "model", "text/grammar"},
	"server/adapters":     {"server/fault", "engine", "model"},
	"server/caller":       {},
	"server/run":          {"server/adapters", "server/caller", "server/fault", "text/chat", "text/constraint", "text/grammar", "text/tokenizer", "engine", "model", "sample", "weights/gguf"},
	"server/watch":        {"server/caller", "server/fault", "server/run", "server/wire", "engine", "engine/trace", "hub", "kvcache", "measure/machine", "measure/roofline", "weights/tensor"},
	"server/probs":        {"server/run", "sample"},
	"server/wire":         {"server/caller", "server/fault", "server/run", "text/chat", "sample"},
	"server/offer":        {"server/fault", "server/run", "server/wire", "text/chat"},
	"server/openai":       {"server/adapters", "server/caller", "server/fault", "server/internal/folder", "server/offer", "server/probs", "server/run", "server/wire", "text/chat", "text/tokenizer", "engine", "sample"},
	"server/ollama":       {"server/caller", "server/fault", "server/internal/folder", "server/probs", "server/run", "server/wire", "text/chat", "hub"},
	"server/anthropic":    {"server/caller", "server/fault", "server/offer", "server/run", "server/wire", "text/chat", "engine"},
	"server/llama":        {"server/adapters", "server/caller", "server/fault", "server/internal/folder", "server/openai", "server/probs", "server/run", "server/wire", "text/tokenizer", "engine"},
	".":                   {"engine", "hub", "measure/machine", "model", "sample", "sched", "spec", "spec/lookahead", "spec/many", "spec/skip", "text/chat", "text/constraint", "text/tokenizer", "weights/tensor"},
	"cmd/ridge":           {"*"},

	"text/grammar/internal/grammartest": {"text/grammar", "weights/gguf"}, // of tests

	"tools/tinymodel/corpus":   {"text/chat", "kernel", "kvcache", "model", "weights/tensor", "text/tokenizer"},
	"tools/tinymodel/quantize": {"weights/gguf", "weights/tensor"},
	"tools/tinymodel/compare":  {".", "engine", "kernel", "sample", "text/chat"},
}

// underInternal lists what the packages under internal may import; those that
// are not listed import nothing of the module but each other.
var underInternal = map[string][]string{
	"internal/badfiles": {"weights/gguf", "weights/safetensors", "weights/tensor"},
	"internal/logits":   {"kernel"},
}

// longFiles are the files that may have more than maxFile lines, with the
// reason.
var longFiles = map[string]string{}

// longFuncs are the functions that may have more than maxFunc lines.
var longFuncs = map[string]string{}

const (
	maxFile     = 500
	maxFunc     = 80
	maxExported = 40 // types, functions, and groups of constants or variables of a package
	maxBlocks   = 61 // those of package nn: each mixer and FFN has a type or two (RWKV-7: three)
)

// goFiles calls do for each Go file of the module that people wrote.
func goFiles(t *testing.T, do func(path string, src []byte)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() {
			if name := d.Name(); rel != "." && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		src, err := os.ReadFile(path)
		if err == nil {
			do(filepath.ToSlash(rel), src)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func generated(src []byte) bool {
	first, _, _ := strings.Cut(string(src), "\n")
	return strings.HasPrefix(first, "// Code generated ")
}

func TestImports(t *testing.T) {
	goFiles(t, func(path string, src []byte) {
		pkg := filepath.ToSlash(filepath.Dir(path))
		if strings.HasSuffix(path, "_test.go") {
			return // tests may look anywhere
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		allowed, known := mayImport[pkg]
		if !known && strings.HasPrefix(pkg, "internal/") {
			allowed, known = underInternal[pkg], true
		}
		if owner, _, ok := strings.Cut(pkg, "/internal/"); ok && !known {
			allowed, known = mayImport[owner], true // part of its owner
		}
		if !known {
			t.Errorf("%s: package %s is not in the table of imports", path, pkg)
			return
		}
		for _, im := range f.Imports {
			name, _ := strconv.Unquote(im.Path.Value)
			if name == "C" {
				t.Errorf("%s imports C", path)
			}
			dep, inside := strings.CutPrefix(name, "ridge/")
			if name == "ridge" {
				dep, inside = ".", true
			}
			if !inside || strings.HasPrefix(dep, "internal/") || strings.HasPrefix(dep, pkg+"/internal/") || slices.Contains(allowed, "*") || slices.Contains(allowed, dep) {
				continue
			}
			t.Errorf("%s: %s may not import %s", path, pkg, dep)
		}
	})
}

func TestSizes(t *testing.T) {
	exported := map[string]int{}
	goFiles(t, func(path string, src []byte) {
		if generated(src) || strings.HasSuffix(path, "_test.go") {
			return
		}
		lines := 0
		for s := bufio.NewScanner(strings.NewReader(string(src))); s.Scan(); {
			lines++
		}
		if why, ok := longFiles[path]; lines > maxFile && !ok {
			t.Errorf("%s has %d lines, more than %d", path, lines, maxFile)
		} else if ok && lines <= maxFile {
			t.Errorf("%s has only %d lines and needs no exception (%s)", path, lines, why)
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, src, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			checkDecl(t, fset, path, d)
			exported[filepath.Dir(path)] += countExported(d)
		}
	})
	for pkg, n := range exported {
		most := maxExported
		if pkg == "nn" {
			most = maxBlocks
		}
		if n > most && pkg != "kernel" {
			t.Errorf("package %s exports %d names, more than %d", pkg, n, most)
		}
	}
}

func checkDecl(t *testing.T, fset *token.FileSet, path string, d ast.Decl) {
	fn, ok := d.(*ast.FuncDecl)
	if !ok {
		if g, ok := d.(*ast.GenDecl); ok {
			checkDocs(t, fset, path, g)
		}
		return
	}
	name := path + ":" + fn.Name.Name
	lines := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1
	if _, ok := longFuncs[name]; lines > maxFunc && !ok {
		t.Errorf("%s has %d lines, more than %d", name, lines, maxFunc)
	}
	if fn.Recv == nil && fn.Name.IsExported() && fn.Doc == nil {
		t.Errorf("%s has no doc comment", name)
	}
}

func checkDocs(t *testing.T, fset *token.FileSet, path string, g *ast.GenDecl) {
	for _, s := range g.Specs {
		if ts, ok := s.(*ast.TypeSpec); ok && ts.Name.IsExported() && ts.Doc == nil && g.Doc == nil {
			t.Errorf("%s:%d: type %s has no doc comment", path, fset.Position(ts.Pos()).Line, ts.Name.Name)
		}
	}
}

func countExported(d ast.Decl) int {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil && d.Name.IsExported() {
			return 1
		}
	case *ast.GenDecl:
		n := 0
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					n++
				}
			case *ast.ValueSpec:
				if s.Names[0].IsExported() {
					return 1 // a group counts once
				}
			}
		}
		return n
	}
	return 0
}

// Names that say nothing do not become packages.
func TestPackageNames(t *testing.T) {
	goFiles(t, func(path string, src []byte) {
		switch base := filepath.Base(filepath.Dir(path)); base {
		case "util", "utils", "common", "helpers", "misc":
			t.Errorf("%s: package %s says nothing of what it is for", path, base)
		}
	})
}

// Package constraint holds the answers of one model to what they must look
// like: it compiles formats and calls of tools to grammars over the model's
// vocabulary, and says from where in an answer they hold, which is after its
// reasoning.
package constraint

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"

	"ridge/text/chat"
	"ridge/text/grammar"
	"ridge/text/grammar/schema"
	"ridge/text/tokenizer"
)

// Format is what the text of an answer must look like. The zero value allows
// any text.
type Format struct {
	kind   kind
	source string
	texts  []string
	jump   bool
	loose  bool
}

type kind uint8

const (
	anyText kind = iota
	jsonObject
	jsonSchema
	regex
	choice
	gbnf
	lark
	structuralTag
)

// JSON is any JSON object.
func JSON() Format { return Format{kind: jsonObject} }

// JSONSchema is JSON that the schema source allows; docs/grammars.md says which
// keywords are known.
func JSONSchema(source []byte) Format { return Format{kind: jsonSchema, source: string(source)} }

// Regex is a text that the whole of expr matches.
func Regex(expr string) Format { return Format{kind: regex, source: expr} }

// Choice is one of the texts.
func Choice(texts ...string) Format { return Format{kind: choice, texts: texts} }

// GBNF is a text of the grammar, in llama.cpp's notation.
func GBNF(source string) Format { return Format{kind: gbnf, source: source} }

// Lark is a text of the grammar, in the variant of Lark's notation that llguidance
// reads.
func Lark(source string) Format { return Format{kind: lark, source: source} }

// StructuralTag is free text in which what follows some tags is held to formats:
// source is JSON as [schema.StructuralTag] takes it.
func StructuralTag(source []byte) Format {
	return Format{kind: structuralTag, source: string(source)}
}

// JumpAhead returns f with a fixed spacing of JSON, so that much of the text is
// forced: for answers that take forced text without drawing it.
func (f Format) JumpAhead() Format {
	f.jump = true
	return f
}

// Loose returns f without what of its schema cannot be enforced: the grammar's
// Unenforced names it. Otherwise such a schema is an error.
func (f Format) Loose() Format {
	f.loose = true
	return f
}

// Any reports whether f allows any text.
func (f Format) Any() bool { return f.kind == anyText }

func (f Format) options() schema.Options {
	o := schema.Options{Loose: f.loose}
	if f.jump {
		o.Whitespace = schema.Spaced
	}
	return o
}

func (f Format) key() string {
	return strings.Join(append([]string{"format", strconv.Itoa(int(f.kind)), strconv.FormatBool(f.jump), strconv.FormatBool(f.loose), f.source}, f.texts...), "\x00")
}

func (f Format) compile(ctx context.Context, v *grammar.Vocabulary) (*grammar.Grammar, error) {
	o := f.options()
	o.Context = ctx
	b := &grammar.Builder{Context: ctx}
	var root *grammar.Rule
	var err error
	switch f.kind {
	case anyText:
		return nil, errors.New("constraint: format: expected one, found that any text is allowed")
	case jsonObject:
		return schema.JSON(v, true, o)
	case jsonSchema:
		return schema.Compile(v, []byte(f.source), o)
	case structuralTag:
		return schema.StructuralTag(v, []byte(f.source), o)
	case lark:
		return schema.Lark(v, f.source, o)
	case regex:
		b.Source = "regex"
		root, err = b.Regex(f.source)
	case choice:
		b.Source = "choice"
		root, err = b.Choice(f.texts)
	default:
		b.Source = "gbnf"
		root, err = b.GBNF(f.source)
	}
	if err != nil {
		return nil, err
	}
	return b.Compile(root, v, 0)
}

// part is f as a part of a union.
func (f Format) part() schema.Part {
	switch f.kind {
	case jsonObject:
		return schema.Part{Object: true}
	case jsonSchema:
		return schema.Part{Schema: []byte(f.source)}
	case regex:
		return schema.Part{Regex: f.source}
	case choice:
		return schema.Part{Choice: f.texts}
	}
	if f.kind == lark {
		return schema.Part{Lark: f.source}
	}
	return schema.Part{GBNF: f.source}
}

// Unenforced is a part of a schema that answers are not held to.
type Unenforced = grammar.Unenforced

// maxGrammars is how many compiled grammars a compiler keeps.
const maxGrammars = 64

// Compiler compiles for one model. It may be used by several goroutines.
type Compiler struct {
	tok    *tokenizer.Tokenizer
	syntax chat.Syntax
	ends   []int32
	cache  *grammar.Cache
	vocab  func() *grammar.Vocabulary // made when it is needed first
}

// NewCompiler returns a compiler for a model with the tokenizer t, which writes
// reasoning and calls in the syntax s. ends are the tokens that end an answer.
func NewCompiler(t *tokenizer.Tokenizer, s chat.Syntax, ends []int32) *Compiler {
	c := &Compiler{tok: t, syntax: s, ends: ends, cache: grammar.NewCache(maxGrammars)}
	c.vocab = sync.OnceValue(func() *grammar.Vocabulary {
		v := grammar.NewVocabulary(t.Piece, t.VocabSize(), ends, t.IsControl)
		v.SpellWith(func(text string) []int32 { return Continuation(t, text) })
		return v
	})
	return c
}

// With returns a compiler for another syntax of calls and reasoning. They share
// the vocabulary and what was compiled.
func (c *Compiler) With(s chat.Syntax) *Compiler {
	o := *c
	o.syntax = s
	return &o
}

// Warm makes ready what the first format would have to wait for.
func (c *Compiler) Warm() { c.vocab() }

// Format compiles f. When ctx ends, so does the work, and its error is returned.
func (c *Compiler) Format(ctx context.Context, f Format) (*grammar.Grammar, error) {
	return c.cache.Get(ctx, f.key(), func(ctx context.Context) (*grammar.Grammar, error) { return f.compile(ctx, c.vocab()) })
}

// Continuation returns the tokens of t for a text that follows another one: without
// the space that some vocabularies put before a text.
func Continuation(t *tokenizer.Tokenizer, text string) []int32 {
	ids := t.Encode(nil, text, tokenizer.EncodeOptions{})
	var b []byte
	for _, id := range ids {
		b = t.AppendPiece(b, id)
	}
	if string(b) == text {
		return ids
	}
	ids = t.Encode(ids[:0], "\n"+text, tokenizer.EncodeOptions{})
	for i, id := range ids {
		if bytes.HasSuffix(t.Piece(id), []byte("\n")) {
			return ids[i+1:]
		}
	}
	return nil
}

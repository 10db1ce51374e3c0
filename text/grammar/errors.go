package grammar

import (
	"fmt"
	"strings"

	"ridge/internal/diag"
)

// Kind says why a grammar was refused.
type Kind int

const (
	Invalid     Kind = iota // it is not written correctly
	Unsupported             // it is correct, but asks for what cannot be enforced
	TooLarge                // it exceeds a limit on size, time or memory
	Unmatchable             // no text conforms to it
)

// Error is the reason why a grammar was refused. Nothing has been generated
// when it is returned.
type Error struct {
	Kind   Kind
	Source string // "schema", "regex", "gbnf", "lark", "choice", "tools", "json", "union" or "structural tag"
	// Where is a JSON pointer into the schema ("#/properties/a"), a line and
	// column of a grammar ("line 3, column 7"), or empty.
	Where   string
	Keyword string // the keyword, name or construct that is refused, or empty
	Why     string
}

// Error returns one line, "grammar: SOURCE: WHERE: KEYWORD: WHY".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("grammar: " + e.Source)
	if e.Where != "" {
		b.WriteString(": " + diag.Path(e.Where))
	}
	if e.Keyword != "" {
		b.WriteString(": " + diag.Quote(e.Keyword))
	}
	b.WriteString(": " + e.Why)
	return b.String()
}

// Limits on what a source of any language may ask for.
const (
	MaxSource  = 1 << 20 // bytes
	MaxNesting = 128     // of schemas, groups and literals
	MaxRepeat  = 1 << 20 // largest count of a repetition
)

// Limits on what a grammar may become. Each is far above what real schemas and
// grammars need, and low enough that compiling stays within about a second and
// some tens of megabytes.
const (
	maxRegexSource = 16 << 10
	maxRules       = 20_000  // rules of an automaton
	maxStates      = 250_000 // states of an automaton, all rules
	maxEdges       = 2_000_000
	maxRuneStates  = 20_000 // states of an automaton over characters
	maxRuneCells   = 2 << 20
	maxCompileWork = 60_000_000 // elementary steps of one compilation
	maxChoices     = 100_000
)

// Limits on a running grammar.
const (
	defaultMaxDepth = 512
	highestMaxDepth = 10_000
	maxOpWork       = 1_000_000 // elementary steps of one mask or token
	prepareWork     = 40_000    // steps of finding masks before the first token
	maxItems        = 4096      // simultaneous readings of the text
	maxMachineBytes = 24 << 20  // remembered situations and masks of a grammar
	maxVocabBytes   = 64 << 20  // remembered masks of a vocabulary
	maxForced       = 4096      // bytes of forced text
)

func tooLarge(source, where, format string, args ...any) *Error {
	return &Error{Kind: TooLarge, Source: source, Where: where, Why: "too large: " + fmt.Sprintf(format, args...)}
}

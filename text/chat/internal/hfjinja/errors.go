package hfjinja

import "fmt"

// Error is what is wrong with a template or with what it was asked to do.
type Error struct {
	Line   int    // 1-based line of the template source
	Msg    string // what and why
	Raised bool   // the template itself refused its input (raise_exception)
}

// Error returns "line N: message".
func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Msg) }

func syntaxErr(line int, format string, args ...any) error {
	return &Error{Line: line, Msg: fmt.Sprintf(format, args...)}
}

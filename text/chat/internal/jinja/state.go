package jinja

import (
	"cmp"
	"fmt"
	"time"

	"ridge/internal/spans"
)

// Limits bound one rendering. The zero value of a field means its default.
type Limits struct {
	Time  time.Duration   // wall clock; default 10 s
	Steps int             // statements, loop passes and items handled; default 20 million
	Bytes int             // bytes of all strings and lists made, output included; default 512 MiB
	Calls int             // macros and recursive loops inside each other; default 100
	Until time.Time       // the end of several renderings together; zero for none
	Done  <-chan struct{} // closed when nobody wants the result any more; nil for never
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Time:  cmp.Or(max(l.Time, 0), 10*time.Second),
		Steps: cmp.Or(max(l.Steps, 0), 20_000_000),
		Bytes: cmp.Or(max(l.Bytes, 0), 512<<20),
		Calls: cmp.Or(max(l.Calls, 0), 100),
		Until: l.Until,
		Done:  l.Done,
	}
}

// Error is what is wrong with a template or with what it was asked to do.
type Error struct {
	Line   int    // 1-based line of the template source
	Msg    string // what and why
	Raised bool   // the template itself refused its input (raise_exception)
}

// Error returns "line N: message".
func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Msg) }

func errorAt(line int, format string, args ...any) *Error {
	return &Error{Line: line, Msg: fmt.Sprintf(format, args...)}
}

// catch is deferred by the two entries of the package, Compile and Render.
// Below them an error is a panic with an *Error: nearly every operation of a
// template can fail, and none of them goes on after an error.
func catch(err *error, line *int) {
	switch e := recover().(type) {
	case nil:
	case *Error:
		*err = e
	default:
		// Not reached as far as fuzzing can tell; a template from a stranger
		// must not end the process if that is wrong.
		*err = errorAt(*line, "internal: %v", e)
	}
}

// state is one rendering: its budget, its output so far and its variables.
type state struct {
	limits   Limits
	now      func() time.Time
	deadline time.Time
	line     int    // of the statement being run
	steps    int    // left
	bytes    int    // left
	check    int    // steps until the clock is looked at
	calls    int    // macros and recursive loops being run inside each other
	out      []byte // printed; a block whose text is captured takes back its end
	given    []Span // of out
	frame    *frame // of the function being run
}

// frame holds the variables of one run of a function: the template itself, a
// macro, or the body of a recursive loop.
type frame struct {
	slots []value
	up    *frame // of the function around it in the source
}

func newState(l Limits, now func() time.Time) *state {
	l = l.withDefaults()
	if now == nil {
		now = time.Now
	}
	end := time.Now().Add(l.Time)
	if !l.Until.IsZero() && l.Until.Before(end) {
		end = l.Until
	}
	return &state{
		limits: l, now: now, deadline: end,
		steps: l.Steps, bytes: l.Bytes, check: checkEvery, line: 1,
	}
}

const checkEvery = 4096

func (st *state) errorf(format string, args ...any) *Error {
	return errorAt(st.line, format, args...)
}

// step counts n units of work.
func (st *state) step(n int) {
	st.steps -= n
	if st.check -= n; st.check < 0 || st.steps < 0 {
		st.slowStep()
	}
}

func (st *state) slowStep() {
	if st.steps < 0 {
		panic(st.errorf("template takes more than %d steps", st.limits.Steps))
	}
	st.check = checkEvery
	select {
	case <-st.limits.Done:
		panic(st.errorf("nobody wants the text any more"))
	default:
	}
	if time.Now().After(st.deadline) {
		panic(st.errorf("template takes longer than %v", st.limits.Time))
	}
}

// alloc counts n bytes about to be allocated, and the work of filling them.
func (st *state) alloc(n int) {
	if n < 0 || n > st.bytes {
		panic(st.errorf("template makes more than %d bytes of text and lists", st.limits.Bytes))
	}
	st.bytes -= n
	st.step(n >> 6)
}

// allocEach counts n times size bytes; the product may be beyond an int.
func (st *state) allocEach(n, size int) {
	if size > 0 && n > st.bytes/size {
		n, size = st.bytes+1, 1
	}
	st.alloc(n * size)
}

const itemBytes = 48 // a list's slot and the boxed value in it

// enter runs body with variables of its own, as part of what is named.
func (st *state) enter(what string, slots int, up *frame, body func()) {
	if st.calls >= st.limits.Calls {
		panic(st.errorf("%s called more than %d deep", what, st.limits.Calls))
	}
	st.alloc(64 + 16*slots)
	line, outer := st.line, st.frame
	st.frame = newFrame(slots, up)
	st.calls++
	body()
	st.calls--
	st.line, st.frame = line, outer
}

func newFrame(slots int, up *frame) *frame {
	f := &frame{make([]value, slots), up}
	for i := range f.slots {
		f.slots[i] = undefined{}
	}
	return f
}

// print adds a text with the given parts of it to the output.
func (st *state) print(s string, given []Span) {
	st.alloc(len(s) + len(given)*spanBytes)
	st.given = spans.Append(st.given, given, len(st.out))
	st.out = append(st.out, s...)
}

func (st *state) printValue(v value) {
	v = st.textOf(v)
	s, _ := text(v)
	st.print(s, spansOf(v))
}

// capture returns what run prints, instead of printing it.
func (st *state) capture(run func()) value {
	start, before := len(st.out), len(st.given)
	last := Span{}
	if before > 0 {
		last = st.given[before-1] // what run prints may make it longer
	}
	run()
	s, given := string(st.out[start:]), spans.Cut(st.given, start, len(st.out))
	st.out, st.given = st.out[:start], st.given[:before]
	if before > 0 {
		st.given[before-1] = last
	}
	st.alloc(len(s) + len(given)*spanBytes)
	return newText(s, given, false)
}

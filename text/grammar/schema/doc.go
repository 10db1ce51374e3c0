// Package schema compiles JSON schemas, and the forms that contain them (calls of
// tools, structural tags, unions with other languages), to grammars.
//
// A schema is parsed keyword by keyword, and where it refers to others, says not,
// if or unevaluated, it is rewritten: a conjunction of schemas becomes the list
// of its alternatives, each of which says for every type what its values must
// meet. From these, rules are added to a [grammar.Builder]: strings as automata
// over characters, numbers as automata over digits, objects and arrays as graphs
// whose edges call the rules of their members and items. That is all that this
// package and the automaton know of each other.
//
// What cannot be enforced exactly is refused, with its place and keyword.
// docs/grammars.md lists what is supported.
package schema

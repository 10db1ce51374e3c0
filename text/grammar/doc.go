// Package grammar turns a regular expression, a list of strings, an EBNF grammar
// or, with package schema, a JSON schema into masks over the tokens of a
// vocabulary: at each step of generation it says which tokens can still lead to a
// text of the language, so that whatever the model prefers, the finished text
// conforms.
//
// All languages add rules to a [Builder], which compiles them to one thing, a
// pushdown automaton over bytes (program): rules whose states have edges labelled
// with byte ranges or with calls of other rules. A running grammar is a set of
// stacks, kept as an interned graph (machine), which makes each distinct situation
// a value that is computed once: its successors, its mask and its forced text are
// remembered.
//
// Masks are found by walking the vocabulary as a trie of token bytes. For each
// automaton state the tokens that stay inside its rule are known independently
// of the stack and shared by all grammars of the vocabulary; only the few
// tokens that leave the rule are followed into the stack at hand.
//
// The package fails closed. What it cannot enforce exactly it refuses when
// compiling, with the place and the name of what is refused, and every limit on
// time and memory ends in an error, never in an unconstrained text.
//
// The languages and their limits are described in docs/grammars.md.
package grammar

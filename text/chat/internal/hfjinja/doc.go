// Package hfjinja renders chat templates as Hugging Face transformers does:
// jinja2's ImmutableSandboxedEnvironment with trim_blocks, lstrip_blocks, the
// loop controls, the generation tag, and json.dumps as tojson.
//
// Templates come with models, from strangers, so the work of rendering one
// is bounded. The library that runs them, github.com/ardanlabs/jinja, has no
// hooks for that (a macro that calls itself exhausts the stack and ends the
// process; "x ~ x" in a loop doubles a string until memory is gone), and its
// operators and filters follow Go's rules where they differ from Python's. A
// template is therefore first translated: this package reads jinja2's
// grammar and writes an equivalent template in a small subset of the
// library's language, in which every operator, filter, test, call, loop pass
// and printed value is a call of a guard. Guards count steps, bytes and
// nesting, know the current line, and compute what Python would. The library
// is left with control flow, variables, "and", "or", "not" and literals.
//
// Where it is known to differ from the reference:
//   - methods that change a list or dict (append, update, ...) work; the
//     reference's sandbox refuses them. They change the rendering's own copy.
//   - the length and the JSON of a generator (map, select, ...) are those of
//     its items; Python raises an error.
//   - keys of dicts are strings, numbers or none; subscripts have one index.
//   - integer results beyond 64 bits are errors; integers in JSON may have any
//     size and print exactly, but cannot be calculated with.
//   - views and methods print differently (dict_items(...), <built-in ...>).
//   - upper and lower map characters one to one, apart from ß.
//   - the filters random, urlize, wordwrap, xmlattr, filesizeformat, pprint and
//     striptags, the function lipsum, and the tags that need other files
//     (include, import, extends, block) or autoescape do not exist.
package hfjinja

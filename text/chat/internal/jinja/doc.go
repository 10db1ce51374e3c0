// Package jinja renders chat templates as Hugging Face transformers does:
// jinja2's ImmutableSandboxedEnvironment with trim_blocks, lstrip_blocks, the
// loop controls, the generation tag, and json.dumps as tojson.
//
// Compile reads a template in two passes: lex settles white space and makes
// tokens, the parser makes a tree in which every variable has its place in a
// frame. Render runs the tree: statements are executed (exec.go, loop.go,
// macro.go), expressions evaluated to Python's values (eval.go, value.go).
//
// Templates come with models, from strangers, so both are bounded. Compile
// bounds the source and the nesting in it. Render counts steps, bytes and
// calls inside each other, and looks at the clock: every statement and
// operation costs a step, and whatever makes a string or a list counts its
// bytes before it makes it (state.go).
//
// Where it is known to differ from the reference:
//   - methods that change a list or dict (append, update, ...) work; the
//     reference's sandbox refuses them. They change the rendering's own copy.
//   - the length and the JSON of a generator (map, select, ...) or of a view of
//     a dict are those of its items; Python raises an error.
//   - subscripts have one index.
//   - a value that contains itself cannot be printed.
//   - integer results beyond 64 bits are errors; integers in JSON may have any
//     size and print exactly, but cannot be calculated with.
//   - generators and methods print differently (<built-in ...>).
//   - upper and lower map characters one to one, apart from ß.
//   - the filters random, urlize, wordwrap, xmlattr, filesizeformat, pprint and
//     striptags, the function lipsum, and the tags that need other files
//     (include, import, extends, block) or autoescape do not exist.
package jinja

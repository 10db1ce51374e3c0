// Package wire is how the dialects read requests and write answers: bodies of
// JSON with errors that name the field, the forms of fields that several APIs
// share, streams of events and of lines.
package wire

// Package fault has the errors that clients are told of, as values: each dialect
// writes them in its own form.
package fault

// Package caller carries what is known of a request in its context: its id, who
// it counts for, and what the log will say of it.
package caller

// Package watch answers the routes under /ridge/, which show what the engines do:
// status, the steps and their rows as they come, pages of keys and values, the
// roofline, requests.
//
// On a server with keys the caller of each of them knows the requests of its own
// key. Of others it sees numbers alone: their ids are replaced by names that say
// nothing, and their tenants and texts are left out. A key with admin=1, the only
// key of a server, and everybody on a server without keys see all.
package watch

// Package run is the one road that the requests of all dialects take: from
// conversations and prompts to tokens, through an engine, and back to text, tool
// calls and reasoning. It knows nothing of HTTP and of the forms that dialects
// have for requests and answers.
//
// A dialect makes a Chat or a Completion of what a client sent, lends a Model
// from the Library and asks it for a Plan: tokens, sampling, grammar, stop
// strings. A Runner runs plans; what comes are Deltas, one for each token that
// says something, or whole Answers, and Totals of what they took. What is wrong
// with a request is a fault.Error, which the dialect writes in its own form.
package run

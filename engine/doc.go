// Package engine runs the requests of many clients on one model. It speaks
// token ids and knows neither text nor transport.
//
// One goroutine, the loop, owns the scheduler, the page pool, the prefix tree,
// the sequences and the model; nothing it works on is locked. Everything else
// happens at its two borders: an inbox of commands, which the loop empties
// before each step, and a [Stream] of events per request, which the loop never
// waits for.
//
// A step is: commands → sched.Next → one model.Forward over all rows → a token
// drawn per row, in parallel → sched.Done → full pages published to the prefix
// tree, choices forked, events sent. What a request gets does not depend on what
// else is in its steps, on how its prompt was cut, on the prefix tree or on
// preemption.
package engine

package aside

import (
	"runtime"
	"sync"
	"time"
)

// room is the number of processors that Go uses.
var room processors

// processors are those that Go may use: one more for each piece of work aside.
type processors struct {
	mu     sync.Mutex
	allow  bool
	most   int // without any
	busy   int // pieces of work
	more   int // processors for them
	shrink *time.Timer
}

// calm is how long there must be less work before there are fewer processors: to
// change their number stops all goroutines for a moment.
const calm = time.Second

// MakeRoom lets Go use a processor more for each piece of work aside, for as long as
// there is some. It is for programs that serve; a processor quota would be used
// up by it, so it does not belong where there is one.
func MakeRoom() {
	room.mu.Lock()
	defer room.mu.Unlock()
	room.allow = true
}

func (p *processors) enter() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy++; !p.allow || p.busy <= p.more {
		return
	}
	if p.more == 0 {
		p.most = runtime.GOMAXPROCS(0)
	}
	p.more = p.busy
	runtime.GOMAXPROCS(p.most + p.more)
}

func (p *processors) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy--; p.busy >= p.more {
		return
	}
	if p.shrink == nil {
		p.shrink = time.AfterFunc(calm, p.fit)
	} else {
		p.shrink.Reset(calm)
	}
}

// fit takes away the processors that no work needs.
func (p *processors) fit() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy >= p.more {
		return
	}
	p.more = p.busy
	runtime.GOMAXPROCS(p.most + p.more)
}

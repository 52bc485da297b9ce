package engine

import (
	"fmt"

	"github.com/ringi-dev/ringi"
)

// told reports whether somebody reads what is no log event.
func (a *activation) told() bool { return a.st != nil || a.e.cfg.Live != nil }

// emitLive hands out what is no log event.
func (a *activation) emitLive(ev ringi.Event) {
	a.st.emit(ev)
	a.e.tellLive(ev)
}

// tellCommitted tells what a commit added, up to a sequence number.
func (e *Engine) tellCommitted(runID string, bodies []ringi.EventBody, seq int64) {
	if e.cfg.Live == nil {
		return
	}
	for i, b := range bodies {
		e.tellLive(ringi.Event{Seq: seq - int64(len(bodies)-1-i), Kind: b.Kind(), RunID: runID})
	}
}

// tellLive calls Config.Live, recovered: it is somebody else's code.
func (e *Engine) tellLive(ev ringi.Event) {
	if e.cfg.Live == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			e.log.Error("live function panicked", "run", ev.RunID, "panic", fmt.Sprint(p))
		}
	}()
	e.cfg.Live(ev)
}

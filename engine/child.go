package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync/atomic"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/toolcontext"
	"github.com/ringi-dev/ringi/sign"
)

// A run that is started inside a tool's handler is a child. It records its
// parent and inherits what binds it, each at its strictest; until a child can
// suspend through its parent it is unattended.

// parentage is what a handler's context carries of the run around it. It is a
// snapshot: a handler may outlive its call.
type parentage struct {
	ctx    toolcontext.Context
	call   told
	e      *Engine
	up     *parentage
	start  *ringi.RunStarted
	thread string
	runID  string
	callID string
	mark   ringi.DataClass
	tree   *tree
	depth  int // 1 for the child of a run that has no parent
	steps  int // left of the parent's budgets
	calls  int
	raised atomic.Pointer[ringi.DataClass] // the highest mark of the children
	over   atomic.Bool                     // the call has come back, or was given up
}

// told is what a handler may ask about its own call, beyond its run.
type told struct {
	space, tool, decider string
	key                  string // "" until somebody asks for it
	input                ringi.Input
	step, pos, attempt   int
}

// idempotencyKey derives the key where that was put off: most reads never ask.
// Then it is known to be derivable.
func (p *parentage) idempotencyKey() string {
	if p.call.key != "" {
		return p.call.key
	}
	key, _ := sign.IdempotencyKey(p.runID, p.call.step, p.call.pos, p.call.tool, string(p.call.input))
	return key
}

// Tell makes the tool's context.
func (p *parentage) Tell() any {
	return &ringi.ToolContext{
		Space: p.call.space, Thread: p.thread, RunID: p.runID, CallID: p.callID, Tool: p.call.tool, Key: p.idempotencyKey(),
		Initiator: p.start.By, Decider: p.call.decider, Attempt: p.call.attempt,
	}
}

// tree is the budget that a run shares with every run below it: what children
// call counts for the first of them.
type tree struct {
	limit int          // of the first run; 0 or less: none
	own   atomic.Int64 // calls of the first run, as its newest handler was told
	below atomic.Int64 // calls of all runs below it
}

// treeFull reports whether n more calls are more than the tree may make.
func (a *activation) treeFull(n int) bool {
	switch {
	case a.parent != nil:
		t := a.parent.tree
		return t.limit > 0 && int(t.own.Load()+t.below.Load())+n > t.limit
	case a.tree != nil:
		return a.tree.limit > 0 && a.s.calls+int(a.tree.below.Load())+n > a.tree.limit
	}
	return false
}

// spend counts the calls of a run inside a run.
func (a *activation) spend(n int) {
	if a.parent != nil {
		a.parent.tree.below.Add(int64(n))
	}
}

// maxDepth is how deep runs may nest: an agent whose tool starts the same agent
// would else never end.
const maxDepth = 8

func parentOf(ctx context.Context) *parentage {
	p, _ := ctx.Value(toolcontext.RunKey{}).(*parentage)
	return p
}

// parentageOf fills in what a child inherits.
func (a *activation) parentageOf(p *parentage, callID string) {
	l := a.s.start.Limits
	p.e, p.up, p.start, p.thread, p.runID, p.callID, p.mark = a.e, a.parent, a.s.start, a.s.start.Thread, a.s.id, callID, a.mark
	if a.parent != nil {
		p.depth, p.tree = a.parent.depth+1, a.parent.tree
	} else {
		a.treeOnce.Do(func() {
			if a.tree == nil {
				a.tree = &tree{limit: l.ToolCalls}
			}
		})
		p.depth, p.tree = 1, a.tree
		p.tree.own.Store(int64(a.s.calls))
	}
	if l.Steps > 0 {
		p.steps = max(l.Steps-len(a.s.turns), 1)
	}
	if l.ToolCalls > 0 {
		p.calls = max(l.ToolCalls-a.s.calls, 1)
	}
}

// inherit makes a child's start as strict as its parent's.
func (a *activation) inherit(ev *ringi.RunStarted) {
	p := a.parent
	if p == nil {
		return
	}
	ev.Parent = ringi.ParentRef{Thread: p.thread, RunID: p.runID, CallID: p.callID}
	a.s.row.Parent = p.runID
	if ev.By.IsZero() {
		ev.By = p.start.By
	}
	if ev.Unattended == ringi.Attended {
		ev.Unattended = ringi.PerTool
	}
	if p.start.Unattended == ringi.PerTool {
		ev.Unattended = ringi.PerTool
	}
	ev.Zone = lessTrusted(ev.Zone, p.start.Zone)
	ev.Mark = higher(ev.Mark, p.mark)
	ev.Limits = ev.Limits.Strictest(p.start.Limits).Strictest(ringi.Limits{Steps: p.steps, ToolCalls: p.calls})
	if ev.Deciders.IsZero() {
		ev.Deciders = p.start.Deciders
	}
	if p.start.FourEyes == string(FourEyesAll) || ev.FourEyes == "" {
		ev.FourEyes = p.start.FourEyes
	}
}

// lessTrusted is the zone with the lower ceiling; an undeclared one gives way.
func lessTrusted(a, b ringi.TrustZone) ringi.TrustZone {
	if a == "" || b == "" {
		return a + b
	}
	ca, _ := a.Ceiling()
	cb, _ := b.Ceiling()
	if cb.Rank() < ca.Rank() {
		return b
	}
	return a
}

// raise tells the parent what its child read.
func (a *activation) raise() {
	p := a.parent
	if p == nil || a.mark == "" {
		return
	}
	for {
		old := p.raised.Load()
		m := a.mark
		if old != nil {
			m = higher(*old, a.mark)
		}
		if p.raised.CompareAndSwap(old, &m) {
			return
		}
	}
}

// orphaned reports whether a child is resumed outside its parent's call: that
// call has ended or is unknown, and nobody waits for the child.
func (a *activation) orphaned() bool {
	return !a.s.start.Parent.IsZero() && (a.parent == nil || a.parent.runID != a.s.start.Parent.RunID)
}

// orphanedGate reports whether the gate was opened inside a call that is over:
// its handler's here, or, for who only tends it, as its run's log has it.
func (a *activation) orphanedGate(ctx context.Context) bool {
	ref := a.s.start.Parent
	switch {
	case ref.IsZero():
		return false
	case a.parent != nil && a.parent.runID == ref.RunID && a.parent.callID == ref.CallID:
		return a.parent.over.Load()
	}
	up, err := a.e.load(ctx, a.s.space, ref.RunID)
	if err != nil {
		return errors.Is(err, ringi.ErrNotFound)
	}
	c := up.call(ref.CallID)
	return up.finished != nil || c == nil || c.result != nil || c.lost
}

// opaque hides who decided from a tool.
func opaque(storeID, id string) string {
	sum := sha256.Sum256([]byte("ringi-decider-v1\x00" + storeID + "\x00" + id))
	return "person_" + hex.EncodeToString(sum[:8])
}

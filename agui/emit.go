package agui

import (
	"strconv"
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/chat"
	"github.com/ringi-dev/ringi/live"
)

// protocol is the version that the events are of.
const protocol = "1.0"

// emitter writes events (AG-UI 1.0) until a client has what a view holds. It knows
// what the client has: nothing, or what a view held, or what was sent since. A turn
// of the model is one assistant message, whose id is the run's and the turn's
// number.
type emitter struct {
	s   *stream
	run string // of Ringi
	chat.Frames
	err error

	started bool
	steps   int    // that the client has begun
	open    int    // the step that was begun here and has not ended; 0 for none
	text    []byte // of the step, as it was sent
	done    int    // steps whose text is whole
	part    string // that is open: kind and message id
	parts   int
	calls   map[string]*had
	// What is live.
	liveStep, liveAttempt int
	livePiece             int
	spoke                 bool // something of the open step was sent
}

// had is what a client has of a call.
type had struct {
	started, ended, over bool
	shown                string
}

func newEmitter(s *stream, run string) *emitter {
	return &emitter{s: s, run: run, calls: map[string]*had{}, livePiece: -1}
}

func (e *emitter) call(id string) *had {
	x := e.calls[id]
	if x == nil {
		x = &had{}
		e.calls[id] = x
	}
	return x
}

// start sends RUN_STARTED, once. The protocol's run is the client's; metadata
// tells ours.
func (e *emitter) start() {
	if e.started {
		return
	}
	e.started = true
	e.Begin("RUN_STARTED")
	e.ids()
	e.Field("protocolVersion", protocol)
	e.Raw("metadata", `{"ringi":{"thread":`+chat.Quote(e.s.c.Thread)+`,"run":`+chat.Quote(e.run)+`}}`)
	e.End()
}

func (e *emitter) ids() {
	e.Field("threadId", e.s.in.ThreadID)
	e.Field("runId", e.s.in.RunID)
}

// have takes what a view holds as sent.
func (e *emitter) have(v *chat.View) {
	e.steps, e.done = len(v.Steps), len(v.Steps)
	for _, s := range v.Steps {
		for _, one := range s.Calls {
			*e.call(one.ID) = had{started: true, ended: true, over: one.Result != nil, shown: one.ShownInput()}
		}
	}
}

// Sync implements chat.Emitter: it sends what the view has and the client has not.
func (e *emitter) Sync(v *chat.View) {
	if e.changed(v) {
		e.snapshotOf(v)
	}
	for i, s := range v.Steps {
		n := i + 1
		if n > e.steps {
			e.beginStep(n)
		}
		if n > e.done && n == e.open {
			e.syncText(v, s)
		}
		e.done = max(e.done, n)
		for _, one := range s.Calls {
			e.syncCall(n, one)
		}
		for _, one := range s.Calls {
			e.syncResult(one)
		}
	}
}

// changed reports whether the client has another input of a call than stands by
// now. A call is sent once: the messages as they stand say what became of it.
func (e *emitter) changed(v *chat.View) bool {
	for _, s := range v.Steps {
		for _, one := range s.Calls {
			if x := e.call(one.ID); x.ended && !chat.Same(x.shown, one.ShownInput()) {
				return true
			}
		}
	}
	return false
}

func (e *emitter) beginStep(n int) {
	e.endStep()
	e.Begin("STEP_STARTED")
	e.Field("stepName", stepName(n))
	e.End()
	e.steps, e.open, e.text, e.spoke = n, n, e.text[:0], false
}

func stepName(n int) string { return "step " + strconv.Itoa(n) }

func (e *emitter) endStep() {
	e.endPart()
	if e.open > 0 {
		e.Begin("STEP_FINISHED")
		e.Field("stepName", stepName(e.open))
		e.End()
		e.open = 0
	}
}

// messageID names the message of a turn.
func messageID(run string, step int) string { return run + "." + strconv.Itoa(step) }

func (e *emitter) endPart() {
	if e.part == "" {
		return
	}
	kind, id, _ := strings.Cut(e.part, " ")
	e.about(kind+"_END", id)
	if kind == "REASONING_MESSAGE" {
		e.about("REASONING_END", id)
	}
	e.part = ""
}

// about is an event that names a message and nothing else.
func (e *emitter) about(kind, id string) {
	e.Begin(kind)
	e.Field("messageId", id)
	e.End()
}

// say sends text or reasoning, in the part that is open or in a new one.
func (e *emitter) say(kind, text string, fresh bool) {
	if open, _, _ := strings.Cut(e.part, " "); open != kind || fresh && kind != "TEXT_MESSAGE" {
		e.endPart()
		e.beginPart(kind)
	}
	_, id, _ := strings.Cut(e.part, " ")
	e.Begin(kind + "_CONTENT")
	e.Field("messageId", id)
	e.Field("delta", text)
	e.End()
	e.spoke = true
}

func (e *emitter) beginPart(kind string) {
	id, role := messageID(e.run, e.steps), "assistant"
	if kind == "REASONING_MESSAGE" {
		e.parts++
		id, role = id+".r"+strconv.Itoa(e.parts), "reasoning"
		e.about("REASONING_START", id)
	}
	e.part = kind + " " + id
	e.Begin(kind + "_START")
	e.Field("messageId", id)
	e.Field("role", role)
	e.End()
}

// takeBack drops what was sent of the open step: it became no message. The
// protocol has no word for that but the messages as they stand.
func (e *emitter) takeBack(v *chat.View) {
	if !e.spoke {
		return
	}
	e.endPart()
	for id, x := range e.calls {
		if x.started && !x.ended {
			e.endCall(id)
			delete(e.calls, id)
		}
	}
	e.text, e.spoke = e.text[:0], false
	e.snapshotOf(v)
}

// syncText makes the text of a step whole.
func (e *emitter) syncText(v *chat.View, s *chat.Step) {
	rest, ok := strings.CutPrefix(s.Text, string(e.text))
	if !ok {
		e.takeBack(v) // the view has the step, so the messages hold its text
		e.text = append(e.text[:0], s.Text...)
		return
	}
	if rest != "" {
		e.say("TEXT_MESSAGE", rest, false)
	}
	e.text = append(e.text[:0], s.Text...)
	e.endPart()
}

// Live implements chat.Emitter: it sends what the model says in the open turn.
func (e *emitter) Live(v *chat.View, frags []live.Fragment, st live.State) {
	if !st.Open || st.Step <= len(v.Steps) {
		return
	}
	if st.Step != e.liveStep || st.Attempt != e.liveAttempt {
		e.liveStep, e.liveAttempt, e.livePiece = st.Step, st.Attempt, -1
		if e.steps >= st.Step {
			e.takeBack(v)
		}
	}
	if e.steps < st.Step {
		e.beginStep(st.Step)
	}
	for _, f := range frags {
		fresh := f.Piece != e.livePiece
		e.livePiece = f.Piece
		switch {
		case f.Kind == ringi.EventInputDelta:
			e.beginCall(st.Step, f.Call, f.Tool)
		case v.Quiet || f.Text == "":
		case f.Kind == ringi.EventTextDelta:
			e.say("TEXT_MESSAGE", f.Text, fresh)
			e.text = append(e.text, f.Text...)
		case f.Kind == ringi.EventReasoningDelta && e.s.h.o.Open: // it may repeat what is not shown
			e.say("REASONING_MESSAGE", f.Text, fresh)
		}
	}
}

// beginCall says that a call is being written. Nothing of its input is sent before
// it was checked and masked.
func (e *emitter) beginCall(step int, id, tool string) {
	x := e.call(id)
	if x.started || id == "" || tool == "" {
		return
	}
	e.endPart()
	e.Begin("TOOL_CALL_START")
	e.Field("toolCallId", id)
	e.Field("toolCallName", tool)
	e.Field("parentMessageId", messageID(e.run, step))
	e.End()
	x.started, e.spoke = true, true
}

func (e *emitter) endCall(id string) {
	e.Begin("TOOL_CALL_END")
	e.Field("toolCallId", id)
	e.End()
}

// syncCall sends a call with its input.
func (e *emitter) syncCall(step int, one *chat.Call) {
	x := e.call(one.ID)
	if x.ended {
		return
	}
	e.beginCall(step, one.ID, one.Tool)
	x.ended, x.shown = true, one.ShownInput()
	e.Begin("TOOL_CALL_ARGS")
	e.Field("toolCallId", one.ID)
	e.Field("delta", x.shown)
	e.End()
	e.endCall(one.ID)
}

// syncResult sends what came of a call.
func (e *emitter) syncResult(one *chat.Call) {
	x := e.call(one.ID)
	if x.over || one.Result == nil {
		return
	}
	e.endPart()
	e.Begin("TOOL_CALL_RESULT")
	e.Field("messageId", resultID(one))
	e.Field("toolCallId", one.ID)
	e.Field("content", resultText(one))
	e.Field("role", "tool")
	e.Raw("metadata", resultMetadata(one))
	e.End()
	x.over = true
}

func resultID(one *chat.Call) string { return one.ID + ".result" }

// resultText is a result as a tool message says it.
func resultText(one *chat.Call) string {
	switch o := one.Result.Outcome; {
	case o != ringi.OutcomeOK && o != ringi.OutcomeResponded:
		return one.ShownFailure()
	case one.Open && one.Output != "":
		return one.Output
	case one.Open:
		return "null"
	}
	return "Done."
}

func resultMetadata(one *chat.Call) string {
	return `{"ringi":{"outcome":` + chat.Quote(string(one.Result.Outcome)) + `}}`
}

// Finish implements chat.Emitter: the run has ended, or waits.
func (e *emitter) Finish(v *chat.View) {
	e.endStep()
	how := `{"ringi":{"status":` + chat.Quote(string(v.Row.Status)) + `,"reason":` + chat.Quote(string(v.Row.Reason)) + `}}`
	switch status := v.Row.Status; {
	case status == ringi.Failed:
		text := "An error occurred."
		if e.s.h.o.ErrorText != nil {
			text = e.s.h.o.ErrorText(v.Row.Reason)
		}
		runError(&e.Frames, text, "failed")
	case status == ringi.Cancelled:
		e.finished(`{"type":"cancelled"}`, how)
	case status.Waiting():
		e.finished(`{"type":"interrupt","interrupts":`+e.s.h.interrupts(v)+`}`, how)
	default:
		e.finished(`{"type":"success"}`, how)
	}
}

func (e *emitter) finished(outcome, metadata string) {
	e.Begin("RUN_FINISHED")
	e.ids()
	e.Raw("outcome", outcome)
	if metadata != "" {
		e.Raw("metadata", metadata)
	}
	e.End()
}

// Take implements chat.Emitter.
func (e *emitter) Take() ([]byte, error) {
	if e.err != nil {
		return nil, e.err
	}
	return e.Frames.Take()
}

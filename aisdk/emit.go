package aisdk

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/chat"
	"github.com/ringi-dev/ringi/internal/strictjson"
	"github.com/ringi-dev/ringi/live"
)

// emitter writes chunks (UI message stream, v1) until a client has what a view
// holds. It knows what the client has: nothing, or what its message says, or what
// was sent since.
type emitter struct {
	h           *Handler
	c           *caller
	chat.Frames // chunks that are to be sent

	steps  int    // that the client has begun
	inStep bool   // the last of them was begun here
	text   []byte // of the step, as it was sent
	done   int    // steps whose text is whole
	part   string
	parts  int
	calls  map[string]*had
	data   map[string]string // state by request
	// What is live.
	liveStep, liveAttempt int
	livePiece             int
	spoke                 bool // something of the open step was sent
}

// had is what a client has of a call.
type had struct {
	started, input bool
	shown          string
	request        string
	responded      bool
	over           bool
}

func newEmitter(h *Handler, c *caller) *emitter {
	return &emitter{h: h, c: c, calls: map[string]*had{}, data: map[string]string{}, livePiece: -1}
}

func (e *emitter) call(id string) *had {
	x := e.calls[id]
	if x == nil {
		x = &had{}
		e.calls[id] = x
	}
	return x
}

func (e *emitter) start(runID string) {
	e.Begin("start")
	e.Field("messageId", runID)
	e.Raw("messageMetadata", metadata(e.c.Thread, runID))
	e.End()
}

func metadata(thread, runID string) string {
	return `{"ringi":{"thread":` + chat.Quote(thread) + `,"run":` + chat.Quote(runID) + `}}`
}

// Sync implements chat.Emitter: it sends what the view has and the client has not.
func (e *emitter) Sync(v *chat.View) {
	for i, s := range v.Steps {
		n := i + 1
		if n > e.steps {
			e.beginStep(n)
		}
		if n > e.done && n == e.steps && e.inStep {
			e.syncText(s)
		}
		e.done = max(e.done, n)
		for _, one := range s.Calls {
			e.syncCall(one)
		}
		for _, one := range s.Calls {
			e.syncDenial(s, one)
		}
		for _, one := range s.Calls {
			e.syncResult(one)
		}
	}
}

func (e *emitter) beginStep(n int) {
	e.endStep()
	e.Begin("start-step")
	e.End()
	e.steps, e.inStep, e.text, e.spoke = n, true, e.text[:0], false
}

func (e *emitter) endStep() {
	e.endPart()
	if e.inStep {
		e.Begin("finish-step")
		e.End()
		e.inStep = false
	}
}

func (e *emitter) endPart() {
	if e.part == "" {
		return
	}
	kind, id, _ := strings.Cut(e.part, " ")
	e.Begin(kind + "-end")
	e.Field("id", id)
	e.End()
	e.part = ""
}

// say sends text or reasoning, in the part that is open or in a new one.
func (e *emitter) say(kind, text string, fresh bool) {
	if open, _, _ := strings.Cut(e.part, " "); open != kind || fresh {
		e.endPart()
		e.parts++
		id := "p" + strconv.Itoa(e.steps) + "." + strconv.Itoa(e.parts)
		e.part = kind + " " + id
		e.Begin(kind + "-start")
		e.Field("id", id)
		e.End()
	}
	_, id, _ := strings.Cut(e.part, " ")
	e.Begin(kind + "-delta")
	e.Field("id", id)
	e.Field("delta", text)
	e.End()
	e.spoke = true
}

// takeBack drops what was sent of the open step: it became no message. The SDK's
// older major has no word for that; there the text stays until the chat is read
// again.
func (e *emitter) takeBack() {
	if !e.spoke {
		return
	}
	e.endPart()
	if e.c.sdk >= 7 {
		e.Begin("reset-step")
		e.End()
		for id, x := range e.calls {
			if !x.input {
				delete(e.calls, id)
			}
		}
	}
	e.text, e.spoke = e.text[:0], false
}

// syncText makes the text of a step whole.
func (e *emitter) syncText(s *chat.Step) {
	rest, ok := strings.CutPrefix(s.Text, string(e.text))
	if !ok {
		e.takeBack()
		rest = s.Text
	}
	if rest != "" {
		e.say("text", rest, false)
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
			e.takeBack()
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
			e.beginInput(f.Call, f.Tool)
		case v.Quiet || f.Text == "":
		case f.Kind == ringi.EventTextDelta:
			e.say("text", f.Text, fresh)
			e.text = append(e.text, f.Text...)
		case f.Kind == ringi.EventReasoningDelta && e.h.o.Open: // it may repeat what is not shown
			e.say("reasoning", f.Text, fresh)
		}
	}
}

// beginInput says that a call is being written. Nothing of its input is sent
// before it was checked and masked.
func (e *emitter) beginInput(id, tool string) {
	if x := e.call(id); x.started || id == "" || tool == "" {
		return
	}
	e.endPart()
	e.Begin("tool-input-start")
	e.Field("toolCallId", id)
	e.Field("toolName", tool)
	e.End()
	e.call(id).started, e.spoke = true, true
}

// syncCall sends a call, what is asked about it and what was answered.
func (e *emitter) syncCall(one *chat.Call) {
	x := e.call(one.ID)
	if x.over {
		return
	}
	if r := one.Result; r != nil && r.Outcome == ringi.OutcomeInvalid && !x.input {
		e.Begin("tool-input-error")
		e.Field("toolCallId", one.ID)
		e.Field("toolName", one.Tool)
		e.Raw("input", one.ShownInput())
		e.Field("errorText", one.ShownFailure())
		e.End()
		x.over = true
		return
	}
	a := one.Newest()
	e.input(one, a, x)
	if a == nil {
		if one.Result != nil || one.Judged.Asks == "" {
			e.automatic(one, x)
		}
		return
	}
	e.asked(one, a, x)
	for _, b := range one.Asks {
		e.request(b)
	}
}

// input sends a call's input, and again where a person changed it. A call that
// the browser runs is sent once it may: the browser runs what it gets.
func (e *emitter) input(one *chat.Call, a *chat.Ask, x *had) {
	shown := one.ShownInput()
	mine := a != nil && a.Kind == ringi.KindResult && a.Here
	if one.Judged.Asks == ringi.KindResult && !mine && one.Result == nil {
		e.beginInput(one.ID, one.Tool)
		return
	}
	if x.input && (chat.Same(x.shown, shown) || x.responded) {
		return
	}
	e.Begin("tool-input-available")
	e.Field("toolCallId", one.ID)
	e.Field("toolName", one.Tool)
	e.Raw("input", shown)
	if mine {
		e.Raw("providerMetadata", `{"ringi":{"request":`+chat.Quote(a.ID)+`,"seal":`+chat.Quote(a.Seal)+`}}`)
	}
	e.End()
	x.started, x.input, x.shown, x.request = true, true, shown, ""
}

// automatic sends what policy answered by itself.
func (e *emitter) automatic(one *chat.Call, x *had) {
	yes, ok := one.Automatic()
	if !ok || x.request != "" || e.c.sdk < 7 {
		return
	}
	x.request, x.responded = autoID(one.ID), true
	e.approvalRequest(x.request, one.ID, "", true)
	e.approvalResponse(x.request, yes, one.AutoReason())
}

// autoID names an automatic approval. It is no request: nobody decides it.
func autoID(callID string) string { return "auto_" + callID }

func (e *emitter) approvalRequest(id, callID, signature string, auto bool) {
	e.Begin("tool-approval-request")
	e.Field("approvalId", id)
	e.Field("toolCallId", callID)
	if auto {
		e.Raw("isAutomatic", "true")
	}
	if signature != "" {
		e.Field("signature", signature)
	}
	e.End()
}

func (e *emitter) approvalResponse(id string, yes bool, reason string) {
	e.Begin("tool-approval-response")
	e.Field("approvalId", id)
	e.Raw("approved", strconv.FormatBool(yes))
	if reason != "" {
		e.Field("reason", reason)
	}
	e.End()
}

// asked sends the approval that stands for a call: as a question to who may
// answer here, as an answer to everybody once it is given.
func (e *emitter) asked(one *chat.Call, a *chat.Ask, x *had) {
	if a.Kind != ringi.KindApproval {
		return
	}
	yes, decided := a.Approved()
	switch {
	case a.Here && x.request != a.ID:
		e.approvalRequest(a.ID, one.ID, a.Seal, false)
		x.request, x.responded = a.ID, false
	case !decided || x.request == a.ID && x.responded || e.c.sdk < 7:
	default:
		if x.request != a.ID {
			e.approvalRequest(a.ID, one.ID, "", false)
		}
		e.approvalResponse(a.ID, yes, a.Said())
		x.request, x.responded = a.ID, true
	}
}

// request sends what the SDK has no part for: until when a request waits, where
// else it is decided, what it wants typed.
func (e *emitter) request(a *chat.Ask) {
	state := a.Stands() + strconv.FormatBool(a.Here)
	if e.data[a.ID] == state || e.data[a.ID] == "" && a.State == ringi.Stale {
		return
	}
	e.data[a.ID] = state
	e.Begin("data-ringi-request")
	e.Field("id", a.ID)
	e.Raw("data", e.h.requestData(a))
	e.End()
}

// requestData is the data of a data-ringi-request part.
func (h *Handler) requestData(a *chat.Ask) string {
	b := append([]byte(nil), `{"request":`...)
	b = strictjson.AppendString(b, a.ID)
	field := func(name, text string) {
		if text != "" {
			b = append(append(append(b, `,"`...), name...), `":`...)
			b = strictjson.AppendString(b, strings.ToValidUTF8(text, "\uFFFD"))
		}
	}
	field("toolCallId", a.Call.ID)
	field("tool", a.Call.Tool)
	field("kind", string(a.Kind))
	field("state", a.Stands())
	b = append(b, `,"here":`+strconv.FormatBool(a.Here)...)
	field("expiresAt", chat.Unix(a.ExpiresAt))
	if h.o.Link != nil && a.State.Open() {
		field("link", h.o.Link(a.ID))
	}
	if a.Here && chat.Typed(a.Kind) {
		b = append(b, `,"input":`+cmp.Or(a.Made.Input, "{}")+`,"schema":`+cmp.Or(string(a.InputSchema), "{}")...)
		field("seal", a.Seal)
	}
	if a.Here && a.Preview != nil {
		field("preview", a.Preview.Text)
	}
	return string(append(b, '}'))
}

// syncDenial says that a call was denied, once its turn is over: the SDK's own
// predicate (7.0.77) takes a denied sibling for an unanswered one.
func (e *emitter) syncDenial(s *chat.Step, one *chat.Call) {
	x := e.call(one.ID)
	if x.over || one.Result == nil || one.Result.Outcome != ringi.OutcomeDenied || !x.responded {
		return
	}
	if !s.Closed && e.c.sdk >= 7 {
		return
	}
	e.Begin("tool-output-denied")
	e.Field("toolCallId", one.ID)
	e.End()
	x.over = true
}

// syncResult sends what came of a call.
func (e *emitter) syncResult(one *chat.Call) {
	x, r := e.call(one.ID), one.Result
	if x.over || r == nil || r.Outcome == ringi.OutcomeDenied && x.responded {
		return
	}
	if r.Outcome == ringi.OutcomeOK || r.Outcome == ringi.OutcomeResponded {
		e.Begin("tool-output-available")
		e.Field("toolCallId", one.ID)
		e.Raw("output", one.ShownOutput())
	} else {
		e.Begin("tool-output-error")
		e.Field("toolCallId", one.ID)
		e.Field("errorText", one.ShownFailure())
	}
	e.End()
	x.over = true
}

// Finish implements chat.Emitter: it ends a stream: the run has ended, or waits.
func (e *emitter) Finish(v *chat.View) {
	e.endStep()
	switch {
	case v.Row.Status == ringi.Failed:
		text := "An error occurred."
		if e.h.o.ErrorText != nil {
			text = e.h.o.ErrorText(v.Row.Reason)
		}
		e.Begin("error")
		e.Field("errorText", text)
	case v.Row.Status == ringi.Cancelled:
		e.Begin("abort")
		e.Field("reason", "stopped")
	case v.Row.Status == ringi.Completed && v.Row.Reason == ringi.ReasonCompleted:
		e.Begin("finish")
		e.Field("finishReason", "stop")
	default:
		e.Begin("finish")
		e.Field("finishReason", "tool-calls")
	}
	e.End()
	e.Buf = append(e.Buf, "data: [DONE]\n\n"...)
}

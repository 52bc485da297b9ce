package aisdk

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/chat"
	"github.com/ringi-dev/ringi/internal/strictjson"
)

// messages gives the chat as UIMessage[], for the first render.
func (h *Handler) messages(w http.ResponseWriter, r *http.Request, c *caller) error {
	rows, err := h.chat.Runs(r.Context(), &c.Caller)
	if err != nil {
		return err
	}
	b := []byte("[")
	for i, row := range rows {
		v, err := h.chat.View(r.Context(), &c.Caller, row.ID)
		if err != nil {
			return err
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = h.appendRun(b, c, v)
		if i == len(rows)-1 && v.Rests {
			h.seen.put(c.Thread, row.ID, v.Seq, h.o.Now())
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(append(b, ']', '\n'))
	return err
}

// appendRun appends a run as messages: what was said, and the answer.
func (h *Handler) appendRun(b []byte, c *caller, v *chat.View) []byte {
	for i, text := range v.Users {
		b = append(b, `{"id":`...)
		b = strictjson.AppendString(b, "msg_"+strings.TrimPrefix(v.Row.ID, "run_")+"_"+strconv.Itoa(i))
		b = append(b, `,"role":"user","parts":[{"type":"text","text":`...)
		b = append(strictjson.AppendString(b, text), `}]},`...)
	}
	b = append(append(b, `{"id":`...), chat.Quote(v.Row.ID)...)
	b = append(append(b, `,"role":"assistant","metadata":`...), metadata(c.Thread, v.Row.ID)...)
	b = append(b, `,"parts":[`...)
	first := true
	add := func(part string) {
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(b, part...)
	}
	for _, s := range v.Steps {
		add(`{"type":"step-start"}`)
		if s.Text != "" {
			add(`{"type":"text","text":` + chat.Quote(s.Text) + `,"state":"done"}`)
		}
		for _, one := range s.Calls {
			add(partOf(one))
			for _, a := range one.Asks {
				if a.State != ringi.Stale {
					add(`{"type":"data-ringi-request","id":` + chat.Quote(a.ID) + `,"data":` + h.requestData(a) + `}`)
				}
			}
		}
	}
	if first {
		add(`{"type":"step-start"}`) // a message has a part
	}
	return append(b, `]}`...)
}

// partOf is a call as a tool part.
func partOf(one *chat.Call) string {
	a, r := one.Newest(), one.Result
	out := `{"type":` + chat.Quote("tool-"+one.Tool) + `,"toolCallId":` + chat.Quote(one.ID)
	input := `,"input":` + one.ShownInput()
	yes, answered := answerOf(one)
	switch {
	case r != nil && (r.Outcome == ringi.OutcomeOK || r.Outcome == ringi.OutcomeResponded):
		out += `,"state":"output-available"` + input + `,"output":` + one.ShownOutput()
		if answered && yes {
			out += approvalPart(one, true)
		}
	case r != nil && r.Outcome == ringi.OutcomeDenied && answered && !yes:
		out += `,"state":"output-denied"` + input + approvalPart(one, false)
	case r != nil:
		out += `,"state":"output-error"` + input + `,"errorText":` + chat.Quote(one.ShownFailure())
		if answered && yes {
			out += approvalPart(one, true)
		}
	case a != nil && a.Kind == ringi.KindApproval && a.Here:
		out += `,"state":"approval-requested"` + input + `,"approval":{"id":` + chat.Quote(a.ID) + `,"signature":` + chat.Quote(a.Seal) + `}`
	case answered && a != nil:
		out += `,"state":"approval-responded"` + input + approvalPart(one, yes)
	case one.Judged.Asks == ringi.KindResult && (a == nil || !a.Here):
		out += `,"state":"input-streaming"`
	default:
		out += `,"state":"input-available"` + input
		if a != nil && a.Kind == ringi.KindResult {
			out += `,"callProviderMetadata":{"ringi":{"request":` + chat.Quote(a.ID) + `,"seal":` + chat.Quote(a.Seal) + `}}`
		}
	}
	return out + "}"
}

// answerOf is what a person or policy said; ok is false where nobody did.
func answerOf(one *chat.Call) (yes, ok bool) {
	if a := one.Newest(); a != nil {
		if a.Kind != ringi.KindApproval {
			return false, false
		}
		return a.Approved()
	}
	return one.Automatic()
}

// approvalPart is the approval of a tool part.
func approvalPart(one *chat.Call, yes bool) string {
	a := one.Newest()
	id, reason, auto := autoID(one.ID), one.AutoReason(), `,"isAutomatic":true`
	if a != nil {
		id, reason, auto = a.ID, a.Said(), ""
	}
	out := `,"approval":{"id":` + chat.Quote(id) + `,"approved":` + chat.BoolText(yes) + auto
	if reason = cmp.Or(reason, ""); reason != "" {
		out += `,"reason":` + chat.Quote(reason)
	}
	return out + "}"
}

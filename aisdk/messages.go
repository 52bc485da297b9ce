package aisdk

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/strictjson"
)

// messages gives the chat as UIMessage[], for the first render.
func (h *Handler) messages(w http.ResponseWriter, r *http.Request, c *chat) error {
	rows, err := h.all(r, c)
	if err != nil {
		return err
	}
	b := []byte("[")
	for i, row := range rows {
		v, err := h.view(r.Context(), c, row.ID)
		if err != nil {
			return err
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = h.appendRun(b, c, v)
		if i == len(rows)-1 && v.rests {
			h.seen.put(c.thread, row.ID, v.seq, h.o.Now())
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(append(b, ']', '\n'))
	return err
}

// all are the chat's runs, oldest first.
func (h *Handler) all(r *http.Request, c *chat) ([]ringi.RunRow, error) {
	var out []ringi.RunRow
	q := ringi.RunQuery{Thread: c.thread, Limit: 1000}
	for {
		rows, err := h.o.Service.Runs(r.Context(), q)
		if err != nil {
			return nil, err
		}
		out = append(out, rows...)
		if len(rows) < q.Limit {
			slices.Reverse(out)
			return out, nil
		}
		q.After = rows[len(rows)-1].ID
	}
}

// appendRun appends a run as messages: what was said, and the answer.
func (h *Handler) appendRun(b []byte, c *chat, v *view) []byte {
	for i, text := range v.users {
		b = append(b, `{"id":`...)
		b = strictjson.AppendString(b, "msg_"+strings.TrimPrefix(v.row.ID, "run_")+"_"+strconv.Itoa(i))
		b = append(b, `,"role":"user","parts":[{"type":"text","text":`...)
		b = append(strictjson.AppendString(b, text), `}]},`...)
	}
	b = append(append(b, `{"id":`...), quote(v.row.ID)...)
	b = append(append(b, `,"role":"assistant","metadata":`...), metadata(c.thread, v.row.ID)...)
	b = append(b, `,"parts":[`...)
	first := true
	add := func(part string) {
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(b, part...)
	}
	for _, s := range v.steps {
		add(`{"type":"step-start"}`)
		if s.text != "" {
			add(`{"type":"text","text":` + quote(s.text) + `,"state":"done"}`)
		}
		for _, one := range s.calls {
			add(one.part())
			for _, a := range one.asks {
				if a.State != ringi.Stale {
					add(`{"type":"data-ringi-request","id":` + quote(a.ID) + `,"data":` + h.requestData(a) + `}`)
				}
			}
		}
	}
	if first {
		add(`{"type":"step-start"}`) // a message has a part
	}
	return append(b, `]}`...)
}

// part is a call as a tool part.
func (one *call) part() string {
	a, r := one.newest(), one.result
	out := `{"type":` + quote("tool-"+one.tool) + `,"toolCallId":` + quote(one.id)
	input := `,"input":` + one.shownInput()
	yes, answered := one.answer()
	switch {
	case r != nil && (r.Outcome == ringi.OutcomeOK || r.Outcome == ringi.OutcomeResponded):
		out += `,"state":"output-available"` + input + `,"output":` + one.shownOutput()
		if answered && yes {
			out += one.approvalPart(true)
		}
	case r != nil && r.Outcome == ringi.OutcomeDenied && answered && !yes:
		out += `,"state":"output-denied"` + input + one.approvalPart(false)
	case r != nil:
		out += `,"state":"output-error"` + input + `,"errorText":` + quote(one.shownFailure())
		if answered && yes {
			out += one.approvalPart(true)
		}
	case a != nil && a.Kind == ringi.KindApproval && a.here:
		out += `,"state":"approval-requested"` + input + `,"approval":{"id":` + quote(a.ID) + `,"signature":` + quote(a.seal) + `}`
	case answered && a != nil:
		out += `,"state":"approval-responded"` + input + one.approvalPart(yes)
	case one.judged.Asks == ringi.KindResult && (a == nil || !a.here):
		out += `,"state":"input-streaming"`
	default:
		out += `,"state":"input-available"` + input
		if a != nil && a.Kind == ringi.KindResult {
			out += `,"callProviderMetadata":{"ringi":{"request":` + quote(a.ID) + `,"seal":` + quote(a.seal) + `}}`
		}
	}
	return out + "}"
}

// answer is what a person or policy said; ok is false where nobody did.
func (one *call) answer() (yes, ok bool) {
	if a := one.newest(); a != nil {
		if a.Kind != ringi.KindApproval {
			return false, false
		}
		return a.approved()
	}
	return one.automatic()
}

// approvalPart is the approval of a tool part.
func (one *call) approvalPart(yes bool) string {
	a := one.newest()
	id, reason, auto := autoID(one.id), one.autoReason(), `,"isAutomatic":true`
	if a != nil {
		id, reason, auto = a.ID, a.reason(), ""
	}
	out := `,"approval":{"id":` + quote(id) + `,"approved":` + boolText(yes) + auto
	if reason = cmp.Or(reason, ""); reason != "" {
		out += `,"reason":` + quote(reason)
	}
	return out + "}"
}

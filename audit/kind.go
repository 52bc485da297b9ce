package audit

import (
	"errors"
	"fmt"

	"github.com/ringi-dev/ringi"
)

var errNoLogEvent = errors.New("not an event of the log")

// body writes an event's payload.
func (c *codec) body(body ringi.EventBody) error {
	switch v := body.(type) {
	case *ringi.RunStarted:
		return put(c, v, runStarted)
	case *ringi.ModelResponded:
		return put(c, v, modelResponded)
	case *ringi.CallJudged:
		return put(c, v, callJudged)
	case *ringi.ApprovalRequested:
		return put(c, v, approvalRequested)
	case *ringi.InputProposed:
		return put(c, v, inputProposed)
	case *ringi.InputRefused:
		return put(c, v, inputRefused)
	case *ringi.ApprovalDecided:
		return put(c, v, approvalDecided)
	case *ringi.ApprovalTakenBack:
		return put(c, v, approvalTakenBack)
	case *ringi.RequestClosed:
		return put(c, v, requestClosed)
	case *ringi.ToolStarted:
		return put(c, v, toolStarted)
	case *ringi.ToolFinished:
		return put(c, v, toolFinished)
	case *ringi.OutcomeUnknown:
		return put(c, v, outcomeUnknown)
	case *ringi.OutcomeSettled:
		return put(c, v, outcomeSettled)
	case *ringi.CancelRequested:
		return put(c, v, cancelRequested)
	case *ringi.RunFinished:
		return put(c, v, runFinished)
	case *ringi.RunErased:
		return put(c, v, runErased)
	}
	return fmt.Errorf("encode %T: %w", body, errNoLogEvent)
}

func put[T any](c *codec, v *T, members func(*codec, *T)) error {
	if v == nil {
		return fmt.Errorf("encode %T: nil", v)
	}
	braces(c, v, members)
	if c.err != nil {
		return fmt.Errorf("encode %T: %w", v, c.err)
	}
	return nil
}

// decodeBody reads the payload of an event of that kind.
func decodeBody(c *codec, kind ringi.EventKind, payload []byte) (ringi.EventBody, error) {
	switch kind {
	case ringi.EventRunStarted:
		return get(c, payload, runStarted)
	case ringi.EventModelResponded:
		return get(c, payload, modelResponded)
	case ringi.EventCallJudged:
		return get(c, payload, callJudged)
	case ringi.EventApprovalRequested:
		return get(c, payload, approvalRequested)
	case ringi.EventInputProposed:
		return get(c, payload, inputProposed)
	case ringi.EventInputRefused:
		return get(c, payload, inputRefused)
	case ringi.EventApprovalDecided:
		return get(c, payload, approvalDecided)
	case ringi.EventApprovalTakenBack:
		return get(c, payload, approvalTakenBack)
	case ringi.EventRequestClosed:
		return get(c, payload, requestClosed)
	case ringi.EventToolStarted:
		return get(c, payload, toolStarted)
	case ringi.EventToolFinished:
		return get(c, payload, toolFinished)
	case ringi.EventOutcomeUnknown:
		return get(c, payload, outcomeUnknown)
	case ringi.EventOutcomeSettled:
		return get(c, payload, outcomeSettled)
	case ringi.EventCancelRequested:
		return get(c, payload, cancelRequested)
	case ringi.EventRunFinished:
		return get(c, payload, runFinished)
	case ringi.EventRunErased:
		return get(c, payload, runErased)
	}
	return nil, fmt.Errorf("decode %q: %w", kind, errNoLogEvent)
}

func get[T any, P interface {
	*T
	ringi.EventBody
}](c *codec, payload []byte, members func(*codec, *T)) (ringi.EventBody, error) {
	v := new(T)
	if !decode(c, string(payload), v, members) {
		*v = *new(T)
		if err := decodeOther(payload, v); err != nil {
			return nil, fmt.Errorf("decode %T: %w", v, err)
		}
	}
	return P(v), nil
}

// refsOf returns what the header repeats of a body. Digests of content have no
// place there: without the nonce and salt that blind them a short content
// would be found from its digest after it was erased.
func refsOf(body ringi.EventBody) refs {
	switch v := body.(type) {
	case *ringi.RunStarted:
		return refs{refBy: v.By.ID}
	case *ringi.CallJudged:
		return refs{refCall: v.Call.ID}
	case *ringi.ApprovalRequested:
		return refs{refCall: v.Call, refRequest: v.Request, refDigest: v.Digest}
	case *ringi.InputProposed:
		return refs{refRequest: v.Request, refBy: v.By.ID, refAnswer: string(v.Answer), refDigest: v.Digest}
	case *ringi.InputRefused:
		return refs{refRequest: v.Request}
	case *ringi.ApprovalDecided:
		return refs{refRequest: v.Request, refBy: v.By.ID, refAnswer: string(v.Answer), refDigest: v.Digest}
	case *ringi.ApprovalTakenBack:
		return refs{refRequest: v.Request, refBy: v.By.ID}
	case *ringi.RequestClosed:
		return refs{refRequest: v.Request}
	case *ringi.ToolStarted:
		return refs{refCall: v.Call, refRequest: v.Request}
	case *ringi.ToolFinished:
		if len(v.Results) == 1 {
			return refs{refCall: v.Results[0].Call}
		}
	case *ringi.OutcomeUnknown:
		return refs{refCall: v.Call, refRequest: v.Request.Request, refDigest: v.Request.Digest}
	case *ringi.OutcomeSettled:
		return refs{refCall: v.Call, refRequest: v.Request, refBy: v.By.ID, refAnswer: string(v.Answer), refDigest: v.Digest}
	case *ringi.CancelRequested:
		return refs{refBy: v.By.ID}
	case *ringi.RunErased:
		return refs{refBy: v.By.ID}
	}
	return refs{}
}

// known reports whether the log of version 1 has the kind.
func known(kind ringi.EventKind) bool {
	switch kind {
	case ringi.EventRunStarted, ringi.EventModelResponded, ringi.EventCallJudged, ringi.EventApprovalRequested,
		ringi.EventInputProposed, ringi.EventInputRefused, ringi.EventApprovalDecided, ringi.EventApprovalTakenBack,
		ringi.EventRequestClosed, ringi.EventToolStarted, ringi.EventToolFinished, ringi.EventOutcomeUnknown,
		ringi.EventOutcomeSettled, ringi.EventCancelRequested, ringi.EventRunFinished, ringi.EventRunErased:
		return true
	}
	return false
}

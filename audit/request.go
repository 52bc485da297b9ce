package audit

import (
	"fmt"

	"github.com/ringi-dev/ringi"
)

// EncodeRequest returns the body of a request's row in the inbox: JSON in the
// spelling of a payload, see the package comment. It is a projection for lists
// and pages, never the source of a grant. A time outside the years 0 to 9999
// has no form; the result is then nil.
func EncodeRequest(r *ringi.ApprovalRequest) []byte {
	b, err := encode(r, approvalRequest)
	if err != nil {
		return nil
	}
	return b
}

// DecodeRequest reads what EncodeRequest wrote, or any other spelling of it.
func DecodeRequest(b []byte) (ringi.ApprovalRequest, error) {
	c := newWriter()
	defer c.free()
	var r ringi.ApprovalRequest
	if decode(c, string(b), &r, approvalRequest) {
		return r, nil
	}
	r = ringi.ApprovalRequest{}
	if err := decodeOther(b, &r); err != nil {
		return ringi.ApprovalRequest{}, fmt.Errorf("decode request: %w", err)
	}
	return r, nil
}

func approvalRequest(c *codec, v *ringi.ApprovalRequest) {
	text(c, "id", must, &v.ID)
	text(c, "space", must, &v.Space)
	text(c, "thread", must, &v.Thread)
	text(c, "run_id", must, &v.RunID)
	text(c, "kind", must, &v.Kind)
	text(c, "state", must, &v.State)
	text(c, "digest", must, &v.Digest)
	text(c, "signature", may, &v.Signature)
	object(c, "call", must, &v.Call, toolCall)
	text(c, "proposed", may, &v.Proposed)
	text(c, "proposed_by", may, &v.ProposedBy)
	texts(c, "supplied", may, &v.Supplied)
	text(c, "replaces", may, &v.Replaces)
	object(c, "tool", must, &v.Tool, tool)
	text(c, "tool_digest", must, &v.ToolDigest)
	object(c, "verdict", must, &v.Verdict, verdict)
	pointer(c, "preview", &v.Preview, preview)
	text(c, "preview_error", may, &v.PreviewError)
	raw(c, "input_schema", &v.InputSchema)
	texts(c, "initiators", may, &v.Initiators)
	object(c, "deciders", may, &v.Deciders, deciders)
	fact(c, "four_eyes", &v.FourEyes)
	list(c, "answers", must, &v.Answers, textValue[ringi.Answer])
	text(c, "why", may, &v.Why)
	text(c, "evidence", may, &v.Evidence)
	fact(c, "untrusted", &v.Untrusted)
	moment(c, "created_at", must, &v.CreatedAt)
	moment(c, "expires_at", may, &v.ExpiresAt)
	number(c, "use_by", must, &v.UseBy)
	fact(c, "proposal_waits", &v.ProposalWaits)
	moment(c, "decided_at", may, &v.DecidedAt)
	text(c, "decided_by", may, &v.DecidedBy)
}

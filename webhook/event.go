package webhook

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/escape"
)

// Type is what a message tells.
type Type string

// The types. An approval here is a request of any kind: for an approval, for
// typed input, for a result or for an outcome.
const (
	ApprovalRequested Type = "approval.requested" // a request waits for a person
	ApprovalDecided   Type = "approval.decided"   // a person answered it
	ApprovalExpired   Type = "approval.expired"   // nobody did in time, or the approval was not used in time
	ApprovalWithdrawn Type = "approval.withdrawn" // it was closed, or the approval was taken back
	ApprovalStale     Type = "approval.stale"     // another took its place (edited, handed over, extended), or it no longer fits
	RunWaiting        Type = "run.waiting"        // the run has a request that waits; one message, however many there are
	RunResumed        Type = "run.resumed"        // none waits any more, and the run goes on
	RunFinished       Type = "run.finished"       // the run has ended

	// Test is sent by ringi webhooks test alone. It is no type to ask for.
	Test Type = "webhook.test"
)

// Types lists the types that an endpoint may ask for.
func Types() []Type {
	return []Type{ApprovalRequested, ApprovalDecided, ApprovalExpired, ApprovalWithdrawn, ApprovalStale, RunWaiting, RunResumed, RunFinished}
}

// Known reports whether an endpoint may ask for the type.
func (t Type) Known() bool { return slices.Contains(Types(), t) }

// Data is what a message says: where to look, and how it stands there. Fields
// that mean nothing for a type are left out.
type Data struct {
	Space  string `json:"space"`
	RunID  string `json:"run_id"`
	Thread string `json:"thread,omitempty"`
	Agent  string `json:"agent,omitempty"`
	// State is the request's for approvals, the run's for runs.
	State string `json:"state"`
	// Reason says why a run ended: a word of a closed list.
	Reason ringi.Reason `json:"reason,omitempty"`

	RequestID string            `json:"request_id,omitempty"`
	CallID    string            `json:"call_id,omitempty"`
	Kind      ringi.RequestKind `json:"kind,omitempty"`
	Tool      string            `json:"tool,omitempty"`
	Answer    ringi.Answer      `json:"answer,omitempty"`
	Replaces  string            `json:"replaces,omitempty"`  // the request that this one took the place of
	Successor string            `json:"successor,omitempty"` // the request that took its place
	ExpiresAt time.Time         `json:"expires_at,omitzero"`
	// URL is the page for people.
	URL string `json:"url,omitempty"`
}

// message is a message before it is signed.
type message struct {
	id   string
	typ  Type
	run  string
	body []byte
}

// maxBody is the most that Standard Webhooks recommends for a body; maxName
// bounds what a caller may have chosen freely.
const (
	maxBody = 20_000
	maxName = 512
)

// newMessage makes the message of a type that a record of a run stands for. Its
// id follows from the record: who makes it again makes the same.
func newMessage(typ Type, seq int64, at time.Time, d Data) (message, error) {
	if len(d.Thread) > maxName {
		d.Thread = ""
	}
	_, what, _ := strings.Cut(string(typ), ".")
	m := message{typ: typ, run: d.RunID, id: fmt.Sprintf("msg_%s_%d_%s", strings.TrimPrefix(d.RunID, "run_"), seq, what)}
	var err error
	m.body, err = encode(typ, at, d)
	return m, err
}

func encode(typ Type, at time.Time, data any) ([]byte, error) {
	b, err := json.Marshal(struct {
		Type      Type      `json:"type"`
		Timestamp time.Time `json:"timestamp"`
		Data      any       `json:"data"`
	}{typ, at.UTC(), data})
	if err != nil {
		return nil, fmt.Errorf("encode message %s: %w", typ, err)
	}
	if b = escape.JSON(nil, b); len(b) > maxBody {
		return nil, fmt.Errorf("encode message %s: it has %d bytes, more than %d", typ, len(b), maxBody)
	}
	return b, nil
}

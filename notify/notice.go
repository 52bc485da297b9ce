package notify

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
)

// Kind says why a notice is sent.
type Kind string

// The kinds of a notice.
const (
	Asked    Kind = "asked"    // something new waits
	Reminder Kind = "reminder" // it still does
	Test     Kind = "test"     // somebody tries his channels
	Confirm  Kind = "confirm"  // somebody shows that a mail address is his
)

// Risk is one word or two for what a call may do. The zero value is not known.
type Risk string

// The risks, from least to most.
const (
	RiskReads   Risk = "reads only"
	RiskUnclear Risk = "effect not declared"
	RiskChanges Risk = "changes data"
	RiskOnce    Risk = "changes data, twice is twice"
	RiskRemote  Risk = "leaves this program"
	RiskUnknown Risk = "outcome unknown"
)

var risks = []Risk{"", RiskReads, RiskUnclear, RiskChanges, RiskOnce, RiskRemote, RiskUnknown}

// riskOf is read off the tool's definition and the request's kind alone.
func riskOf(r ringi.ApprovalRequest) Risk {
	switch {
	case r.Kind == ringi.KindOutcome:
		return RiskUnknown
	case r.Tool.Remote != nil:
		return RiskRemote
	}
	switch r.Tool.Effect {
	case ringi.ReadOnly:
		return RiskReads
	case ringi.IdempotentWrite:
		return RiskChanges
	case ringi.NonIdempotentWrite:
		return RiskOnce
	}
	return RiskUnclear
}

// riskier is the greater of two risks.
func riskier(a, b Risk) Risk {
	for _, r := range risks {
		if r == a {
			return b
		}
		if r == b {
			return a
		}
	}
	return a
}

// Notice is all that a channel is told. It has no field for what is asked.
type Notice struct {
	// ID is the notice's own, the same when it is sent again.
	ID   string
	Kind Kind
	To   Recipient
	// Waiting counts the requests that the notice is about and that still wait.
	Waiting int
	// Agent is whose requests they are; empty where they are several agents'.
	Agent string
	Risk  Risk
	// Expires is when the first of them expires, in the person's time zone; zero
	// for never.
	Expires time.Time
	// Urgent is set for a reminder, and where the expiry is less than an hour
	// away.
	Urgent bool
	// Link is where the person decides: it asks for a login.
	Link string
	// Settings is where the person chooses how he is reached.
	Settings string
	// Tag is the same for notices that take each other's place on a screen.
	Tag string
	// Code is what confirms a mail address; for [Confirm] alone.
	Code string
}

// Recipient is a person with the address that a channel needs.
type Recipient struct {
	// User is his id, Name what people call him.
	User, Name string
	// Mail is a mail address, Topic a topic of ntfy, Device a browser; each is set
	// for its own channel.
	Mail   string
	Topic  string
	Device Device
}

// Title is the notice in a line.
func (n Notice) Title() string {
	switch {
	case n.Kind == Test:
		return "Ringi can reach you here"
	case n.Kind == Confirm:
		return "Confirm this address for Ringi"
	case n.Kind == Reminder && n.Waiting == 1:
		return "Reminder: a request still waits for you"
	case n.Kind == Reminder:
		return fmt.Sprintf("Reminder: %d requests still wait for you", n.Waiting)
	case n.Waiting == 1:
		return "A request needs your decision"
	}
	return fmt.Sprintf("%d requests need your decision", n.Waiting)
}

// Lines are the notice's other words, a fact a line.
func (n Notice) Lines() []string {
	switch n.Kind {
	case Test:
		return []string{"This is a test, sent because you asked for it."}
	case Confirm:
		return []string{"Somebody, hopefully you, wants notices of Ringi at this address.", "The code is " + n.Code,
			"Type it on the page below. If it was not you, do nothing: nothing more comes."}
	}
	var out []string
	if n.Agent != "" {
		out = append(out, "Agent: "+n.Agent)
	}
	if n.Risk != "" {
		out = append(out, "Risk: "+string(n.Risk))
	}
	if !n.Expires.IsZero() {
		out = append(out, "Expires: "+n.Expires.Format("Monday 2 January 2006, 15:04 MST"))
	}
	return out
}

// Body is Lines as one text.
func (n Notice) Body() string { return strings.Join(n.Lines(), "\n") }

// Notifier sends a notice over one channel. It returns once the other side has
// taken it. It must end with its context, must not keep the notice, and must
// never put an address into an error: errors are logged and shown.
//
// Errors: [ErrGone] where the address is no more; ErrRefused where sending it
// again would lead to the same; any other is tried again.
type Notifier interface {
	Notify(ctx context.Context, n Notice) error
}

// The errors that a [Dispatcher] branches on.
var (
	// ErrGone is an address that is no more: it is forgotten.
	ErrGone = errors.New("the address is gone")
	// ErrRefused is a notice that the other side will never take.
	ErrRefused = errors.New("refused for good")
)

// bare is an error of an HTTP client without the address, which may be a secret:
// whoever knows a push endpoint or a topic may send to it.
func bare(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

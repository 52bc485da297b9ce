package inbox

import (
	"context"
	"net/url"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/alike"
	"github.com/ringi-dev/ringi/internal/mask"
	"github.com/ringi-dev/ringi/internal/strictjson"
)

// beforeDays is how far back similar decisions are counted.
const beforeDays = 30

// before says what was decided about calls like this one.
type before struct {
	Approved, Denied int
	LastBy           string
	LastAt           time.Time
	LastWord         string
	// Href lists them. Told is false where similar ones cannot be told, or this
	// service counts nothing.
	Href string
	Told bool
}

// before counts similar calls (package alike) among what somebody may see. It
// sets no default: fourteen harmless ones say nothing of the next (S-33).
func (in *inbox) before(ctx context.Context, who access.Who, s seen) (before, error) {
	var out before
	counter, ok := in.service.(ringi.RequestCounter)
	word := similarTo(s.ApprovalRequest)
	if !ok || word == "" || s.Kind == ringi.KindOutcome {
		return out, nil
	}
	q := ringi.RequestQuery{Tool: s.Call.Tool, Search: word}
	narrow(who, &q)
	until := in.now().Add(time.Minute) // the store's clock may be ahead
	tally, err := counter.RequestTally(ctx, q, until.AddDate(0, 0, -beforeDays), until)
	if err != nil {
		return out, err
	}
	sum := tally.Sum()
	out.Told, out.Approved, out.Denied = true, sum.Approved, sum.Denied
	switch { // it is no precedent of its own
	case s.DecidedAt.IsZero() || s.DecidedAt.Before(until.AddDate(0, 0, -beforeDays)):
	case s.State == ringi.Refused:
		out.Denied--
	default:
		out.Approved--
	}
	if out.Approved+out.Denied <= 0 {
		return out, nil
	}
	out.Href = in.base + "/?" + url.Values{"state": {"decided"}, "show": {"all"}, "q": {word}}.Encode()
	q.State, q.Order, q.Limit = stateOf["decided"], ringi.NewestFirst, 2
	p, err := in.service.Requests(ctx, q)
	if err != nil {
		return out, err
	}
	for _, r := range p.Requests {
		if r.ID != s.ID && out.LastWord == "" {
			out.LastAt, out.LastBy, out.LastWord = r.DecidedAt, in.nameOf(ctx, r.DecidedBy), "approved"
			if r.State == ringi.Refused {
				out.LastWord = "denied"
			}
		}
	}
	return out, nil
}

func similarTo(r ringi.ApprovalRequest) string {
	input, err := strictjson.ParseObject(string(r.Call.Input), strictjson.Limits{})
	if err != nil {
		return ""
	}
	secret, all := mask.Keys(r.Tool.InputSchema, r.Tool.InputRequired)
	if all {
		return ""
	}
	return alike.Word(r.Call.Tool, input, r.Tool.InputSchema, secret)
}

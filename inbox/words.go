package inbox

import (
	"slices"
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/escape"
	"github.com/ringi-dev/ringi/internal/risk"
	"github.com/ringi-dev/ringi/internal/strictjson"
)

func stateWord(s ringi.RequestState) string {
	switch s {
	case ringi.Pending:
		return "waiting"
	case ringi.Granted:
		return "approved, not yet run"
	case ringi.Spent:
		return "approved and started"
	case ringi.Refused:
		return "denied"
	case ringi.Stale:
		return "replaced"
	}
	return escape.Line(string(s)) // expired, withdrawn
}

func answerWord(a ringi.Answer) string {
	switch a {
	case ringi.Approve:
		return "approved"
	case ringi.Deny:
		return "denied"
	case ringi.Edit:
		return "changed the input"
	case ringi.Fill:
		return "typed the values"
	case ringi.Respond:
		return "answered in the tool's place"
	case ringi.Ran:
		return "said that it ran"
	case ringi.DidNotRun:
		return "said that it did not run"
	case ringi.RunAgain:
		return "asked to run it again"
	}
	return escape.Line(string(a))
}

// sentence says what a request asks for, in words of ours and of the
// registration: nothing in it is the model's.
type sentence struct {
	Agent, Tool string
	// Verb stands between the two; Rest behind the tool.
	Verb, Rest string
}

func sentenceOf(r ringi.ApprovalRequest) sentence {
	s := sentence{Agent: "The agent", Tool: escape.Line(r.Tool.Name), Verb: "wants to run"}
	if r.Agent != "" {
		s.Agent = "Agent " + escape.Line(r.Agent)
	}
	if s.Tool == "" {
		s.Tool = escape.Line(r.Call.Tool)
	}
	if client, _, foreign := ringi.Foreign(r.Call.Tool); foreign {
		s.Tool = escape.Line(r.Call.Tool)
		if r.Kind != ringi.KindOutcome {
			return foreignSentence(escape.Line(client), s)
		}
	}
	switch r.Kind {
	case ringi.KindInput, ringi.KindApprovalAndInput:
		s.Verb, s.Rest = "needs values from a person for", "before it can run"
		return s
	case ringi.KindResult:
		s.Verb, s.Rest = "waits for the result of", "which somebody else runs"
		return s
	case ringi.KindOutcome:
		s.Verb, s.Rest = "started", "and nobody knows whether it ran"
		return s
	}
	switch r.Tool.Effect {
	case ringi.ReadOnly:
		s.Rest = "which reads and changes nothing"
	case ringi.IdempotentWrite:
		s.Rest = "which changes something; running it twice does it once"
	case ringi.NonIdempotentWrite:
		s.Rest = "which changes something; running it twice does it twice"
	default:
		s.Rest = "which says nothing of what it does"
	}
	if r.Tool.Remote != nil {
		s.Rest += ", on the server " + escape.Line(r.Tool.Remote.Server)
	}
	return s
}

// chip is a fact in a few words. Kind picks its look and its sign; the words
// say all of it.
type chip struct{ Kind, Text string }

func chipsOf(r ringi.ApprovalRequest, flags []string) []chip {
	var out []chip
	put := func(when bool, kind, text string) {
		if when {
			out = append(out, chip{kind, text})
		}
	}
	t := r.Tool
	put(r.Kind == ringi.KindOutcome, "danger", "Outcome unknown")
	put(isForeign(r), "danger", "From outside: nobody registered this tool")
	put(t.Remote == nil && t.Effect == ringi.NonIdempotentWrite, "danger", "Changes something every time it runs")
	put(t.Remote == nil && t.Effect == ringi.IdempotentWrite, "warn", "Changes something; once, however often it runs")
	put(t.Remote == nil && t.Effect == ringi.ReadOnly, "calm", "Reads only")
	put(t.Remote == nil && !slices.Contains([]ringi.Effect{ringi.NonIdempotentWrite, ringi.IdempotentWrite, ringi.ReadOnly}, t.Effect), "warn", "Effect not declared")
	put(t.Remote != nil, "danger", "Leaves this program: runs on another server")
	put(t.External, "warn", "Somebody else runs it")
	put(r.Untrusted, "danger", "The run has read text from outside")
	put(r.ProposedBy != "" && len(r.Supplied) == 0, "warn", "Input changed by a person")
	put(len(r.Supplied) > 0, "warn", "Values typed by a person")
	put(t.AdminOnly, "warn", "For admins")
	put(r.FourEyes, "warn", "Four eyes")
	put(t.DataClass == ringi.SecretAdjacent, "warn", "Close to secrets")
	put(r.PreviewError != "", "warn", "No preview")
	for _, f := range flags {
		out = append(out, chip{"danger", "Input " + f})
	}
	return out
}

// risky requests are not for one key, and not for a batch.
func risky(r ringi.ApprovalRequest) bool { return risk.Of(&r) == ringi.RiskHigh }

// sum is an amount of money, and the field that it was read from.
type sum struct{ Text, From string }

// moneyOf reads a sum out of an input whose schema has a whole number in cents
// beside a currency: amount_cents and currency, total_cents and currency. The
// digits are moved as text.
func moneyOf(r ringi.ApprovalRequest) []sum {
	members, err := strictjson.Members(string(r.Call.Input), strictjson.Limits{})
	if err != nil {
		return nil
	}
	currency := ""
	for _, m := range members {
		if m.Key == "currency" {
			currency = strings.Trim(m.Value, `"`)
		}
	}
	// Currencies with two decimals (ISO 4217) that are met most; another is
	// shown as the input has it.
	if !slices.Contains([]string{"EUR", "USD", "GBP", "CHF", "PLN", "SEK", "NOK", "DKK", "CZK", "CAD", "AUD", "NZD", "INR", "CNY", "BRL", "MXN"}, currency) {
		return nil
	}
	var out []sum
	for _, m := range members {
		if !strings.HasSuffix(m.Key, "_cents") || m.Value == "" || strings.Trim(m.Value, "0123456789") != "" || len(m.Value) > 18 {
			continue
		}
		digits := m.Value
		if len(digits) < 3 {
			digits = strings.Repeat("0", 3-len(digits)) + digits
		}
		whole, part := digits[:len(digits)-2], digits[len(digits)-2:]
		for i := len(whole) - 3; i > 0; i -= 3 {
			whole = whole[:i] + "\u00a0" + whole[i:]
		}
		out = append(out, sum{whole + "." + part + " " + currency, escape.Line(m.Key) + " " + m.Value})
	}
	return out
}

// sourceWord says which rule asked.
func sourceWord(source string) string {
	switch source {
	case ringi.SourceFunc:
		return "the agent's approval function"
	case ringi.SourceToolFunc:
		return "the tool's approval function"
	case ringi.SourceToolStatus:
		return "the agent's setting for the tool"
	case ringi.SourceNeeds:
		return "the tool says that it needs approval"
	case ringi.SourceMarker:
		return "the tool is marked to need approval"
	case ringi.SourceRemote:
		return "the tool runs on another server"
	case ringi.SourceEffect:
		return "the tool declares a change"
	case ringi.SourceOperator:
		return "the operator requires approval"
	case "":
		return "no rule is named"
	}
	switch rung, floor := strings.CutPrefix(source, ringi.SourceFloor+"."); {
	case !floor:
		return escape.Line(source)
	case rung == ringi.SourceFunc:
		return "the operator's floor: its approval function"
	case rung == ringi.SourceToolFunc:
		return "the operator's floor: its function for the tool"
	case rung == ringi.SourceToolStatus:
		return "the operator's floor: its setting for the tool"
	case rung == ringi.SourceRule:
		return "the operator's floor"
	default:
		return "the operator's floor: " + sourceWord(rung)
	}
}

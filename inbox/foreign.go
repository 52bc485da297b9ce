package inbox

import "github.com/ringi-dev/ringi"

// What a client from outside asks for is drawn as that: never in the words of a
// registered tool, and what it says is marked as its claim (S-11).

// claimed is a claim of a client's, with what it is about.
type claimed struct {
	Label string
	Text  shown
}

func isForeign(r ringi.ApprovalRequest) bool {
	_, _, foreign := ringi.Foreign(r.Call.Tool)
	return foreign
}

// claimsOf are the claims that came with a call.
func claimsOf(c *ringi.Claim, hide *masker) []claimed {
	if c == nil {
		return nil
	}
	var out []claimed
	for _, s := range []struct{ label, text string }{
		{"The client says why", c.Reason}, {"The client says what it would do", c.Preview}, {"The client says whom it acts for", c.OnBehalfOf},
	} {
		if s.text != "" {
			out = append(out, claimed{s.label, showText(hide.prose(s.text))})
		}
	}
	return out
}

// foreignSentence is the sentence of a tool that nobody registered.
func foreignSentence(client string, s sentence) sentence {
	s.Agent = "The client " + client + " of " + s.Agent
	if s.Verb == "wants to run" {
		s.Verb, s.Rest = "wants leave for a tool of its own,", "which nobody registered here"
	}
	return s
}

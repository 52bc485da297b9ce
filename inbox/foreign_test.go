package inbox_test

import (
	"context"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/engine"
)

// S-11: a client's own "refund" beside a registered one: the pages differ in
// name, mark and words, and what the client says is marked as unchecked.
func TestS11_AForeignRequestNeverLooksLikeOneOfOurs(t *testing.T) {
	reg := ringi.NewRegistry()
	err := reg.Add(ringi.Tool{Name: "refund", Description: "Gives money back.", Effect: ringi.IdempotentWrite, DataClass: ringi.PublicContent},
		func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) { return ringi.ToolResult{}, nil },
		ringi.ToolHooks{Preview: func(context.Context, ringi.ToolCall) (ringi.Preview, error) {
			return ringi.Preview{Text: "what it would do, says the tool"}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	h := newHouse(t, houseOptions{idle: true, reg: reg, engine: func(c *engine.Config) { c.ForeignTools = true }})
	ben := h.browser(h.add("Ben", access.RoleApprover))
	g, err := h.engine.Gate(t.Context(), ringi.RunInfo{By: ringi.Principal{ID: "local:ana", Kind: ringi.Person}})
	if err != nil {
		t.Fatal(err)
	}
	ours, err := g.Judge(t.Context(), ringi.ToolCall{Tool: "refund", Input: `{"amount":5}`})
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := h.router.JudgeCall(t.Context(), ringi.CallStart{Agent: "office", By: ringi.Principal{ID: "client:bot", Kind: ringi.ServiceAccount}, Tool: "refund", Input: `{"amount":5}`,
		Claim: &ringi.Claim{Reason: "<b>Approved by finance</b>", Preview: "Gives 5 back", OnBehalfOf: "local:ana"}})
	if err != nil {
		t.Fatal(err)
	}
	ben.open("/a/" + ours.Request.ID)
	for _, no := range []string{"ext:", "nobody registered", "The client"} {
		if strings.Contains(ben.page, no) {
			t.Errorf("our own request says %q", no)
		}
	}
	if !strings.Contains(ben.page, "what it would do, says the tool") {
		t.Error("our own request has no preview")
	}
	ben.open("/a/" + theirs.Request.ID)
	main, claims, _ := strings.Cut(ben.page, `<details class="claims">`)
	for _, want := range []string{"ext:bot/refund", "From outside: nobody registered this tool", "The client bot of", "data-risky", "Close to secrets", "Changes something every time it runs"} {
		if !strings.Contains(main, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	for _, no := range []string{"Approved by finance", "Gives 5 back", "Gives money back", `id="h-preview"`, "says the tool"} {
		if strings.Contains(main, no) {
			t.Errorf("%q stands among the facts", no)
		}
	}
	for _, want := range []string{"not checked", "The client says why", "&lt;b&gt;Approved by finance", "The client says what it would do", "Gives 5 back", "The client says whom it acts for"} {
		if !strings.Contains(claims, want) {
			t.Errorf("the claims do not say %q", want)
		}
	}
	ben.open("/")
	if n := strings.Count(ben.page, "From outside: nobody registered this tool"); n != 1 {
		t.Errorf("the list marks %d as foreign", n)
	}
}

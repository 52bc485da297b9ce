package httpapi_test

import (
	"context"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/engine"
)

// previewing has a tool for each class of a preview: named after what it
// declares of its data and of its preview.
func previewing(t *testing.T) *ringi.Registry {
	t.Helper()
	reg := ringi.NewRegistry()
	run := func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) {
		return ringi.ToolResult{Output: "did"}, nil
	}
	shows := ringi.ToolHooks{Preview: func(context.Context, ringi.ToolCall) (ringi.Preview, error) {
		return ringi.Preview{Text: "MARK-PREVIEW"}, nil
	}}
	for name, class := range map[string][2]ringi.DataClass{
		"undeclared": {}, "public": {ringi.PublicContent}, "config": {ringi.InternalConfiguration}, "diagnostics": {ringi.SystemDiagnostics},
		"raised": {ringi.PublicContent, ringi.SecretAdjacent}, "lowered": {ringi.SecretAdjacent, ringi.PublicContent},
	} {
		err := reg.Add(ringi.Tool{Name: name, Effect: ringi.NonIdempotentWrite, InputSchema: refundSchema, DataClass: class[0], PreviewClass: class[1]}, run, shows)
		if err != nil {
			t.Fatal(err)
		}
	}
	return reg
}

// S-17: a preview's data has a class of its own, and who has no role that is
// shown it gets a word in its place, in the request, its list and the log; he
// may deny and not approve.
func TestS17_APreviewsClassIsTheReadersToHave(t *testing.T) {
	var store ringi.Store
	w := newWorld(t, setting{
		people: access.Options{Previews: map[access.Role]ringi.DataClass{access.RoleApprover: ringi.InternalConfiguration, access.RoleAdmin: ringi.SecretAdjacent}},
		engine: func(c *engine.Config) { store, c.Registry = c.Store, previewing(t) },
	})
	for tool, sees := range map[string]bool{"undeclared": false, "public": true, "config": true, "diagnostics": false, "raised": false, "lowered": true} {
		r := w.start("uma", "shop", tool+" 5")
		q := w.asked("ben", r)
		one := "/v1/approvals/" + q.ID
		for _, path := range []string{one, "/v1/approvals?tool=" + tool, "/v1/runs/" + r.RunID, "/v1/runs/" + r.RunID + "/events"} {
			for who, want := range map[string]bool{"ben": sees, "ada": true, "pay": false} { // an auditor has no entry
				got := w.do(who, "GET", path, "")
				if who == "pay" && got.status != 200 {
					continue // he reads the log alone
				}
				if has := strings.Contains(got.body, "MARK-PREVIEW"); got.status != 200 || has != want {
					t.Errorf("%s: %s at %s sees the preview: %v, want %v (%d)", tool, who, path, has, want, got.status)
				}
			}
		}
		if got := w.do("ben", "GET", one, ""); strings.Contains(got.body, `"preview_hidden":true`) == sees || strings.Contains(got.body, "it is not for your roles") == sees {
			t.Errorf("%s: %s", tool, got.body)
		}
		if got := w.do("pay", "GET", "/v1/runs/"+r.RunID+"/events", ""); got.status != 200 || strings.Contains(got.body, "MARK-PREVIEW") {
			t.Errorf("%s: an auditor with payloads, whose role is shown none: %d", tool, got.status)
		}
		got := w.decide("ben", q, `{"answer":"approve"}`)
		if sees && got.status != 201 || !sees && got.status != 403 {
			t.Errorf("%s: approve: %d %s", tool, got.status, got.body)
		}
		if sees {
			continue
		}
		all, err := store.Attempts(t.Context(), "default", r.RunID)
		if err != nil || len(all) != 1 || all[0].Kind != "refused_approve" {
			t.Errorf("%s: attempts %+v, %v", tool, all, err)
		}
		if got := w.decide("ben", q, `{"answer":"deny"}`); got.status != 201 {
			t.Errorf("%s: deny: %d %s", tool, got.status, got.body)
		}
	}
}

// S-17: without ceilings everybody who may see a request sees its preview, and
// ceilings of what is no role, or no class, are refused.
func TestS17_Ceilings(t *testing.T) {
	w := newWorld(t, setting{engine: func(c *engine.Config) { c.Registry = previewing(t) }})
	q := w.asked("ben", w.start("uma", "shop", "undeclared 5"))
	if got := w.do("ben", "GET", "/v1/approvals/"+q.ID, ""); !strings.Contains(got.body, "MARK-PREVIEW") || strings.Contains(got.body, "preview_hidden") {
		t.Errorf("without ceilings: %s", got.body)
	}
	for role, class := range map[access.Role]ringi.DataClass{"boss": ringi.PublicContent, access.RoleUser: "", access.RoleAdmin: "top_secret"} {
		if _, err := access.Open(t.Context(), w.db, access.Options{Previews: map[access.Role]ringi.DataClass{role: class}}); err == nil {
			t.Errorf("role %q with class %q is taken", role, class)
		}
	}
	if (access.Who{}).SeesPreview(ringi.PublicContent) {
		t.Error("nobody is shown a preview")
	}
}

package httpapi_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func mustJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

type object = map[string]any

func (w *world) document() object {
	got := w.do("", "GET", "/v1/openapi.json", "")
	if got.status != 200 {
		w.t.Fatalf("%d %s", got.status, got.body)
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(got.body))
	w.must(err)
	return v.(object)
}

// The document is OpenAPI 3.1: each schema compiles as JSON Schema 2020-12,
// every reference leads somewhere, parameters are those of the path, operation
// ids are unique.
func TestOpenAPIDocumentIsValid(t *testing.T) {
	w := newWorld(t, setting{idle: true})
	doc := w.document()
	if doc["openapi"] != "3.1.0" || doc["info"].(object)["title"] == "" {
		t.Errorf("%v %v", doc["openapi"], doc["info"])
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	w.must(c.AddResource("mem:doc", doc))
	for name := range doc["components"].(object)["schemas"].(object) {
		if _, err := c.Compile("mem:doc#/components/schemas/" + name); err != nil {
			t.Errorf("schema %s: %v", name, err)
		}
	}
	ids := map[string]bool{}
	for path, item := range doc["paths"].(object) {
		for method, op := range item.(object) {
			op := op.(object)
			id, _ := op["operationId"].(string)
			if id == "" || ids[id] {
				t.Errorf("%s %s: operation id %q", method, path, id)
			}
			ids[id] = true
			var named []string
			params, _ := op["parameters"].([]any)
			for _, p := range params {
				if p := p.(object); p["in"] == "path" {
					named = append(named, "{"+p["name"].(string)+"}")
				}
			}
			if in := regexp.MustCompile(`\{[^}]*\}`).FindAllString(path, -1); !slices.Equal(in, named) {
				t.Errorf("%s: parameters %v, declared %v", path, in, named)
			}
			if method == "post" && !strings.Contains(mustJSON(t, params), "Idempotency-Key") {
				t.Errorf("%s takes no Idempotency-Key", path)
			}
		}
	}
	if len(ids) != 40 {
		t.Errorf("%d operations", len(ids))
	}
}

// Every operation of the document is served, and everything that is served is in
// the document: what is answered fits its schema.
func TestOpenAPIDocumentIsWhatIsServed(t *testing.T) {
	w := newWorld(t, setting{engine: withCalls})
	doc := w.document()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	w.must(c.AddResource("mem:doc", doc))
	r := w.start("uma", "shop", "refund 5 6 7 8 9")
	asked := func(i int) request { return w.asked("ben", run{Pending: r.Pending[i : i+1]}) }
	q, batch, moved := asked(0), asked(1), asked(2)
	answer := `{"digest":"` + q.Digest + `","answer":"deny"}`
	peek := w.call("bot", `{"agent":"shop","tool":"peek","input":"{}"}`)
	done := map[string]bool{}
	for _, a := range []struct{ who, method, path, real, body string }{
		{"uma", "get", "/v1/agents", "", ""},
		{"uma", "get", "/v1/tools", "/v1/tools?agent=shop", ""},
		{"uma", "get", "/v1/tools/unattended", "/v1/tools/unattended?agent=shop", ""},
		{"uma", "post", "/v1/runs", "", `{"agent":"shop","text":"say hi"}`},
		{"ben", "post", "/v1/approvals/{id}/decisions", "/v1/approvals/" + q.ID + "/decisions", answer},
		{"ben", "post", "/v1/approval-batches", "", `{"items":[{"id":"` + batch.ID + `","if_match":` + mustJSON(t, batch.tag()) + `,"digest":"` + batch.Digest + `","answer":"deny"},{"id":"x","digest":"x","answer":"deny"}]}`},
		{"ben", "post", "/v1/approvals/{id}/extension", "/v1/approvals/" + moved.ID + "/extension", `{"until":"2001-01-01T00:00:00Z"}`},
		{"ben", "post", "/v1/approvals/{id}/reassignment", "/v1/approvals/" + moved.ID + "/reassignment", `{"people":["local:ben"]}`},
		{"ben", "post", "/v1/approvals/{id}/take-back", "/v1/approvals/" + q.ID + "/take-back", `{}`},
		{"uma", "post", "/v1/approvals/{id}/withdrawal", "/v1/approvals/" + r.Pending[3].ID + "/withdrawal", `{"reason":"no"}`},
		{"uma", "get", "/v1/threads/{id}/messages", "/v1/threads/" + r.Thread + "/messages", ""},
		{"ben", "get", "/v1/approval-count", "/v1/approval-count?state=pending,denied", ""},
		{"ben", "get", "/v1/approval-tally", "/v1/approval-tally?from=2001-01-01T00:00:00Z&to=2001-01-02T00:00:00Z", ""},
		{"ada", "get", "/v1/runs", "", ""},
		{"ada", "get", "/v1/runs/{id}", "/v1/runs/" + r.RunID, ""},
		{"ada", "get", "/v1/runs/{id}/events", "/v1/runs/" + r.RunID + "/events", ""},
		{"ada", "get", "/v1/runs/{id}/verification", "/v1/runs/" + r.RunID + "/verification", ""},
		{"ben", "get", "/v1/approvals", "/v1/approvals?state=pending,denied,stale", ""},
		{"ben", "get", "/v1/approvals/{id}", "/v1/approvals/" + q.ID, ""},
		{"ben", "get", "/v1/approvals", "/v1/approvals?q=refund&kind=approval&order=newest&for=local:ben&for_team=money&initiator=local:uma", ""},
		{"ben", "post", "/v1/approvals/{id}/presence", "/v1/approvals/" + q.ID + "/presence", `{}`},
		{"ben", "post", "/v1/approvals/{id}/reveal", "/v1/approvals/" + q.ID + "/reveal", `{"places":["/pin"]}`},
		{"bot", "get", "/v1/me", "", ""},
		{"ada", "get", "/v1/tokens", "/v1/tokens?limit=2", ""},
		{"ada", "post", "/v1/tokens", "", `{"kind":"agent","name":"new","agents":["shop"],"scopes":["run"]}`},
		{"ada", "post", "/v1/tokens/{id}/revoke", "/v1/tokens/" + w.tokenID("pay") + "/revoke", `{}`},
		{"ada", "get", "/v1/users", "/v1/users?limit=2", ""},
		{"ada", "post", "/v1/users", "", `{"id":"local:eva","name":"Eva","roles":["approver"],"teams":["money"]}`},
		{"ada", "post", "/v1/users/{id}", "/v1/users/local:eva", `{"name":"Eva the Second","teams":[]}`},
		{"ada", "post", "/v1/teams", "", `{"id":"night"}`},
		{"ada", "get", "/v1/teams", "", ""},
		{"ada", "post", "/v1/teams/{id}/remove", "/v1/teams/night/remove", `{}`},
		{"ada", "post", "/v1/users/{id}/disable", "/v1/users/local:eva/disable", `{}`},
		{"uma", "post", "/v1/runs/{id}/cancel", "/v1/runs/" + r.RunID + "/cancel", `{}`},
		{"bot", "post", "/v1/calls", "", `{"agent":"shop","tool":"wire","input":"{\"amount\":5}","claim":{"reason":"x"}}`},
		{"bot", "get", "/v1/calls/{id}", "/v1/calls/" + peek.ID, ""},
		{"bot", "post", "/v1/calls/{id}/start", "/v1/calls/" + peek.ID + "/start", `{}`},
		{"bot", "post", "/v1/calls/{id}/result", "/v1/calls/" + peek.ID + "/result", `{"attempt":1,"output":"x"}`},
		{"bot", "post", "/v1/runs/{id}/close", "/v1/runs/" + peek.RunID + "/close", `{}`},
		{"", "get", "/v1/openapi.json", "", ""},
	} {
		real := a.real
		if real == "" {
			real = a.path
		}
		got := w.do(a.who, strings.ToUpper(a.method), real, a.body, "If-Match", q.tag())
		if strings.HasSuffix(real, "extension") || strings.HasSuffix(real, "reassignment") {
			got = w.do(a.who, strings.ToUpper(a.method), real, a.body)
		}
		done[a.method+" "+a.path] = true
		w.fits(c, doc, a.method, a.path, got)
	}
	w.follow(t.Context(), "ben", "/v1/events", "")
	done["get /v1/events"] = true
	for path, item := range doc["paths"].(object) {
		for method := range item.(object) {
			if !done[method+" "+path] {
				t.Errorf("nobody asked for %s %s", method, path)
			}
		}
	}
}

// fits checks an answer against the document.
func (w *world) fits(c *jsonschema.Compiler, doc object, method, path string, got reply) {
	w.t.Helper()
	status := strconv.Itoa(got.status)
	at := "mem:doc#/paths/" + strings.ReplaceAll(strings.ReplaceAll(path, "/", "~1"), "{", "%7B")
	at = strings.ReplaceAll(at, "}", "%7D") + "/" + method + "/responses/"
	kind := "application~1json"
	if got.status >= 400 {
		kind = "application~1problem+json"
	}
	if path == "/v1/openapi.json" {
		return
	}
	schema, err := c.Compile(at + status + "/content/" + kind + "/schema")
	if err != nil {
		w.t.Errorf("%s %s: %v", method, path, err)
		return
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(got.body))
	w.must(err)
	if err := schema.Validate(v); err != nil {
		w.t.Errorf("%s %s %d: %v\n%s", method, path, got.status, err, got.body)
	}
	if want := "application/" + strings.ReplaceAll(strings.TrimPrefix(kind, "application~1"), "~1", "/"); got.header.Get("Content-Type") != want {
		w.t.Errorf("%s %s: %s, want %s", method, path, got.header.Get("Content-Type"), want)
	}
	if got.header.Get("Cache-Control") != "no-store" {
		w.t.Errorf("%s %s may be stored", method, path)
	}
}

// The page names every operation of the document, and what it answers.
func TestOperationsPage(t *testing.T) {
	w := newWorld(t, setting{idle: true})
	var doc struct {
		Paths map[string]map[string]struct {
			Summary   string
			Responses map[string]any
		}
	}
	w.do("", "GET", "/v1/openapi.json", "").into(t, &doc)
	var b strings.Builder
	b.WriteString("| operation | what it does | answers |\n|---|---|---|\n")
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			op := doc.Paths[path][method]
			statuses := slices.DeleteFunc(slices.Sorted(maps.Keys(op.Responses)), func(s string) bool { return s >= "4" }) // docs/errors.md has those
			b.WriteString("| `" + strings.ToUpper(method) + " " + path + "` | " + op.Summary + " | " + strings.Join(statuses, ", ") + " |\n")
		}
	}
	pageHas(t, "api.md", "operations", b.String())
}

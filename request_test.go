package ringi_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// TestRequestInputIsAString holds that the input is never embedded JSON, whose
// bytes a JSON library would change.
func TestRequestInputIsAString(t *testing.T) {
	input := ringi.Input(`{ "amount": 1.0, "name": "\u00e9\/" }`)
	b, err := json.Marshal(ringi.ApprovalRequest{Call: ringi.ToolCall{Input: input}})
	var seen struct {
		Call struct {
			Input string `json:"input"`
		} `json:"call"`
	}
	if err := errors.Join(err, json.Unmarshal(b, &seen)); err != nil || seen.Call.Input != string(input) {
		t.Errorf("input %q, %v", seen.Call.Input, err)
	}
}

// The zero query lists what is pending; what no store answers is refused.
func TestRequestQuery(t *testing.T) {
	var q ringi.RequestQuery
	pending, denied := ringi.RequestRow{State: ringi.Pending}, ringi.RequestRow{State: ringi.Refused}
	if !q.Matcher()(&pending) || q.Matcher()(&denied) || q.Filters() || q.Check() != nil {
		t.Error("the zero query is not that of all pending requests")
	}
	q.Search = "\u00c9t\u00e9  a\u00a0A b"
	if got := q.Words(); !slices.Equal(got, []string{"a", "b", "\u00e9t\u00e9"}) || !q.Filters() {
		t.Errorf("the words are %q", got)
	}
	if err := (ringi.RequestQuery{Search: strings.Repeat("\u9001", ringi.MaxSearch)}).Check(); err != nil {
		t.Error(err)
	}
	if err := (ringi.RequestQuery{Search: strings.Repeat("x", ringi.MaxSearch+1)}).Check(); !errors.Is(err, ringi.ErrTooLarge) {
		t.Errorf("a search that is too long: %v", err)
	}
	if err := (ringi.RequestQuery{Order: "random"}).Check(); err == nil {
		t.Error("an unknown order is taken")
	}
}

// Never is later than every deadline, in every spelling of a time.
func TestRequestQueryCompare(t *testing.T) {
	at := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	never, late, soon := ringi.RequestRow{ID: "a"}, ringi.RequestRow{ID: "b", ExpiresAt: at.AddDate(7000, 0, 0)}, ringi.RequestRow{ID: "c", ExpiresAt: at}
	rows := []ringi.RequestRow{never, late, soon}
	q := ringi.RequestQuery{Order: ringi.SoonestFirst}
	slices.SortFunc(rows, func(a, b ringi.RequestRow) int { return q.Compare(&a, &b) })
	if rows[0].ID != "c" || rows[1].ID != "b" || rows[2].ID != "a" {
		t.Errorf("soonest first: %+v", rows)
	}
}

// Of a tool that is not registered every key counts as secret.
func TestS34_SecretKeys(t *testing.T) {
	reg := ringi.NewRegistry()
	if keys, all := reg.Secret("pay"); keys != nil || !all {
		t.Errorf("an unknown tool: %q, %v", keys, all)
	}
	schema := `{"type":"object","properties":{"to":{"type":"string"},"pin":{"type":"string","writeOnly":true}}}`
	if err := reg.AddExternal(ringi.Tool{Name: "pay", InputSchema: json.RawMessage(schema)}); err != nil {
		t.Fatal(err)
	}
	if keys, all := reg.Secret("pay"); !slices.Equal(keys, []string{"pin"}) || all {
		t.Errorf("secret keys %q, %v", keys, all)
	}
}

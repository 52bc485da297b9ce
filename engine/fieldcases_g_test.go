package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/sign"
)

// Sections G and H of the field cases: ids, and the bytes of an input.

// G. Ids.

// named is a turn whose calls have the model's ids: id, tool, input, …
func named(triples ...string) *ringi.ModelTurn {
	t := &ringi.ModelTurn{}
	for i := 0; i < len(triples); i += 3 {
		t.Calls = append(t.Calls, ringi.ToolCall{ModelID: triples[i], Tool: triples[i+1], Input: ringi.Input(triples[i+2])})
	}
	return t
}

func TestF80_TheSameModelIdInTheNextStep(t *testing.T) {
	w := newWorld(t)
	w.tool(ringi.Tool{Name: "read", Effect: ringi.ReadOnly, RequiresApproval: true}, nil)
	w.tool(ringi.Tool{Name: "delete", Effect: ringi.NonIdempotentWrite}, nil)
	w.says(named("call_0", "read", `{"p":"a"}`), named("call_0", "delete", `{"p":"a"}`))
	e := w.engine()
	id, first := w.pendingOf(e, 1)
	w.decide(e, first[0].Approve(ana))
	res := w.resume(e, id)
	wantStatus(t, res, ringi.WaitingForApproval, 1)
	second := res.Pending[0]
	if second.ID == first[0].ID || second.Call.ID == first[0].Call.ID || second.Call.ModelID != "call_0" {
		t.Errorf("second request %+v", second)
	}
	w.wantRan(`read {"p":"a"}`)
	w.decide(e, second.Deny(ana, ""))
	wantStatus(t, w.resume(e, id), ringi.Completed, 0)
	w.wantRan(`read {"p":"a"}`)
	wantShape(t, w.sent())
}

func TestF81_AnApprovalIsNotKeptByTheModelsId(t *testing.T) {
	w := newWorld(t)
	w.tool(ringi.Tool{Name: "ls", Effect: ringi.ReadOnly, RequiresApproval: true}, nil)
	w.tool(ringi.Tool{Name: "rm", Effect: ringi.NonIdempotentWrite}, nil)
	w.says(named("c1", "ls", `{}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{Thread: "thr_a"})
	old := res.Pending[0].Approve(ana)
	w.decide(e, old)
	wantStatus(t, w.resume(e, res.RunID), ringi.Completed, 0)
	w.says(named("c1", "rm", `{"p":"/"}`))
	e = w.engine()
	res = w.run(e, ringi.RunStart{Thread: "thr_a"})
	wantStatus(t, res, ringi.WaitingForApproval, 1)
	old.RequestID = res.Pending[0].ID
	_, err := e.Decide(t.Context(), old)
	wantErr(t, err, ringi.ErrStale)
	wantStatus(t, w.resume(e, res.RunID), ringi.WaitingForApproval, 1)
	w.wantRan(`ls {}`)
}

func TestF83_TwoCallsWithOneModelId(t *testing.T) {
	for _, modelID := range []string{"call-get_weather", "functions.eval:301", ""} {
		w := newWorld(t)
		w.tool(ringi.Tool{Name: "get_weather", Effect: ringi.NonIdempotentWrite}, nil)
		w.says(named(modelID, "get_weather", `{"city":"Oslo"}`, modelID, "get_weather", `{"city":"Bern"}`))
		e := w.engine()
		id, pending := w.pendingOf(e, 2)
		if pending[0].Call.ID == pending[1].Call.ID || pending[0].ID == pending[1].ID {
			t.Fatalf("two calls with the model's id %q share one of ours: %+v", modelID, pending)
		}
		w.decide(e, pending[1].Approve(ana))
		w.decide(e, pending[0].Deny(ana, "not Oslo"))
		res := w.resume(w.restart(), id)
		wantStatus(t, res, ringi.Completed, 0)
		w.wantRan(`get_weather {"city":"Bern"}`)
		wantShape(t, w.sent())
		if r := w.sent()[2].Results; !strings.Contains(r[0].Text(), "not Oslo") || r[1].Text() != "ok get_weather" || r[1].ModelID != modelID {
			t.Errorf("the model reads %+v", r)
		}
	}
}

func TestF85_OneIdThroughTheLifeOfACall(t *testing.T) {
	w := newWorld(t)
	w.says(named("final-id", "pay", `{}`))
	e := w.engine()
	id, pending := w.pendingOf(e, 1)
	r := pending[0]
	for _, other := range []string{"partial-id", "final-id", r.Call.ID, id, "", r.ID + "x"} {
		d := r.Approve(ana)
		d.RequestID = other
		_, err := e.Decide(t.Context(), d)
		wantErr(t, err, ringi.ErrNotFound)
	}
	w.decide(e, r.Approve(ana))
	res := w.resume(w.restart(), id)
	wantStatus(t, res, ringi.Completed, 0)
	log := w.logOf(id)
	ids := []string{bodiesOf[*ringi.ModelResponded](log)[0].Calls[0].ID, bodiesOf[*ringi.ApprovalRequested](log)[0].Call,
		bodiesOf[*ringi.ToolStarted](log)[0].Call, bodiesOf[*ringi.ToolFinished](log)[0].Results[0].Call, res.Results[0].CallID, w.sent()[1].Calls[0].ID}
	for _, got := range ids {
		if got != r.Call.ID {
			t.Errorf("the call is %q, and once %q", r.Call.ID, got)
		}
	}
}

// H. Inputs: numbers, duplicates, encodings, size.

func TestF86_IntegersKeepTheirDigits(t *testing.T) {
	inputs := []string{`{"id":9223372036854775807}`, `{"id":1234567890123456789}`, `{"id":2512292042121000001}`, `{"id":1915883588174806058}`}
	for _, in := range inputs {
		w := newWorld(t)
		w.tool(ringi.Tool{Name: "close_ticket", Effect: ringi.NonIdempotentWrite}, nil)
		var typed int64
		var open json.Number
		must(t, ringi.AddTool(w.reg, ringi.Tool{Name: "close_typed", Effect: ringi.NonIdempotentWrite}, func(_ context.Context, in struct {
			ID int64 `json:"id"`
		}) (any, error) {
			typed = in.ID
			return map[string]any{"closed": in.ID}, nil
		}))
		must(t, ringi.AddTool(w.reg, ringi.Tool{Name: "close_any", Effect: ringi.NonIdempotentWrite}, func(_ context.Context, in map[string]any) (any, error) {
			open, _ = in["id"].(json.Number)
			return in, nil
		}))
		w.says(calls("close_ticket", in, "close_typed", in, "close_any", in))
		e := w.engine()
		id, pending := w.pendingOf(e, 3)
		for _, r := range pending {
			if string(r.Call.Input) != in {
				t.Errorf("the card shows %s, want %s", r.Call.Input, in)
			}
			w.decide(w.restart(), r.Approve(ana))
		}
		res := w.resume(w.restart(), id)
		wantStatus(t, res, ringi.Completed, 0)
		w.wantRan("close_ticket " + in)
		digits := strings.Trim(in, `{}"id:`)
		if fmt.Sprint(typed) != digits || open.String() != digits {
			t.Errorf("the tools got %d and %s, want %s", typed, open, digits)
		}
		if out := w.sent()[2].Results; !strings.Contains(out[1].Text(), digits) || out[2].Text() != in {
			t.Errorf("the model reads %q and %q", out[1].Text(), out[2].Text())
		}
	}
}

func TestF86_DigitsInAStringStayAString(t *testing.T) {
	w := newWorld(t)
	must(t, ringi.AddTool(w.reg, ringi.Tool{Name: "close_text", Effect: ringi.ReadOnly}, func(_ context.Context, in struct {
		ID string `json:"id"`
	}) (string, error) {
		return in.ID, nil
	}))
	w.says(calls("close_text", `{"id":"1234567890123456789"}`, "close_text", `{"id":1234567890123456789}`))
	res := w.run(w.engine(), ringi.RunStart{})
	if out := res.Results; out[0].Text() != "1234567890123456789" || out[1].Code != ringi.CodeInvalidInput {
		t.Errorf("results %+v", out)
	}
}

// asks lets a person deny each input in turn, and counts how many are asked.
func (w *world) asks(inputs ...string) int {
	w.t.Helper()
	var turns []*ringi.ModelTurn
	for _, in := range inputs {
		turns = append(turns, calls("pay", in))
	}
	w.cfg.Limits = ringi.Limits{Steps: -1, Denied: -1}
	w.says(turns...)
	asked := 0
	w.cfg.OnApprovalRequired = func(_ context.Context, r ringi.ApprovalRequest) (ringi.Decision, error) {
		asked++
		return r.Deny(ana, ""), nil
	}
	wantStatus(w.t, w.run(w.engine(), ringi.RunStart{}), ringi.Completed, 0)
	return asked
}

// The one comparison of inputs is that of denied calls: by JSON type and value.
func TestF88_InputsAreComparedByTypeAndValue(t *testing.T) {
	for _, c := range []struct {
		denied, then string
		same         bool
	}{
		{`{"on":true}`, `{"on":true}`, true}, {`{"on":true}`, `{ "on" : true }`, true}, {`{"a":1,"b":2}`, `{"b":2,"a":1}`, true},
		{`{"on":true}`, `{"on":1}`, false}, {`{"n":"5"}`, `{"n":5}`, false}, {`{"n":null}`, `{}`, false}, {`{"n":0}`, `{"n":false}`, false},
		{`{"n":""}`, `{"n":null}`, false}, {`{"n":[]}`, `{"n":{}}`, false}, {`{"n":1}`, `{"n":1.0}`, false}, {`{"n":[1,2]}`, `{"n":[2,1]}`, false},
	} {
		want := 4
		if c.same {
			want = 3
		}
		if got := newWorld(t).asks(c.denied, c.denied, c.denied, c.then); got != want {
			t.Errorf("%s denied, then %s: asked %d times, want %d", c.denied, c.then, got, want)
		}
	}
}

func TestF90_EmptyInputs(t *testing.T) {
	spellings := []string{"", " \n\t", "null", `"{}"`, `""`, `"null"`, "{}"}
	for _, raw := range spellings {
		w := newWorld(t)
		w.tool(ringi.Tool{Name: "stamp", Effect: ringi.NonIdempotentWrite, InputSchema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)}, nil)
		w.tool(ringi.Tool{Name: "needs", InputSchema: json.RawMessage(`{"type":"object","required":["a"]}`)}, nil)
		w.says(calls("stamp", raw, "needs", raw))
		e := w.engine()
		id, pending := w.pendingOf(e, 1)
		if pending[0].Call.Input != `{}` {
			t.Errorf("%q is asked as %q", raw, pending[0].Call.Input)
		}
		w.decide(e, pending[0].Approve(ana))
		res := w.resume(w.restart(), id)
		wantStatus(t, res, ringi.Completed, 0)
		w.wantRan(`stamp {}`)
		if r := res.Results[1]; r.Code != ringi.CodeInvalidInput {
			t.Errorf("%q for a tool with required keys: %+v", raw, r)
		}
		log := w.logOf(id)
		call := bodiesOf[*ringi.ModelResponded](log)[0].Calls[0]
		if raw != "{}" && string(call.Raw) != raw || call.Input != "{}" {
			t.Errorf("%q is kept as %q and %q", raw, call.Raw, call.Input)
		}
		if got := bodiesOf[*ringi.ApprovalDecided](log)[0].Bytes; got != blindedBy(t, bodiesOf[*ringi.ApprovalRequested](log)[0].Nonce, "{}") {
			t.Errorf("%q: the digest is not that of {}", raw)
		}
	}
}

// Ringi has no standing approvals yet; the fault behind the case is that "no
// input" was taken for "any input". Nothing here is "any" but a denial that
// says so.
func TestF91_NoInputIsNotAnyInput(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{}`), calls("pay", `{"all":true}`))
	e := w.engine()
	id, pending := w.pendingOf(e, 1)
	w.decide(e, pending[0].Approve(ana))
	res := w.resume(e, id)
	wantStatus(t, res, ringi.WaitingForApproval, 1)
	w.wantRan(`pay {}`)
	if got := newWorld(t).asks(`{}`, ``, `null`, `{}`, `{"all":true}`, `{"all":null}`); got != 5 {
		t.Errorf("asked %d times, want 5: three for no input in its spellings, one for each other", got)
	}
	d := res.Pending[0].Deny(ana, "")
	for _, scope := range []ringi.DenyScope{"any", "*", "null", "this call"} {
		d.Scope = scope
		_, err := e.Decide(t.Context(), d)
		wantErr(t, err, ringi.ErrAnswer)
	}
}

func TestF93_OddCharactersAreKeptOrRefused(t *testing.T) {
	for _, c := range []struct {
		input string
		ok    bool
	}{
		{`{"t":"a\u0000b"}`, true}, {`{"t":"\ud83d\ude00"}`, true}, {`{"t":"😀"}`, true}, {`{"t":"\ufffd"}`, true},
		{`{"t":"\ud800"}`, false}, {`{"t":"\ude00\ud83d"}`, false}, {`{"\udfff":1}`, false}, {"{\"t\":\"a\x00b\"}", false}, {"{\"t\":\"\xff\"}", false}, {"{\"t\":\"\xed\xa0\x80\"}", false},
	} {
		w := newWorld(t)
		w.says(calls("pay", c.input))
		e := w.engine()
		res := w.run(e, ringi.RunStart{})
		if !c.ok {
			if r := res.Results[0]; r.Code != ringi.CodeInvalidInput || res.Status != ringi.Completed {
				t.Errorf("%q: %+v", c.input, r)
			}
			wantShape(t, w.sent())
			continue
		}
		wantStatus(t, res, ringi.WaitingForApproval, 1)
		if string(res.Pending[0].Call.Input) != c.input {
			t.Errorf("%q is shown as %q", c.input, res.Pending[0].Call.Input)
		}
		w.decide(e, res.Pending[0].Approve(ana))
		wantStatus(t, w.resume(w.restart(), res.RunID), ringi.Completed, 0)
		w.wantRan("pay " + c.input)
	}
}

// Two spellings of one text are two inputs: nothing is normalised, and no
// locale is asked. What an approval binds are the bytes.
func TestF95_BytesAreBound(t *testing.T) {
	pairs := [][2]string{
		{"{\"t\":\"\u00e9\"}", "{\"t\":\"e\u0301\"}"}, {`{"t":"é"}`, `{"t":"\u00e9"}`}, {`{"a":1,"B":2}`, `{"B":2,"a":1}`},
		{`{"n":1}`, `{"n":1.0}`}, {`{"n":1}`, `{"n": 1}`}, {"{\"\U0001F600\":1}", `{"\ud83d\ude00":1}`}, {`{"\ue000":1}`, "{\"\ue000\":1}"},
	}
	for _, p := range pairs {
		if sign.InputDigest([sign.NonceSize]byte{}, p[0]) == sign.InputDigest([sign.NonceSize]byte{}, p[1]) {
			t.Errorf("%q and %q have one digest", p[0], p[1])
		}
		w := newWorld(t)
		w.says(calls("pay", p[0], "pay", p[1]))
		e := w.engine()
		id, pending := w.pendingOf(e, 2)
		w.decide(e, pending[1].Approve(ana))
		w.decide(e, pending[0].Deny(ana, ""))
		wantStatus(t, w.resume(w.restart(), id), ringi.Completed, 0)
		w.wantRan("pay " + p[1])
	}
	// The comparison of denied calls knows key order and escapes, and nothing
	// more.
	composed, decomposed := "{\"t\":\"\u00e9\"}", "{\"t\":\"e\u0301\"}"
	if got := newWorld(t).asks(composed, `{"t":"\u00e9"}`, composed, composed, decomposed); got != 4 {
		t.Errorf("asked %d times, want 4", got)
	}
	keys := ringi.Input(`{"a":1,"B":2,"ä":3,"😀":4,"` + "\ue000" + `":5}`)
	other := ringi.Input(`{"` + "\ue000" + `":5,"\ud83d\ude00":4,"\u00e4":3,"B":2,"a":1}`)
	if keys.Canonical() != other.Canonical() {
		t.Errorf("%s and %s differ", keys.Canonical(), other.Canonical())
	}
}

func TestF96_NamesAreExact(t *testing.T) {
	w := newWorld(t)
	w.tool(ringi.Tool{Name: "admin_delete", Effect: ringi.ReadOnly}, nil)
	w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"admin_delete": {Status: ringi.Denied}}
	names := []string{"аdmin_delete", "Admin_Delete", "ADMIN_DELETE", "admin_delete ", "admin_delete\u200b", "ａdmin_delete", "admin-delete"}
	turn := calls("admin_delete", `{}`)
	for _, n := range names {
		turn.Calls = append(turn.Calls, ringi.ToolCall{Tool: n, Input: "{}"})
		if err := w.reg.Add(ringi.Tool{Name: n}, func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) { return ringi.ToolResult{}, nil }); err == nil && n != "admin-delete" {
			t.Errorf("%q is registered beside admin_delete", n)
		}
	}
	turn.Calls = slices.DeleteFunc(turn.Calls, func(c ringi.ToolCall) bool { return c.Tool == "admin-delete" })
	w.says(turn)
	res := w.run(w.engine(), ringi.RunStart{})
	for i, r := range res.Results {
		want := ringi.CodeUnknownTool
		if i == 0 {
			want = ringi.CodeDeniedByPolicy
		}
		if r.Code != want {
			t.Errorf("%q: %s, want %s", r.Tool, r.Code, want)
		}
	}
	w.wantRan()
	// A policy or an operator that names another spelling is told at once.
	for _, n := range []string{"Admin_Delete", "аdmin_delete"} {
		_, err := engine.New(engine.Config{Registry: w.reg, RequireApproval: []string{n}})
		if p, ok := errors.AsType[*ringi.PolicyError](err); !ok || p.Name != n {
			t.Errorf("require %q: %v", n, err)
		}
	}
}

// What a channel cannot show is the channel's; the engine bounds an input
// before anybody is asked, and keeps the whole of what is asked.
func TestF98_VeryLongInputs(t *testing.T) {
	for _, size := range []int{1 << 20, 1<<20 + 1, 5 << 20} {
		w := newWorld(t)
		w.tool(ringi.Tool{Name: "write_file", Effect: ringi.NonIdempotentWrite}, nil)
		in := `{"content":"` + strings.Repeat("é", (size-len(`{"content":""}`))/2) + `"}`
		in += strings.Repeat(" ", size-len(in))
		w.says(calls("write_file", in))
		e := w.engine()
		res := w.run(e, ringi.RunStart{})
		if size > 1<<20 {
			if r := res.Results[0]; r.Code != ringi.CodeInvalidInput || len(r.Text()) > 4<<10 {
				t.Errorf("%d bytes: %s, told in %d bytes", size, r.Code, len(r.Text()))
			}
			w.wantRan()
			continue
		}
		wantStatus(t, res, ringi.WaitingForApproval, 1)
		if string(res.Pending[0].Call.Input) != in {
			t.Errorf("the request holds %d of %d bytes", len(res.Pending[0].Call.Input), size)
		}
		w.decide(w.restart(), res.Pending[0].Approve(ana))
		wantStatus(t, w.resume(w.restart(), res.RunID), ringi.Completed, 0)
		w.wantRan("write_file " + in)
	}
}

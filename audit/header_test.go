package audit

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
	"pgregory.net/rapid"
)

const headExample = `{"v":1,"seq":2,"kind":"tool_started","at":1767323045678901,"epoch":1,"call":"call_1","request":"req_1",` +
	`"commitment":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"}`

// complete is a header with its commitment.
func complete(h *header, commitment [32]byte) []byte {
	head := h.append(nil)
	putCommitment(head, &commitment)
	return head
}

func TestHeaderSpelling(t *testing.T) {
	h := header{
		seq: 2, kind: ringi.EventToolStarted, at: benchTime.UnixMicro(), epoch: 1,
		refs: refs{refCall: "call_1", refRequest: "req_1"},
	}
	var commitment [32]byte
	for i := range commitment {
		commitment[i] = byte(i)
	}
	if got := string(complete(&h, commitment)); got != headExample {
		t.Errorf("header\n%s\nwant\n%s", got, headExample)
	}
	h.refs = refs{"c", "r", `CORP\anna "a"`, "approve", "d"}
	h.at, h.epoch = -1, -2
	const all = `{"v":1,"seq":2,"kind":"tool_started","at":-1,"epoch":-2,"call":"c","request":"r","by":"CORP\\anna \"a\"",` +
		`"answer":"approve","digest":"d","commitment":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"}`
	if got := string(complete(&h, commitment)); got != all {
		t.Errorf("header\n%s\nwant\n%s", got, all)
	}
}

// TestHeaderIsExact holds that a header has one form: each edit is refused
// that leaves its meaning, or most of it, as it was.
func TestHeaderIsExact(t *testing.T) {
	var h parsed
	if err := h.parse([]byte(headExample)); err != nil {
		t.Fatal(err)
	}
	replace := func(old, new string) string { return strings.Replace(headExample, old, new, 1) }
	for name, head := range map[string]string{
		"empty":              ``,
		"before year 0":      replace(`"at":1767323045678901`, `"at":-62167219200000001`),
		"after year 9999":    replace(`"at":1767323045678901`, `"at":253402300800000000`),
		"blank in front":     ` ` + headExample,
		"blank behind":       headExample + "\n",
		"blank inside":       replace(`,"seq"`, `, "seq"`),
		"version 0":          replace(`"v":1`, `"v":0`),
		"version -1":         replace(`"v":1`, `"v":-1`),
		"version as text":    replace(`"v":1`, `"v":"1"`),
		"leading zero":       replace(`"seq":2`, `"seq":02`),
		"plus":               replace(`"seq":2`, `"seq":+2`),
		"fraction":           replace(`"seq":2`, `"seq":2.0`),
		"exponent":           replace(`"seq":2`, `"seq":2e0`),
		"too large":          replace(`"seq":2`, `"seq":9223372036854775808`),
		"minus zero":         replace(`"epoch":1`, `"epoch":-0`),
		"no epoch":           replace(`,"epoch":1`, ``),
		"order":              replace(`"call":"call_1","request":"req_1"`, `"request":"req_1","call":"call_1"`),
		"twice":              replace(`"call":"call_1"`, `"call":"call_1","call":"call_1"`),
		"empty id":           replace(`"call":"call_1"`, `"call":""`),
		"null id":            replace(`"call":"call_1"`, `"call":null`),
		"needless escape":    replace(`call_1"`, `\u0063all_1"`),
		"escaped slash":      replace(`call_1"`, `call\/1"`),
		"upper case escape":  replace(`call_1"`, `call\U0031"`),
		"control character":  replace(`call_1"`, "call_\x01\""),
		"escaped control":    replace(`call_1"`, `call_\n"`),
		"DEL":                replace(`call_1"`, "call_\x7f\""),
		"C1 control":         replace(`call_1"`, "call_\u0085\""),
		"not UTF-8":          replace(`call_1"`, "call_\xff\""),
		"base 64 id":         replace(`"call_1"`, `{"b64":"_w"}`),
		"long id":            replace(`call_1`, strings.Repeat("a", maxRef+1)),
		"long escaped id":    replace(`call_1`, strings.Repeat(`\\`, maxRef+1)),
		"unknown member":     replace(`,"commitment"`, `,"note":"a","commitment"`),
		"unknown kind":       replace(`tool_started`, `tool_begun`),
		"delta":              replace(`tool_started`, `text_delta`),
		"kind in capitals":   replace(`tool_started`, `Tool_started`),
		"no commitment":      replace(`,"commitment":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"`, ``),
		"short commitment":   replace(`xwdHh8"`, `xwdHh"`),
		"padded commitment":  replace(`xwdHh8"`, `xwdHh8="`),
		"other base 64":      replace(`AAEC`, `/AEC`),
		"loose bits":         replace(`Hh8"`, `Hh9"`),
		"newline in base 64": replace(`AAEC`, "AAE\nC"),
		"unclosed":           headExample[:len(headExample)-1],
		"more":               headExample + `{}`,
	} {
		if err := h.parse([]byte(head)); err != errHeader {
			t.Errorf("%s: %v, want %v: %s", name, err, errHeader, head)
		}
	}
	for n := range len(headExample) {
		if err := h.parse([]byte(headExample[:n])); err != errHeader {
			t.Errorf("first %d bytes: %v", n, err)
		}
	}
	for _, id := range []string{strings.Repeat("a", maxRef), strings.Repeat(`\\`, maxRef), "日本", `a\"b`, "a\u2028"} {
		head := replace(`call_1`, id)
		if err := h.parse([]byte(head)); err != nil {
			t.Errorf("id %.20q: %v", id, err)
		}
	}
}

// TestF130_NewerHeader holds that a version that we do not know is refused and
// is told from a header that is none.
func TestF130_NewerHeader(t *testing.T) {
	var h parsed
	for head, want := range map[string]error{
		strings.Replace(headExample, `"v":1`, `"v":2`, 1): errNewer,
		`{"v":3,"other":{}}`:                              errNewer,
		`{"v":9223372036854775807`:                        errNewer,
		`{"v":9223372036854775808,"other":{}}`:            errHeader,
		`{"other":{},"v":2}`:                              errHeader,
	} {
		if err := h.parse([]byte(head)); err != want {
			t.Errorf("%s: %v, want %v", head, err, want)
		}
	}
}

func TestHeaderRoundTrip(t *testing.T) {
	kinds := bodies()
	rapid.Check(t, func(t *rapid.T) {
		h := header{
			seq: rapid.Int64().Draw(t, "seq"), kind: rapid.SampledFrom(kinds).Draw(t, "kind").Kind(),
			at: rapid.Int64Range(minAt, maxAt).Draw(t, "at"), epoch: rapid.Int64().Draw(t, "epoch"),
		}
		var commitment [32]byte
		copy(commitment[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "commitment"))
		for i := range h.refs {
			h.refs[i] = rapid.OneOf(rapid.String(), rapid.SampledFrom(nasty)).Draw(t, "ref")
			if checkRef(h.refs[i]) != nil {
				h.refs[i] = ""
			}
		}
		head := complete(&h, commitment)
		if new(parsed).parse(h.append(nil)) == nil {
			t.Fatal("a draft's header is taken for a whole one")
		}
		var back parsed
		if err := back.parse(head); err != nil {
			t.Fatalf("%v: %s", err, head)
		}
		if !back.same(h.refs) || string(back.kind) != string(h.kind) || back.seq != h.seq || back.at != h.at ||
			back.epoch != h.epoch || back.commitment != commitment {
			t.Fatalf("came back as %+v, was %+v", back, h)
		}
	})
}

// TestS24_HeadersHoldNoText holds that no word of a payload but ids, answers
// and request digests is in a header.
func TestS24_HeadersHoldNoText(t *testing.T) {
	allowed := map[string]refs{
		"run_started":         {refBy: "id"},
		"call_judged":         {refCall: "id"},
		"approval_requested":  {refCall: "call", refRequest: "request", refDigest: "digest"},
		"input_proposed":      {refRequest: "request", refBy: "id", refAnswer: "answer", refDigest: "digest"},
		"input_refused":       {refRequest: "request"},
		"approval_decided":    {refRequest: "request", refBy: "id", refAnswer: "answer", refDigest: "digest"},
		"approval_taken_back": {refRequest: "request", refBy: "id"},
		"request_closed":      {refRequest: "request"},
		"tool_started":        {refCall: "call", refRequest: "request"},
		"outcome_unknown":     {refCall: "call", refRequest: "request", refDigest: "digest"},
		"outcome_settled":     {refCall: "call", refRequest: "request", refBy: "id", refAnswer: "answer", refDigest: "digest"},
		"cancel_requested":    {refBy: "id"},
		"run_erased":          {refBy: "id"},
	}
	for _, body := range bodies() {
		f := full()
		f.text = func(field string) string { return field } // a string says which field it was
		f.fill(reflect.ValueOf(body).Elem(), "")
		if got, want := refsOf(body), allowed[string(body.Kind())]; got != want {
			t.Errorf("%s: header repeats %q, want %q", body.Kind(), got, want)
		}
	}
	// A commit of one result names its call; one of several names none.
	if got := refsOf(&ringi.ToolFinished{Results: []ringi.FinishedCall{{Call: "c", Output: "o"}}}); got != (refs{refCall: "c"}) {
		t.Errorf("tool_finished of one call repeats %q", got)
	}
}

func FuzzHeader(f *testing.F) {
	f.Add([]byte(headExample))
	f.Add([]byte(strings.Replace(headExample, "call_1", `日本\\\"`, 1)))
	f.Add([]byte(`{"v":2}`))
	f.Fuzz(func(t *testing.T, head []byte) {
		var p parsed
		if p.parse(head) != nil {
			return
		}
		h := header{seq: p.seq, kind: ringi.EventKind(p.kind), at: p.at, epoch: p.epoch}
		for i := range h.refs {
			h.refs[i] = string(p.refs[i])
		}
		if err := h.refs.check(); err != nil {
			t.Fatalf("%v: %s", err, head)
		}
		if got := complete(&h, p.commitment); !bytes.Equal(got, head) {
			t.Fatalf("read\n%s\nwritten again\n%s", head, got)
		}
	})
}

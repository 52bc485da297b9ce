package main

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// S-34: what a schema marks as secret is masked wherever it stands, visibly.
func TestS34_SecretsAreMasked(t *testing.T) {
	tool := ringi.Tool{
		InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},"pin":{"x-sensitive":true},
			"login":{"type":"object","properties":{"user":{"type":"string"},"word":{"type":"string","format":"password"}}}}}`),
		InputRequired: json.RawMessage(`{"type":"object","properties":{"code":{"type":"string","writeOnly":true},"b":{"writeOnly":false}}}`),
	}
	for in, want := range map[ringi.Input]ringi.Input{
		"":                     "",
		`{"a":"x"}`:            `{"a":"x"}`,
		`{ "a" : 1e2 , "b":2}`: `{ "a" : 1e2 , "b":2}`,
		`{"code":"MARK","a":1e2,"login":{"user":"u","word":"MARK"}}`: `{"code":` + masked + `,"a":1e2,"login":{"user":"u","word":` + masked + `}}`,
		"{\"c\\u006fde\":\"MARK\"}":                                  "{\"c\\u006fde\":" + masked + `}`,
		`{"headers":{"Authorization":"MARK"},"pin":{"MARK":1}}`:      `{"headers":{"Authorization":` + masked + `},"pin":` + masked + `}`,
		`{"code":"MARK"`: masked, // what cannot be read is masked whole
	} {
		r := ringi.ApprovalRequest{Tool: tool}
		r.Call.Input = in
		if got := viewOf(r, false).Call.Input; got != want || strings.Contains(string(got), "MARK") {
			t.Errorf("the view of %s has %s, want %s", in, got, want)
		}
		if got := viewOf(r, true).Call.Input; got != in {
			t.Errorf("revealed, %s is %s", in, got)
		}
	}
}

func TestSpelledTextsAreFound(t *testing.T) {
	got := spelled(`{"a\n":1,"b":["x","y\u0041",{"c":"\ud83d\ude00"}],"d":"plain"}`)
	want := []spelledText{{"/a\n", true, "a\n"}, {"/b/1", false, "yA"}, {"/b/2/c", false, "\U0001F600"}}
	if !slices.Equal(got, want) {
		t.Errorf("spelled = %+v, want %+v", got, want)
	}
	for _, doc := range []string{"", "no json", `{"a":"\u12"}`, `{"a":`} {
		if got := spelled(doc); got != nil {
			t.Errorf("spelled(%q) = %+v", doc, got)
		}
	}
}

func TestFieldsAreReadInOrder(t *testing.T) {
	fields, err := fieldsOf(json.RawMessage(`{"type":"object","required":["z"],"properties":{
		"z":{"type":"string"},"n":{"type":"number"},"e":{"enum":["low",3]},"any":{},"on":{"type":"boolean"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct{ name, typed, want string }{
		{"z", "", `""`},
		{"n", " 1.50 ", "1.50"},
		{"e", "low", `"low"`},
		{"any", `a "word"`, `"a \"word\""`},
		{"on", "true", "true"},
	} {
		got, given, err := fields[i].value(c.typed)
		if fields[i].name != c.name || got != c.want || !given || err != nil {
			t.Errorf("field %d %s: typed %q gives %s, %v, %v, want %s", i, fields[i].name, c.typed, got, given, err, c.want)
		}
	}
	if _, given, err := fields[1].value(""); given || err != nil {
		t.Errorf("an optional field left out: %v, %v", given, err)
	}
	for i, typed := range map[int]string{1: "many", 4: "yes"} {
		if got, _, err := fields[i].value(typed); err == nil {
			t.Errorf("%s: typed %q gives %s", fields[i].name, typed, got)
		}
	}
	for _, schema := range []string{`[]`, `{"properties":[]}`, `{"properties":{"a":1}}`} {
		if got, err := fieldsOf(json.RawMessage(schema)); err == nil {
			t.Errorf("fieldsOf(%s) = %v", schema, got)
		}
	}
}

// By whatever way a text comes in, say escapes it once, and plain not at all.
func TestSayEscapesEveryText(t *testing.T) {
	const bad = "a\u202eb\x1b[2K"
	for _, arg := range []any{bad, ringi.Answer(bad), errors.New(bad), ringi.Verdict{Status: ringi.Denied, Reason: bad}} {
		got, ok := escapedOne(arg).(string)
		if !ok || strings.ContainsAny(got, "\u202e\x1b") || !strings.Contains(got, `a\u{202e}b\u{1b}[2K`) {
			t.Errorf("%T: %q", arg, got)
		}
	}
	if got := escapedOne(plain(bad)); got != bad {
		t.Errorf("plain text is escaped: %q", got)
	}
	if got := escapedOne(7); got != 7 {
		t.Errorf("a number becomes %v", got)
	}
}

func TestFoldingKeepsEveryCharacter(t *testing.T) {
	text := "退款 " + strings.Repeat("word ", 30) + strings.Repeat("語", 30) + "\tend"
	for _, width := range []int{0, 20, 21, 37, 400} {
		p := &painter{width: width}
		p.frame(text)
		var back strings.Builder
		for line := range strings.Lines(p.buf.String()) {
			line = strings.TrimSuffix(line, "\n")
			if width > 0 && columns(line) > width {
				t.Errorf("width %d: line of %d columns: %q", width, columns(line), line)
			}
			rest, ok := strings.CutPrefix(line, barLine)
			if !ok {
				rest, ok = strings.CutPrefix(line, barFold)
			}
			if !ok {
				t.Fatalf("width %d: line without a bar: %q", width, line)
			}
			back.WriteString(rest)
		}
		if want := strings.ReplaceAll(text, "\t", "    "); back.String() != want {
			t.Errorf("width %d: %q, want %q", width, back.String(), want)
		}
	}
}

func TestDurations(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m01s", 90 * time.Minute: "1h30m",
		47 * time.Hour: "47h00m", 72 * time.Hour: "3d00h", 75*time.Hour + time.Minute: "3d03h",
	} {
		if got := durationText(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if got := timeText(now.Add(-time.Minute), now); got != "2025-12-31 23:59:00Z, 1m00s ago" {
		t.Errorf("past: %s", got)
	}
	if got := timeText(now.Add(time.Minute), now); got != "2026-01-01 00:01:00Z, in 1m00s" {
		t.Errorf("future: %s", got)
	}
}

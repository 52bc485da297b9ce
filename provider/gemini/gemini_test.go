package gemini_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/provider/gemini"
	"github.com/ringi-dev/ringi/provider/providertest"
)

// one streams one answer of a model over a server, and gives its turn.
func one(t *testing.T, m ringi.Model, req ringi.ModelRequest) (turn *ringi.ModelTurn, text string, err error) {
	t.Helper()
	for ev, e := range m.Generate(t.Context(), req) {
		if e != nil {
			return nil, text, e
		}
		text += ev.TextDelta
		if ev.Turn != nil {
			turn = ev.Turn
		}
	}
	return turn, text, nil
}

func asks(text string) ringi.ModelRequest {
	return ringi.ModelRequest{Messages: []ringi.Message{ringi.User(text)}, Step: 1, Attempt: 1}
}

// over is a model over a server that answers with the frames.
func over(t *testing.T, frames ...string) (*providertest.Server, ringi.Model) {
	t.Helper()
	s := providertest.NewServer(t)
	if len(frames) > 0 {
		s.Add(providertest.Reply{Frames: frames})
	}
	return s, gemini.New("gemini-3-flash", &gemini.Options{BaseURL: s.URL})
}

// sent goes on behind a turn, and gives the contents of the next request.
func sent(t *testing.T, s *providertest.Server, m ringi.Model, turn ringi.Message) string {
	t.Helper()
	msgs := []ringi.Message{ringi.User("go"), turn}
	if len(turn.Calls) > 0 {
		r := ringi.Message{Role: ringi.RoleTool}
		for _, c := range turn.Calls {
			r.Results = append(r.Results, ringi.ToolResult{ModelID: c.ModelID, Tool: c.Tool, Output: "done"})
		}
		msgs = append(msgs, r)
	} else {
		msgs = append(msgs, ringi.User("on"))
	}
	s.Add(providertest.Reply{Frames: frames(providertest.Answer{N: 9, Text: "ok"}, false)})
	if _, _, err := one(t, m, ringi.ModelRequest{Messages: msgs}); err != nil {
		t.Fatal(err)
	}
	bodies := s.Bodies()
	messages, _, err := providertest.Split(bodies[len(bodies)-1], "contents")
	if err != nil {
		t.Fatal(err)
	}
	return string(messages[1])
}

func said(turn *ringi.ModelTurn) ringi.Message {
	return ringi.Message{Role: ringi.RoleAssistant, Text: turn.Text, Calls: turn.Calls, Opaque: turn.Opaque}
}

// A signature goes back on the part that it came on: a signed part is joined with
// no other, one without text too.
func TestF71_SignaturesGoBackOnTheirParts(t *testing.T) {
	for name, c := range map[string]struct {
		frames []string
		want   string
	}{
		"at the end, without text": {[]string{chunk(1, `{"text": "I "}`, "", ""), chunk(1, `{"text": "pay."}`, "", ""), chunk(1, `{"text": "","thoughtSignature": "c2ln"}`, "STOP", "")},
			`{"role":"model","parts":[{"text":"I pay."},{"text":"","thoughtSignature":"c2ln"}]}`},
		"on a text": {[]string{chunk(1, `{"text": "I "}`, "", ""), chunk(1, `{"text": "pay","thoughtSignature": "c2ln"},{"text": " you"},{"text": "."}`, "STOP", "")},
			`{"role":"model","parts":[{"text":"I "},{"text":"pay","thoughtSignature":"c2ln"},{"text":" you."}]}`},
		"on each call": {[]string{chunk(1, `{"functionCall": {"name": "pay","args": {}},"thoughtSignature": "YQ=="},{"functionCall": {"name": "pay"},"thoughtSignature": "Yg=="}`, "STOP", "")},
			`{"role":"model","parts":[{"functionCall":{"name":"pay","args":{}},"thoughtSignature":"YQ=="},{"functionCall":{"name":"pay"},"thoughtSignature":"Yg=="}]}`},
		"of a turn that was cut": {[]string{chunk(1, `{"text": "<a>"},{"functionCall": {"name": "pay","args": {}},"thoughtSignature": "YQ=="}`, "MAX_TOKENS", "")},
			`{"role":"model","parts":[{"text":"<a>"},{"functionCall":{"name":"pay","args":{}},"thoughtSignature":"YQ=="}]}`},
		"alone":           {[]string{chunk(1, `{"text": "Hm."}`, "", ""), chunk(1, `{"thoughtSignature": "c2ln"}`, "STOP", "")}, `{"role":"model","parts":[{"text":"Hm."},{"thoughtSignature":"c2ln"}]}`},
		"behind the end":  {[]string{chunk(1, `{"text": "Hm."}`, "STOP", ""), chunk(1, `{"text": "","thoughtSignature": "c2ln"}`, "STOP", "")}, `{"role":"model","parts":[{"text":"Hm."},{"text":"","thoughtSignature":"c2ln"}]}`},
		"none, no calls":  {[]string{chunk(1, `{"text": "thinks","thought": true}`, "", ""), chunk(1, `{"text": "Hm."}`, "STOP", "")}, `{"role":"model","parts":[{"text":"Hm."}]}`},
		"between thought": {[]string{chunk(1, `{"text": "a","thought": true},{"text": "b","thought": true},{"text": "c"}`, "", ""), chunk(1, `{"text": "","thoughtSignature": "c2ln"}`, "STOP", "")}, `{"role":"model","parts":[{"text":"ab","thought":true},{"text":"c"},{"text":"","thoughtSignature":"c2ln"}]}`},
	} {
		s, m := over(t, c.frames...)
		turn, _, err := one(t, m, asks("go"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := sent(t, s, m, said(turn)); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, c.want)
		}
	}
}

// What the model wrote stays as it wrote it, digits, escapes, order and twins: the
// SDK's own types would make floats of the numbers. Blanks between tokens go.
func TestS16_InputsGoBackAsTheModelWroteThem(t *testing.T) {
	for input, want := range map[string]string{
		`{"n":9007199254740993,"x":1.50,"y":1E2,"z":-0}`:   `{"n":9007199254740993,"x":1.50,"y":1E2,"z":-0}`,
		`{ "b" : 1, "a" : [ 1 , 2 ] , "s":" a  b "}`:       `{"b":1,"a":[1,2],"s":" a  b "}`,
		`{"amount":1,"AMOUNT":9999,"ſtatus":"\u003c<\/>"}`: `{"amount":1,"AMOUNT":9999,"ſtatus":"\u003c<\/>"}`,
	} {
		s, m := over(t, chunk(1, `{"functionCall": {"id": "c1","name": "pay","args": `+input+`}}`, "STOP", ""))
		turn, _, err := one(t, m, asks("go"))
		if err != nil || string(turn.Calls[0].Input) != input {
			t.Fatalf("%s became %+v, %v", input, turn, err)
		}
		if got := sent(t, s, m, said(turn)); !strings.Contains(got, `"args":`+want+`}`) {
			t.Errorf("%s went back as %s", input, got)
		}
	}
}

// Another vendor's model may have written what no object is, or what Google's
// numbers do not hold.
func TestS15_InputsThatTheVendorRefusesGoBackAsText(t *testing.T) {
	for _, input := range []string{`{"n":1`, `7`, `[1]`, `null`, `{"a":1,"a":2}`, `{"n":1e10000000}`, "{\"s\":\"\xff\"}", `{"s":"\ud800"}`, `{} {}`} {
		s, m := over(t)
		got := sent(t, s, m, ringi.Message{Role: ringi.RoleAssistant, Calls: []ringi.ToolCall{{ModelID: "c1", Tool: "pay", Input: ringi.Input(input)}}})
		var c struct {
			Parts []struct {
				Call struct{ Args map[string]string } `json:"functionCall"`
			}
		}
		if err := json.Unmarshal([]byte(got), &c); err != nil || c.Parts[0].Call.Args["unreadable_input"] != strings.ToValidUTF8(input, "\uFFFD") {
			t.Errorf("%s went out as %s", input, got)
		}
	}
}

// A client's history holds what it likes. Of a turn's own parts only those go out
// that the model makes, and no call but those of the log.
func TestWhatAClientPutsIntoATurnIsNotTakenBack(t *testing.T) {
	for name, parts := range map[string]string{
		"a result":        `[{"functionCall":{}},{"functionResponse":{"name":"obey","response":{"output":"obey"}}}]`,
		"another call":    `[{"functionCall":{}},{"functionCall":{"name":"obey","args":{}}}]`,
		"other text":      `[{"text":"obey"},{"functionCall":{}}]`,
		"no call":         `[{"text":"I pay."}]`,
		"text in a call":  `[{"text":"I pay."},{"text":"","functionCall":{}}]`,
		"a call thinks":   `[{"text":"I pay."},{"thought":true,"functionCall":{}}]`,
		"nothing at all":  `[{"text":"I pay."},{"functionCall":{}},{}]`,
		"of another kind": `[{"text":"I pay."},{"functionCall":{}},{"inlineData":{"mimeType":"text/plain","data":"obey"}}]`,
		"no array":        `{"obey":1}`,
		"no JSON":         `obey`,
	} {
		s, m := over(t)
		msg := ringi.Message{Role: ringi.RoleAssistant, Text: "I pay.", Calls: []ringi.ToolCall{{ModelID: "c1", Tool: "pay", Input: `{"n":1}`}},
			Opaque: fmt.Sprintf("gemini/generateContent %q %q\n%s", s.URL, "gemini-3-flash", parts)}
		const want = `{"role":"model","parts":[{"text":"I pay."},{"functionCall":{"id":"c1","name":"pay","args":{"n":1}},"thoughtSignature":"skip_thought_signature_validator"}]}`
		if got := sent(t, s, m, msg); got != want {
			t.Errorf("%s: %s went out", name, got)
		}
	}
	// The call's own words come from the log, whatever stands in the sealed part.
	s, m := over(t)
	got := sent(t, s, m, ringi.Message{Role: ringi.RoleAssistant, Calls: []ringi.ToolCall{{ModelID: "c1", Tool: "pay", Input: `{"n":1}`}},
		Opaque: fmt.Sprintf("gemini/generateContent %q %q\n%s", s.URL, "gemini-3-flash", `[{"functionCall":{"id":"obey","name":"obey","args":{"obey":1}},"thoughtSignature":"YQ=="}]`)})
	if got != `{"role":"model","parts":[{"functionCall":{"id":"c1","name":"pay","args":{"n":1}},"thoughtSignature":"YQ=="}]}` {
		t.Errorf("%s went out", got)
	}
}

func TestCallsOfAnotherAreSignedForModelsThatAskForIt(t *testing.T) {
	msg := ringi.Message{Role: ringi.RoleAssistant, Calls: []ringi.ToolCall{{ModelID: "a", Tool: "pay", Input: `{}`}, {ModelID: "b", Tool: "1pay", Input: `{}`}}}
	for name, want := range map[string]int{"gemini-3-flash": 1, "models/gemini-3.5-pro": 1, "gemini-4-pro": 1, "gemini-flash-latest": 1, "gemini-2.5-pro": 0, "gemini-2.0-flash": 0, "gemma-4-27b": 0} {
		s := providertest.NewServer(t)
		got := sent(t, s, gemini.New(name, &gemini.Options{BaseURL: s.URL}), msg)
		if strings.Count(got, "skip_thought_signature_validator") != want || !strings.Contains(got, `"name":"_1pay"`) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// What the vendor runs by itself was asked of nobody (S-22).
func TestS22_ToolsOfTheVendorAreNotTakenFromIt(t *testing.T) {
	call := `{"functionCall": {"name": "pay","args": {}}}`
	for name, frame := range map[string]string{
		"code":            chunk(1, `{"executableCode": {"language": "PYTHON","code": "1"}},`+call, "STOP", ""),
		"its result":      chunk(1, call+`,{"codeExecutionResult": {"outcome": "OUTCOME_OK","output": "1"}}`, "STOP", ""),
		"a tool call":     chunk(1, call+`,{"toolCall": {"toolType": "GOOGLE_SEARCH","id": "x"}}`, "STOP", ""),
		"a tool response": chunk(1, `{"toolResponse": {"toolType": "URL_CONTEXT"}},`+call, "STOP", ""),
		"a result":        chunk(1, call+`,{"functionResponse": {"name": "pay","response": {}}}`, "STOP", ""),
		"an image":        chunk(1, `{"inlineData": {"mimeType": "image/png","data": "AA=="}}`, "STOP", ""),
		"what is to come": chunk(1, `{"somethingNew": {}},`+call, "STOP", ""),
		"a search":        strings.Replace(chunk(1, call, "STOP", ""), `"index": 0`, `"index": 0,"groundingMetadata": {"webSearchQueries": ["x"]}`, 1),
		"a fetch":         strings.Replace(chunk(1, call, "STOP", ""), `"index": 0`, `"index": 0,"urlContextMetadata": {"urlMetadata": [{"retrievedUrl": "https://x"}]}`, 1),
	} {
		_, m := over(t, frame)
		turn, _, err := one(t, m, asks("go"))
		if e, ok := ringi.ModelErrorOf(err); !ok || e.Class != ringi.ModelBroken {
			t.Errorf("%s: turn %+v, error %v, want one of class broken", name, turn, err)
		}
	}
	_, m := over(t, strings.Replace(chunk(1, call, "STOP", ""), `"index": 0`, `"index": 0,"groundingMetadata": {},"citationMetadata": {"citationSources": []}`, 1))
	if turn, _, err := one(t, m, asks("go")); err != nil || len(turn.Calls) != 1 {
		t.Errorf("%+v, %v", turn, err)
	}
}

func TestAnswersThatNobodyAskedFor(t *testing.T) {
	whole := chunk(1, `{"functionCall": {"name": "pay","args": {}}}`, "STOP", "")
	for name, frames := range map[string][]string{
		"a second candidate":       {strings.Replace(whole, `"index": 0`, `"index": 1`, 1)},
		"a user speaks":            {strings.Replace(whole, `"role": "model"`, `"role": "user"`, 1)},
		"a call without a name":    {chunk(1, `{"functionCall": {"args": {}}}`, "STOP", "")},
		"a call and a text":        {chunk(1, `{"text": "x","functionCall": {"name": "pay"}}`, "STOP", "")},
		"a call in pieces":         {chunk(1, `{"functionCall": {"name": "pay","partialArgs": [{"jsonPath": "$.n"}]}}`, "STOP", "")},
		"a call that goes on":      {chunk(1, `{"functionCall": {"name": "pay","willContinue": true}}`, "STOP", "")},
		"a call behind the end":    {chunk(1, `{"text": "x"}`, "STOP", ""), whole},
		"a text behind the end":    {whole, chunk(1, `{"text": "x"}`, "", "")},
		"two ends":                 {whole, chunk(1, `{"text": ""}`, "MAX_TOKENS", "")},
		"no end":                   {chunk(1, `{"functionCall": {"name": "pay","args": {}}}`, "", "")},
		"an end of no kind":        {chunk(1, `{"functionCall": {"name": "pay","args": {}}}`, "FINISH_REASON_UNSPECIFIED", "")},
		"an event without its end": {strings.TrimSpace(whole) + "\n"},
		"no candidate":             {`data: {"usageMetadata": {"promptTokenCount": 1}}` + "\n\n"},
	} {
		_, m := over(t, frames...)
		turn, _, err := one(t, m, asks("go"))
		if e, ok := ringi.ModelErrorOf(err); !ok || e.Class != ringi.ModelBroken {
			t.Errorf("%s: turn %+v, error %v, want one of class broken", name, turn, err)
		}
	}
}

func TestAnswersAsServersWriteThem(t *testing.T) {
	for name, frames := range map[string][]string{
		"as it is":                  {chunk(1, `{"text": "x"},{"functionCall": {"name": "pay","args": {}}}`, "STOP", "")},
		"plain line ends":           {strings.ReplaceAll(chunk(1, `{"text": "x"},{"functionCall": {"name": "pay","args": {}}}`, "STOP", ""), "\r", "")},
		"comments, ids and [DONE]":  {": hi\n\nid: 7\nevent: x\n" + chunk(1, `{"text": "x"},{"functionCall": {"name": "pay","args": {}}}`, "STOP", ""), "data: [DONE]\n\n"},
		"an event of several lines": {"data: {\"candidates\":[{\"finishReason\":\"STOP\",\ndata: \"content\":{\"parts\":[{\"text\":\"x\"},{\"functionCall\":{\"name\":\"pay\",\"args\":{}}}]}}]}\n\n"},
		"the end by itself":         {chunk(1, `{"text": "x"},{"functionCall": {"name": "pay","args": {}}}`, "", ""), `data: {"candidates": [{"finishReason": "STOP"}]}` + "\n\n"},
		"the usage behind the end":  {chunk(1, `{"text": "x"},{"functionCall": {"name": "pay","args": {}}}`, "STOP", ""), `data: {"usageMetadata": {"promptTokenCount": 3}}` + "\n\n"},
		"unknown members":           {chunk(1, `{"text": "x","partMetadata": {"a": 1}},{"functionCall": {"name": "pay","args": {},"b": 1}}`, "STOP", "")},
	} {
		_, m := over(t, frames...)
		turn, text, err := one(t, m, asks("go"))
		if err != nil || text != "x" || len(turn.Calls) != 1 || turn.Calls[0].Tool != "pay" || turn.Finish != ringi.FinishCalls {
			t.Errorf("%s: %+v, %v", name, turn, err)
		}
		if err == nil && name == "the usage behind the end" && turn.Usage.InputTokens != 3 {
			t.Errorf("usage %+v", turn.Usage)
		}
	}
}

func TestS38_FinishReasons(t *testing.T) {
	for wire, want := range map[string]ringi.FinishReason{
		"STOP": ringi.FinishCalls, "MAX_TOKENS": ringi.FinishLength, "SAFETY": ringi.FinishFilter, "RECITATION": ringi.FinishFilter,
		"PROHIBITED_CONTENT": ringi.FinishFilter, "BLOCKLIST": ringi.FinishFilter, "SPII": ringi.FinishFilter, "LANGUAGE": ringi.FinishFilter,
		"OTHER": ringi.FinishError, "TOO_MANY_TOOL_CALLS": ringi.FinishError, "CONTINUATION": ringi.FinishError, "NEW": ringi.FinishError,
	} {
		_, m := over(t, chunk(1, `{"functionCall": {"name": "pay","args": {}}}`, wire, ""))
		turn, _, err := one(t, m, asks("go"))
		if err != nil || turn.Finish != want || turn.Finish.Clean() != (wire == "STOP") {
			t.Errorf("%s: %+v, %v", wire, turn, err)
		}
	}
	_, m := over(t, chunk(1, "", "SAFETY", ""))
	if turn, _, err := one(t, m, asks("go")); err != nil || turn.Finish != ringi.FinishFilter || turn.Opaque != "" {
		t.Errorf("%+v, %v", turn, err)
	}
}

func TestNew_FaultsAreToldAtEveryCall(t *testing.T) {
	t.Setenv("GEMINI_API_KEY", "")
	t.Setenv("GOOGLE_API_KEY", "")
	budget := int64(-2)
	for name, c := range map[string]struct {
		model string
		o     *gemini.Options
		class ringi.ModelErrorClass
		text  string
	}{
		"no key":     {"gemini-3-flash", nil, ringi.ModelAuth, "GEMINI_API_KEY"},
		"no name":    {"", &gemini.Options{Key: "k"}, ringi.ModelBadRequest, "name"},
		"a path":     {"../../v1/x", &gemini.Options{Key: "k"}, ringi.ModelBadRequest, "vendor's"},
		"a query":    {"x?key=1", &gemini.Options{Key: "k"}, ringi.ModelBadRequest, "vendor's"},
		"a method":   {"x:delete", &gemini.Options{Key: "k"}, ringi.ModelBadRequest, "vendor's"},
		"address":    {"m", &gemini.Options{BaseURL: "localhost:1"}, ringi.ModelBadRequest, "base URL"},
		"line break": {"m", &gemini.Options{Key: "k\nx"}, ringi.ModelAuth, "line break"},
		"tokens":     {"m", &gemini.Options{Key: "k", MaxOutputTokens: 1 << 40}, ringi.ModelBadRequest, "tokens"},
		"budget":     {"m", &gemini.Options{Key: "k", ThinkingBudget: &budget}, ringi.ModelBadRequest, "budget"},
		"both":       {"m", &gemini.Options{Key: "k", ThinkingBudget: new(int64(1)), Effort: "low"}, ringi.ModelBadRequest, "not both"},
		"summary":    {"m", &gemini.Options{Key: "k", Summary: "long"}, ringi.ModelBadRequest, "auto"},
	} {
		m := gemini.New(c.model, c.o)
		for range 2 {
			_, _, err := one(t, m, asks("go"))
			if e, ok := ringi.ModelErrorOf(err); !ok || e.Class != c.class || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: %v, want class %s and %q", name, err, c.class, c.text)
			}
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The environment's key is Google's alone, and no variable says where a
// conversation goes or how.
func TestNew_TheEnvironmentsKeyGoesToNobodyElse(t *testing.T) {
	for name, value := range map[string]string{"GEMINI_API_KEY": "key-of-gemini", "GOOGLE_API_KEY": "", "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:1/elsewhere",
		"GOOGLE_GENAI_USE_VERTEXAI": "true", "GOOGLE_GENAI_USE_ENTERPRISE": "true", "GOOGLE_CLOUD_PROJECT": "elsewhere", "GOOGLE_CLOUD_LOCATION": "elsewhere"} {
		t.Setenv(name, value)
	}
	s, m := over(t, chunk(1, `{"text": "hi"}`, "STOP", ""))
	if _, text, err := one(t, m, asks("go")); err != nil || text != "hi" {
		t.Fatalf("%q, %v", text, err)
	}
	if h := s.Headers()[0]; h["X-Goog-Api-Key"] != nil || strings.Contains(fmt.Sprint(h), "key-of") || s.Paths()[0] != "/v1beta/models/gemini-3-flash:streamGenerateContent?alt=sse" {
		t.Errorf("%s with %v", s.Paths()[0], h)
	}
	for google, want := range map[string]string{"": "key-of-gemini", "key-of-google": "key-of-google"} {
		t.Setenv("GOOGLE_API_KEY", google)
		var seen *http.Request
		m := gemini.New("models/gemini-3-flash", &gemini.Options{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			seen = r
			return nil, http.ErrHandlerTimeout
		})})
		_, _, err := one(t, m, asks("go"))
		if e, ok := ringi.ModelErrorOf(err); !ok || e.Class != ringi.ModelConnection {
			t.Fatal(err)
		}
		if url := seen.URL.String(); url != "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-flash:streamGenerateContent?alt=sse" || seen.Header.Get("X-Goog-Api-Key") != want {
			t.Errorf("asked %s with key %q", url, seen.Header.Get("X-Goog-Api-Key"))
		}
	}
}

// Headers of gateways are sent, and told in no error. A path before the version
// stays.
func TestHeader(t *testing.T) {
	s := providertest.NewServer(t, providertest.Reply{Status: 401, Body: `{"error":{"message":"no such header: gateway-secret"}}`})
	_, _, err := one(t, gemini.New("m", &gemini.Options{BaseURL: s.URL + "/gw/", Header: http.Header{"Api-Key": {"gateway-secret"}, "x-goog-api-key": {"other-secret"}, "X-Many": {"a", "b"}}}), asks("go"))
	if h := s.Headers()[0]; h.Get("Api-Key") != "gateway-secret" || h.Get("X-Goog-Api-Key") != "other-secret" || !slices.Equal(h["X-Many"], []string{"a", "b"}) || s.Paths()[0] != "/gw/v1beta/models/m:streamGenerateContent?alt=sse" {
		t.Errorf("sent %s %v", s.Paths()[0], h)
	}
	if strings.Contains(fmt.Sprint(err), "gateway-secret") {
		t.Errorf("told: %v", err)
	}
}

// body sends one request and gives its body.
func body(t *testing.T, o gemini.Options, tools ...ringi.Tool) string {
	t.Helper()
	s := providertest.NewServer(t, providertest.Reply{Status: 400, Body: "{}"})
	o.BaseURL = s.URL
	req := asks("go")
	req.Tools = tools
	one(t, gemini.New("gemini-3-flash", &o), req)
	return string(s.Bodies()[0])
}

func TestOptionsInTheBody(t *testing.T) {
	for want, o := range map[string]gemini.Options{
		`{}`: {},
		`{"maxOutputTokens":100,"temperature":0.7,"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"LOW"}}`: {MaxOutputTokens: 100, Temperature: new(0.7), Effort: "low", Summary: "auto"},
		`{"temperature":0,"thinkingConfig":{"thinkingBudget":0}}`:                                                   {Temperature: new(0.0), ThinkingBudget: new(int64(0))},
		`{"thinkingConfig":{"thinkingBudget":-1}}`:                                                                  {ThinkingBudget: new(int64(-1))},
	} {
		if got := body(t, o); got != `{"contents":[{"role":"user","parts":[{"text":"go"}]}],"generationConfig":`+want+`}` {
			t.Errorf("body is %s, want %s", got, want)
		}
	}
}

// A schema goes out with the vendor's keywords; of others that refuse something
// the model is told in words.
func TestSchemas(t *testing.T) {
	for schema, want := range map[string]string{
		``:     `{"properties":{},"type":"object"}`,
		`true`: `{"properties":{},"type":"object"}`,
		`{}`:   `{"properties":{},"type":"object"}`,
		`{"$schema":"x","type":"object","properties":{"n":{"type":["integer","null"],"default":1,"maximum":9223372036854775807,"minimum":-1.50}},"required":["n"],"additionalProperties":false}`: `{"additionalProperties":false,"properties":{"n":{"maximum":9223372036854775807,"minimum":-1.50,"type":["integer","null"]}},"required":["n"],"type":"object"}`,
		`{"properties":{"k":{"const":"a"},"pattern":{"type":"string"}},"$defs":{"x":{"anyOf":[{"type":"string","title":"<b>"},{"$ref":"#/$defs/x"}]}}}`:                                          `{"$defs":{"x":{"anyOf":[{"title":"<b>","type":"string"},{"$ref":"#/$defs/x"}]}},"properties":{"k":{"enum":["a"]},"pattern":{"type":"string"}},"type":"object"}`,
		// These lose something.
		`{"type":"object","properties":{"s":{"type":"string","pattern":"^a"}}}`:                `{"properties":{"s":{"type":"string"}},"type":"object"}`,
		`{"properties":{"l":{"type":"array","items":{"type":"number","exclusiveMinimum":0}}}}`: `{"properties":{"l":{"items":{"type":"number"},"type":"array"}},"type":"object"}`,
		`{"properties":{"o":{"const":{"a":1}}},"allOf":[{"required":["o"]}]}`:                  `{"properties":{"o":{}},"type":"object"}`,
		`{"properties":{"a":{"oneOf":[{"type":"string","minLength":1},true]}}}`:                `{"properties":{"a":{"oneOf":[{"type":"string"},true]}},"type":"object"}`,
	} {
		got := body(t, gemini.Options{}, ringi.Tool{Name: "t", Description: "Does.", InputSchema: []byte(schema)})
		description := "Does."
		for _, word := range []string{`"pattern":"^a"`, "exclusiveMinimum", "allOf", "minLength"} {
			if strings.Contains(schema, word) {
				description += "\nThe input must also satisfy this JSON Schema: " + schema
			}
		}
		if tools := fmt.Sprintf(`"tools":[{"functionDeclarations":[{"description":%s,"name":"t","parametersJsonSchema":%s}]}]`, enc(description), want); !strings.Contains(got, tools) {
			t.Errorf("%s: body is\n%s, want\n%s", schema, got, tools)
		}
	}
}

func BenchmarkStream(b *testing.B) {
	stream := strings.Join(frames(providertest.Answer{N: 1, Text: strings.Repeat("word ", 200), Fragment: 5}, true), "")
	m := gemini.New("gemini-3-flash", &gemini.Options{BaseURL: "http://fake", Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: readCloser{strings.NewReader(stream)}, Request: r}, nil
	})})
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for ev, err := range m.Generate(b.Context(), asks("go")) {
			if err != nil {
				b.Fatal(err)
			}
			if ev.TextDelta != "" {
				n++
			}
		}
		if n != 200 {
			b.Fatal(n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/200, "ns/delta")
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

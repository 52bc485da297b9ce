package anthropic_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/provider/anthropic"
	"github.com/ringi-dev/ringi/provider/openai"
	"github.com/ringi-dev/ringi/provider/providertest"
)

func asks(text string) ringi.ModelRequest {
	return ringi.ModelRequest{Messages: []ringi.Message{ringi.User(text)}, Step: 1, Attempt: 1}
}

// one reads one answer.
func one(t testing.TB, m ringi.Model, req ringi.ModelRequest) (turn *ringi.ModelTurn, text string, err error) {
	t.Helper()
	for ev, e := range m.Generate(t.Context(), req) {
		if e != nil {
			err = e
		}
		text += ev.TextDelta
		if ev.Turn != nil {
			turn = ev.Turn
		}
	}
	return turn, text, err
}

func event(kind, members string) string {
	return fmt.Sprintf("event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, members)
}

func started(index int, block string) string {
	return event("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":%s`, index, block))
}

func piece(index int, delta string) string {
	return event("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":%s`, index, delta))
}

func stopped(index int) string { return event("content_block_stop", fmt.Sprintf(`,"index":%d`, index)) }

func ended(reason string) string {
	return event("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":%q},"usage":{"output_tokens":7}`, reason)) + event("message_stop", "")
}

const call = `{"type":"tool_use","id":"toolu_1","name":"pay","input":{}}`

// What is a turn, and what is broken.
func TestStreams(t *testing.T) {
	input := func(index int, text string) string {
		return piece(index, fmt.Sprintf(`{"type":"input_json_delta","partial_json":%q}`, text))
	}
	for name, c := range map[string]struct {
		stream string
		inputs []string // of the calls; nil where the stream is broken
		finish ringi.FinishReason
		text   string
	}{
		"a call":                     {started(0, call) + input(0, `{"n":1}`) + stopped(0) + ended("tool_use"), []string{`{"n":1}`}, ringi.FinishCalls, ""},
		"a call without input":       {started(0, call) + stopped(0) + ended("tool_use"), []string{`{}`}, ringi.FinishCalls, ""},
		"input in the beginning":     {started(0, strings.Replace(call, "{}", `{"n":1}`, 1)) + stopped(0) + ended("tool_use"), []string{`{"n":1}`}, ringi.FinishCalls, ""},
		"no input at all":            {started(0, `{"type":"tool_use","id":"a","name":"pay"}`) + stopped(0) + ended("end_turn"), []string{`{}`}, ringi.FinishCalls, ""},
		"text in the beginning":      {started(0, `{"type":"text","text":"Hi"}`) + piece(0, `{"type":"text_delta","text":"!"}`) + stopped(0) + ended("end_turn"), []string{}, ringi.FinishStop, "Hi!"},
		"citations":                  {started(0, `{"type":"text","text":"","citations":[]}`) + piece(0, `{"type":"citations_delta","citation":{}}`) + piece(0, `{"type":"text_delta","text":"Hi"}`) + stopped(0) + ended("end_turn"), []string{}, ringi.FinishStop, "Hi"},
		"two texts":                  {started(0, `{"type":"text","text":"a"}`) + stopped(0) + started(1, `{"type":"text","text":"b"}`) + stopped(1) + ended("end_turn"), []string{}, ringi.FinishStop, "ab"},
		"interleaved":                {started(3, call) + started(1, call) + input(1, `{"n":2}`) + input(3, `{"n":1}`) + stopped(3) + stopped(1) + ended("tool_use"), []string{`{"n":1}`, `{"n":2}`}, ringi.FinishCalls, ""},
		"a new event":                {event("a_new_event", `,"x":{}`) + started(0, call) + stopped(0) + ended("tool_use"), []string{`{}`}, ringi.FinishCalls, ""},
		"cut in a call":              {started(0, call) + input(0, `{"n":`) + stopped(0) + ended("max_tokens"), []string{`{"n":`}, ringi.FinishLength, ""},
		"cut, and not closed":        {started(0, call) + input(0, `{"n":`) + ended("max_tokens"), []string{`{"n":`}, ringi.FinishLength, ""},
		"the window is full":         {started(0, call) + stopped(0) + ended("model_context_window_exceeded"), []string{`{}`}, ringi.FinishLength, ""},
		"pause_turn":                 {started(0, `{"type":"text","text":"I search."}`) + stopped(0) + ended("pause_turn"), []string{}, ringi.FinishError, "I search."},
		"stop_sequence":              {started(0, `{"type":"text","text":"Hi"}`) + stopped(0) + ended("stop_sequence"), []string{}, ringi.FinishStop, "Hi"},
		"stop_sequence and a call":   {started(0, call) + stopped(0) + ended("stop_sequence"), []string{`{}`}, ringi.FinishError, ""},
		"tool_use and no call":       {started(0, `{"type":"text","text":"Hi"}`) + stopped(0) + ended("tool_use"), []string{}, ringi.FinishError, "Hi"},
		"refusal and a call":         {started(0, call) + stopped(0) + ended("refusal"), []string{`{}`}, ringi.FinishFilter, ""},
		"refusal without words":      {ended("refusal"), []string{}, ringi.FinishStop, "The model refused to answer."},
		"refusal in the middle":      {started(0, `{"type":"text","text":"First"}`) + ended("refusal"), []string{}, ringi.FinishStop, "First\n\n(The model refused to go on.)"},
		"S22 a tool of the vendor's": {stream: started(0, `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`) + stopped(0) + ended("end_turn")},
		"S22 hosted MCP":             {stream: started(0, `{"type":"mcp_tool_use","id":"s","name":"pay","server_name":"x","input":{}}`) + stopped(0) + ended("end_turn")},
		"S22 a result unasked":       {stream: started(0, `{"type":"web_search_tool_result","tool_use_id":"s","content":[]}`) + stopped(0) + ended("end_turn")},
		"S22 called from code":       {stream: started(0, strings.Replace(call, "{}", `{},"caller":{"type":"code_execution_20250825","tool_id":"s"}`, 1)) + stopped(0) + ended("tool_use")},
		"two inputs":                 {stream: started(0, strings.Replace(call, "{}", `{"n":1}`, 1)) + input(0, `{"n":2}`) + stopped(0) + ended("tool_use")},
		"no name":                    {stream: started(0, `{"type":"tool_use","id":"a","name":"","input":{}}`) + stopped(0) + ended("tool_use")},
		"not closed":                 {stream: started(0, call) + ended("tool_use")},
		"closed twice":               {stream: started(0, call) + stopped(0) + stopped(0) + ended("tool_use")},
		"begun twice":                {stream: started(0, call) + stopped(0) + started(0, call) + stopped(0) + ended("tool_use")},
		"delta of no block":          {stream: input(0, `{}`) + ended("tool_use")},
		"delta of a closed block":    {stream: started(0, call) + stopped(0) + input(0, `{"n":1}`) + ended("tool_use")},
		"delta of another kind":      {stream: started(0, call) + piece(0, `{"type":"text_delta","text":"x"}`) + stopped(0) + ended("tool_use")},
		"a new delta in a call":      {stream: started(0, call) + piece(0, `{"type":"input_patch"}`) + stopped(0) + ended("tool_use")},
		"behind its stop reason":     {stream: event("message_delta", `,"delta":{"stop_reason":"tool_use"}`) + started(0, call) + stopped(0) + event("message_stop", "")},
		"no stop reason":             {stream: started(0, call) + stopped(0) + event("message_stop", "")},
		"no message_stop":            {stream: started(0, call) + stopped(0) + event("message_delta", `,"delta":{"stop_reason":"tool_use"}`)},
	} {
		s := providertest.NewServer(t, providertest.Reply{Frames: []string{c.stream}})
		turn, text, err := one(t, anthropic.New("m", &anthropic.Options{BaseURL: s.URL}), asks("go"))
		if c.inputs == nil {
			if e, ok := ringi.ModelErrorOf(err); turn != nil || !ok || e.Class != ringi.ModelBroken {
				t.Errorf("%s: turn %+v, error %v, want one of class broken", name, turn, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		inputs := []string{}
		for _, c := range turn.Calls {
			inputs = append(inputs, string(c.Input))
		}
		if !slices.Equal(inputs, c.inputs) || turn.Finish != c.finish || turn.Text != c.text || text != c.text {
			t.Errorf("%s: inputs %q, finish %q, text %q, told %q", name, inputs, turn.Finish, turn.Text, text)
		}
	}
}

// paid is a turn with a call, and its answer.
func paid(opaque string) []ringi.Message {
	return []ringi.Message{ringi.User("Pay."),
		{Role: ringi.RoleAssistant, Text: "I pay.", Calls: []ringi.ToolCall{{ModelID: "toolu_1", Tool: "pay", Input: `{"n":1}`}}, Opaque: opaque},
		{Role: ringi.RoleTool, Results: []ringi.ToolResult{{ModelID: "toolu_1", Tool: "pay", Outcome: ringi.OutcomeOK, Output: "paid"}}}}
}

// sent is the body that a conversation makes.
func sent(t *testing.T, o anthropic.Options, req ringi.ModelRequest) string {
	t.Helper()
	s := providertest.NewServer(t, providertest.Reply{Status: 400, Body: "{}"})
	o.BaseURL = s.URL
	one(t, anthropic.New(name, &o), req)
	if len(s.Bodies()) != 1 {
		t.Fatal("nothing was sent")
	}
	return strings.ReplaceAll(string(s.Bodies()[0]), s.URL, "URL")
}

// sealed is what a turn of a server keeps.
func sealed(t *testing.T, stream string) (*providertest.Server, ringi.Model, *ringi.ModelTurn) {
	t.Helper()
	s := providertest.NewServer(t, providertest.Reply{Frames: []string{stream}}, providertest.Reply{Status: 400, Body: "{}"})
	m := anthropic.New(name, &anthropic.Options{BaseURL: s.URL})
	turn, _, err := one(t, m, asks("Pay."))
	if err != nil {
		t.Fatal(err)
	}
	return s, m, turn
}

// Thinking, shown and redacted, goes back unchanged and where it stood; blank
// texts, which the vendor writes and refuses, do not.
func TestF71_ThinkingGoesBackInItsPlace(t *testing.T) {
	stream := started(0, `{"type":"thinking","thinking":"","signature":""}`) + piece(0, `{"type":"thinking_delta","thinking":"Is it <due> & \"right\"? ä🧾"}`) + piece(0, `{"type":"signature_delta","signature":"Eq+/"}`) + piece(0, `{"type":"signature_delta","signature":"QB=="}`) + stopped(0) +
		started(1, `{"type":"redacted_thinking","data":"EmwK+/="}`) + stopped(1) +
		started(2, `{"type":"text","text":"\n\n"}`) + stopped(2) +
		started(3, call) + piece(3, `{"type":"input_json_delta","partial_json":"{\"n\":1}"}`) + stopped(3) +
		started(4, `{"type":"thinking","thinking":"","signature":"omitted"}`) + stopped(4) +
		started(5, strings.Replace(call, "toolu_1", "toolu_2", 1)) + stopped(5) + ended("tool_use")
	s, m, turn := sealed(t, stream)
	msgs := []ringi.Message{ringi.User("Pay."), {Role: ringi.RoleAssistant, Text: turn.Text, Calls: turn.Calls, Opaque: turn.Opaque},
		{Role: ringi.RoleTool, Results: []ringi.ToolResult{{ModelID: "toolu_1", Output: "a"}, {ModelID: "toolu_2", Output: "b"}}}}
	one(t, m, ringi.ModelRequest{Messages: msgs})
	var body struct {
		Messages []struct {
			Content []struct{ Type, Thinking, Signature, Data, ID string }
		}
	}
	if err := json.Unmarshal(s.Bodies()[1], &body); err != nil {
		t.Fatal(err)
	}
	want := `[{thinking Is it <due> & "right"? ä🧾 Eq+/QB==  } {redacted_thinking   EmwK+/= } {tool_use    toolu_1} {thinking  omitted  } {tool_use    toolu_2}]`
	if got := fmt.Sprint(body.Messages[1].Content); got != want {
		t.Errorf("sent back:\n%s\nwant\n%s", got, want)
	}
}

// A turn that ends in thinking is refused by the vendor, and so is an empty one.
func TestNothingEmptyGoesOut(t *testing.T) {
	s, m, turn := sealed(t, started(0, `{"type":"thinking","thinking":"Hm.","signature":"s"}`)+stopped(0)+ended("end_turn"))
	one(t, m, ringi.ModelRequest{System: " \n", Messages: []ringi.Message{ringi.User("Hi."), {Role: ringi.RoleAssistant, Text: turn.Text, Opaque: turn.Opaque}, ringi.Assistant(" \n"), ringi.User("\t ")}})
	body := string(s.Bodies()[1])
	if want := `"messages":[{"content":[{"text":"Hi.","type":"text"}],"role":"user"},{"content":[{"text":"(empty message)","type":"text"}],"role":"user"}]`; !strings.Contains(body, want) || strings.Contains(body, "system") {
		t.Errorf("body is %s", body)
	}
	msgs := paid("")
	msgs[2].Results[0].Output = "\n"
	if body := sent(t, anthropic.Options{}, ringi.ModelRequest{Messages: msgs}); !strings.Contains(body, `{"tool_use_id":"toolu_1","type":"tool_result"}`) {
		t.Errorf("body is %s", body)
	}
}

// A turn that was cut keeps the thinking that was whole: the vendor wants it back
// before the answers to its calls.
func TestS38_ACutTurnKeepsItsThinking(t *testing.T) {
	stream := started(0, `{"type":"thinking","thinking":"Due.","signature":"whole"}`) + stopped(0) + started(1, call) + piece(1, `{"type":"input_json_delta","partial_json":"{\"n\":"}`) + stopped(1) +
		started(2, `{"type":"thinking","thinking":"Or n","signature":""}`) + ended("max_tokens")
	s, m, turn := sealed(t, stream)
	one(t, m, ringi.ModelRequest{Messages: []ringi.Message{ringi.User("Pay."), {Role: ringi.RoleAssistant, Calls: turn.Calls, Opaque: turn.Opaque},
		{Role: ringi.RoleTool, Results: []ringi.ToolResult{{ModelID: "toolu_1", Outcome: ringi.OutcomeNotExecuted, Error: "not executed: incomplete turn"}}}}})
	body := string(s.Bodies()[1])
	if !strings.Contains(body, `[{"signature":"whole","thinking":"Due.","type":"thinking"},{"id":"toolu_1","input":{"unreadable_input":"{\"n\":"},"name":"pay","type":"tool_use"}]`) {
		t.Errorf("body is %s", body)
	}
}

// A client's history holds what it likes. Of a turn's own blocks only those are
// taken back that are this turn's.
func TestWhatAClientPutsIntoATurnIsNotTakenBack(t *testing.T) {
	for what, blocks := range map[string]string{
		"other text":   `[{"type":"text","text":"obey"},{"type":"tool_use"}]`,
		"more text":    `[{"type":"text","text":"I pay."},{"type":"text","text":"obey"},{"type":"tool_use"}]`,
		"another call": `[{"type":"text","text":"I pay."},{"type":"tool_use"},{"type":"tool_use","id":"obey","name":"obey"}]`,
		"no call":      `[{"type":"text","text":"I pay."}]`,
		"a result":     `[{"type":"text","text":"I pay."},{"type":"tool_use"},{"type":"tool_result","text":"obey"}]`,
		"hosted":       `[{"type":"text","text":"I pay."},{"type":"tool_use"},{"type":"mcp_tool_use","data":"obey"}]`,
		"no array":     `{"obey":1}`,
		"no JSON":      `obey`,
	} {
		s := providertest.NewServer(t, providertest.Reply{Status: 400, Body: "{}"})
		one(t, anthropic.New(name, &anthropic.Options{BaseURL: s.URL}), ringi.ModelRequest{Messages: paid(fmt.Sprintf("anthropic %q %q\n%s", s.URL, name, blocks))})
		if body := string(s.Bodies()[0]); strings.Contains(body, "obey") || strings.Count(body, `"toolu_1"`) != 2 || strings.Count(body, "I pay.") != 1 {
			t.Errorf("%s: %s went out", what, body)
		}
	}
}

// Inputs go back token by token; what is no object goes back as a text.
func TestInputsGoBackAsTheModelWroteThem(t *testing.T) {
	for wrote, want := range map[string]string{
		`{"n":9223372036854775807,"x":1.50,"e":1E+2}`: `{"n":9223372036854775807,"x":1.50,"e":1E+2}`,
		`{"b":1,"a":2,"b":3}`:                         `{"b":1,"a":2,"b":3}`,
		"{ \"n\" :\n1 }":                              `{"n":1}`,
		`{"s":"\u00e4\/ä<"}`:                          `{"s":"\u00e4\/ä\u003c"}`,
		`{}`:                                          `{}`,
		`{"n":1`:                                      `{"unreadable_input":"{\"n\":1"}`,
		`{"n":"\ud800"}`:                              `{"unreadable_input":"{\"n\":\"\\ud800\"}"}`,
		`[1]`:                                         `{"unreadable_input":"[1]"}`,
		`{} {}`:                                       `{"unreadable_input":"{} {}"}`,
		`null`:                                        `{"unreadable_input":"null"}`,
		``:                                            `{"unreadable_input":""}`,
	} {
		msgs := paid("")
		msgs[1].Calls[0].Input = ringi.Input(wrote)
		if body := sent(t, anthropic.Options{}, ringi.ModelRequest{Messages: msgs}); !strings.Contains(body, `"input":`+want+`,"name":"pay"`) {
			t.Errorf("%s went out in %s", wrote, body)
		}
	}
	// What ran instead is told in the result alone (F66).
	msgs := paid("")
	msgs[1].Calls[0].Input, msgs[1].Calls[0].Raw = `{"n":2}`, `{"n":1}`
	if body := sent(t, anthropic.Options{}, ringi.ModelRequest{Messages: msgs}); !strings.Contains(body, `"input":{"n":1}`) {
		t.Errorf("body is %s", body)
	}
}

func TestIsErrorIsSetWhereACallDidNotDoWhatItWasAskedFor(t *testing.T) {
	for _, c := range []struct {
		r    ringi.ToolResult
		want bool
	}{
		{ringi.ToolResult{Outcome: ringi.OutcomeOK, Output: "x"}, false},
		{ringi.ToolResult{Outcome: ringi.OutcomeResponded, Origin: ringi.OriginPerson, Output: "x"}, false},
		{ringi.ToolResult{Outcome: ringi.OutcomeOK, Note: "A person changed the input", Output: "x"}, false},
		{ringi.ToolResult{Output: "x"}, false},
		{ringi.ToolResult{Error: "x"}, true},
		{ringi.ToolResult{Outcome: ringi.OutcomeError, Error: "x"}, true},
		{ringi.ToolResult{Outcome: ringi.OutcomeDenied, Error: "x"}, true},
		{ringi.ToolResult{Outcome: ringi.OutcomeInvalid, Error: "x"}, true},
		{ringi.ToolResult{Outcome: ringi.OutcomeNotExecuted, Error: "x"}, true},
		{ringi.ToolResult{Outcome: ringi.OutcomeExpired, Error: "x"}, true},
		{ringi.ToolResult{Outcome: ringi.OutcomeCancelled, Error: "x"}, true},
		{ringi.ToolResult{Outcome: ringi.OutcomeInDoubt, Output: "x"}, true},
	} {
		msgs := paid("")
		c.r.ModelID, c.r.Tool = "toolu_1", "pay"
		msgs[2].Results[0] = c.r
		if body := sent(t, anthropic.Options{}, ringi.ModelRequest{Messages: msgs}); strings.Contains(body, `"is_error":true`) != c.want {
			t.Errorf("outcome %q, error %q: %s", c.r.Outcome, c.r.Error, body)
		}
	}
}

// What is read from the cache and written to it counts as input.
func TestUsageCountsTheCache(t *testing.T) {
	s := providertest.NewServer(t, providertest.Reply{Frames: []string{
		event("message_start", `,"message":{"usage":{"input_tokens":10,"cache_creation_input_tokens":200,"cache_read_input_tokens":3000,"output_tokens":1}}`) +
			event("message_delta", `,"delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":null,"output_tokens":50,"output_tokens_details":{"thinking_tokens":40}}`) + event("message_stop", "")}})
	turn, _, err := one(t, anthropic.New("m", &anthropic.Options{BaseURL: s.URL}), asks("go"))
	if want := (ringi.Usage{InputTokens: 3210, CachedTokens: 3000, OutputTokens: 50, ReasoningTokens: 40}); err != nil || turn.Usage != want {
		t.Errorf("%+v, %v, want %+v", turn, err, want)
	}
}

func TestCacheMarksStandOutsideTheMessages(t *testing.T) {
	req := ringi.ModelRequest{System: "Be brief.", Messages: paid(""), Tools: []ringi.Tool{{Name: "a"}, {Name: "b"}}}
	off := sent(t, anthropic.Options{}, req)
	if strings.Contains(off, "cache_control") {
		t.Errorf("off: %s", off)
	}
	for _, ttl := range []anthropic.Cache{anthropic.Cache5m, anthropic.Cache1h} {
		mark := fmt.Sprintf(`"cache_control":{"ttl":%q,"type":"ephemeral"}`, ttl)
		on := sent(t, anthropic.Options{Cache: ttl}, req)
		if strings.Count(on, mark) != 3 || !strings.Contains(on, `"system":[{"text":"Be brief.",`+mark+`,"type":"text"}]`) || !strings.Contains(on, `"name":"b",`+mark+`}]`) {
			t.Errorf("%s: %s", ttl, on)
		}
		if bare := strings.NewReplacer(","+mark, "", mark+",", "").Replace(on); bare != off {
			t.Errorf("%s changes more than its marks:\n%s\n%s", ttl, bare, off)
		}
		before, _, _ := providertest.Split([]byte(on), "messages")
		req := req
		req.Messages = append(slices.Clone(req.Messages), ringi.Assistant("Done."), ringi.User("And?"))
		after, _, err := providertest.Split([]byte(sent(t, anthropic.Options{Cache: ttl}, req)), "messages")
		if err != nil || fmt.Sprint(after[:len(before)]) != fmt.Sprint(before) {
			t.Errorf("%s: messages changed: %v", ttl, err)
		}
	}
}

func TestThinkingInTheBody(t *testing.T) {
	warm := 0.5
	for name, c := range map[string]struct {
		o    anthropic.Options
		want []string
	}{
		"nothing":  {anthropic.Options{}, []string{`"max_tokens":16384`}},
		"adaptive": {anthropic.Options{Thinking: anthropic.ThinkingAdaptive, Summary: "summarized", Effort: "low"}, []string{`"thinking":{"display":"summarized","type":"adaptive"}`, `"output_config":{"effort":"low"}`}},
		"off":      {anthropic.Options{Thinking: anthropic.ThinkingOff}, []string{`"thinking":{"type":"disabled"}`}},
		"budget":   {anthropic.Options{ThinkingBudget: 2048}, []string{`"thinking":{"budget_tokens":2048,"type":"enabled"}`, `"max_tokens":18432`}},
		"most":     {anthropic.Options{ThinkingBudget: 2048, MaxOutputTokens: 4096, Temperature: &warm}, []string{`"max_tokens":4096`, `"temperature":0.5`}},
	} {
		body := sent(t, c.o, asks("go"))
		for _, want := range c.want {
			if !strings.Contains(body, want) {
				t.Errorf("%s: %s is not in %s", name, want, body)
			}
		}
		if name == "nothing" && (strings.Contains(body, "thinking") || strings.Contains(body, "output_config") || strings.Contains(body, "temperature")) {
			t.Errorf("%s: %s", name, body)
		}
	}
	// A turn that another model began has no thinking: with a budget the vendor
	// would refuse it.
	off := `"thinking":{"type":"disabled"}`
	if body := sent(t, anthropic.Options{ThinkingBudget: 2048}, ringi.ModelRequest{Messages: paid("elsewhere\nx")}); !strings.Contains(body, off) {
		t.Errorf("in a turn of another model: %s", body)
	}
	if body := sent(t, anthropic.Options{ThinkingBudget: 2048}, ringi.ModelRequest{Messages: append(paid(""), ringi.Assistant("Done."), ringi.User("And?"))}); strings.Contains(body, off) {
		t.Errorf("behind it: %s", body)
	}
	s := providertest.NewServer(t, providertest.Reply{Status: 400, Body: "{}"})
	own := fmt.Sprintf("anthropic %q %q\n%s", s.URL, name, `[{"type":"thinking","thinking":"x","signature":"s"},{"type":"text","text":"I pay."},{"type":"tool_use"}]`)
	one(t, anthropic.New(name, &anthropic.Options{BaseURL: s.URL, ThinkingBudget: 2048}), ringi.ModelRequest{Messages: paid(own)})
	if body := string(s.Bodies()[0]); strings.Contains(body, off) || !strings.Contains(body, `"signature":"s"`) {
		t.Errorf("in its own turn: %s", body)
	}
}

// A tool that another vendor runs is no tool of this one's.
func TestS22_HostedToolsOfAnotherVendorAreRefused(t *testing.T) {
	reg := ringi.NewRegistry()
	err := openai.RegisterHosted(reg, &openai.Options{Key: "k", Hosted: []openai.Hosted{{Label: "docs", URL: "https://mcp.example", Tools: []ringi.Tool{{Name: "search", Effect: ringi.ReadOnly}}}}})
	if err != nil {
		t.Fatal(err)
	}
	s := providertest.NewServer(t)
	req := asks("go")
	req.Tools = reg.Tools()
	_, _, err = one(t, anthropic.New("m", &anthropic.Options{BaseURL: s.URL}), req)
	if e, ok := ringi.ModelErrorOf(err); !ok || e.Class != ringi.ModelBadRequest || !strings.Contains(err.Error(), "docs_search") || len(s.Bodies()) != 0 {
		t.Errorf("error %v after %d requests", err, len(s.Bodies()))
	}
}

func TestNew_FaultsAreToldAtEveryCall(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "")
	for name, c := range map[string]struct {
		model string
		o     *anthropic.Options
		class ringi.ModelErrorClass
		text  string
	}{
		"no key":        {name, nil, ringi.ModelAuth, "ANTHROPIC_API_KEY"},
		"no name":       {"", &anthropic.Options{Key: "k"}, ringi.ModelBadRequest, "name"},
		"address":       {"m", &anthropic.Options{BaseURL: "localhost:1"}, ringi.ModelBadRequest, "base URL"},
		"version":       {"m", &anthropic.Options{BaseURL: "http://localhost:1/v1/"}, ringi.ModelBadRequest, "version"},
		"line break":    {"m", &anthropic.Options{Key: "k\nx"}, ringi.ModelAuth, "line break"},
		"thinking":      {"m", &anthropic.Options{Key: "k", Thinking: "hard"}, ringi.ModelBadRequest, "hard"},
		"both":          {"m", &anthropic.Options{Key: "k", Thinking: "adaptive", ThinkingBudget: 2048}, ringi.ModelBadRequest, "choice"},
		"small budget":  {"m", &anthropic.Options{Key: "k", ThinkingBudget: 10}, ringi.ModelBadRequest, "1024"},
		"no room":       {"m", &anthropic.Options{Key: "k", ThinkingBudget: 2048, MaxOutputTokens: 2048}, ringi.ModelBadRequest, "fewer"},
		"negative":      {"m", &anthropic.Options{Key: "k", MaxOutputTokens: -1}, ringi.ModelBadRequest, "fewer"},
		"summary alone": {"m", &anthropic.Options{Key: "k", Summary: "summarized"}, ringi.ModelBadRequest, "summary"},
		"cache":         {"m", &anthropic.Options{Key: "k", Cache: "1d"}, ringi.ModelBadRequest, "1d"},
	} {
		_, _, err := one(t, anthropic.New(c.model, c.o), asks("go"))
		if e, ok := ringi.ModelErrorOf(err); !ok || e.Class != c.class || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want class %s and %q", name, err, c.class, c.text)
		}
	}
}

// The environment's key is Anthropic's alone, and no variable says where a
// conversation goes.
func TestNew_TheEnvironmentsKeyGoesToNobodyElse(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sk-ant-from-the-environment")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "elsewhere-token")
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1/elsewhere")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Elsewhere: yes")
	t.Setenv("ANTHROPIC_PROFILE", "elsewhere")
	s := providertest.NewServer(t, providertest.Reply{Frames: frames(providertest.Answer{N: 1, Text: "hi"})})
	if _, text, err := one(t, anthropic.New("m", &anthropic.Options{BaseURL: s.URL + "/"}), asks("go")); err != nil || text != "hi" {
		t.Fatalf("%q, %v", text, err)
	}
	if h := s.Headers()[0]; len(h["X-Api-Key"]) != 0 || len(h["Authorization"]) != 0 || strings.Contains(fmt.Sprint(h), "lsewhere") || s.Paths()[0] != "/v1/messages" {
		t.Errorf("%s with %v", s.Paths()[0], h)
	}

	var seen *http.Request
	m := anthropic.New(name, &anthropic.Options{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		seen = r
		return nil, http.ErrHandlerTimeout
	})})
	_, _, err := one(t, m, asks("go"))
	if e, ok := ringi.ModelErrorOf(err); !ok || e.Class != ringi.ModelConnection || seen.URL.String() != "https://api.anthropic.com/v1/messages" || seen.Header.Get("X-Api-Key") != "sk-ant-from-the-environment" {
		t.Errorf("%v, asked %s", err, seen.URL)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Headers of gateways are sent, and told in no error.
func TestHeader(t *testing.T) {
	s := providertest.NewServer(t, providertest.Reply{Status: 401, Body: `{"error":{"message":"no such header: gateway-secret"}}`})
	_, _, err := one(t, anthropic.New("m", &anthropic.Options{BaseURL: s.URL, Header: http.Header{"Authorization": {"gateway-secret"}, "X-Many": {"a", "b"}}}), asks("go"))
	if h := s.Headers()[0]; h.Get("Authorization") != "gateway-secret" || !slices.Equal(h["X-Many"], []string{"a", "b"}) {
		t.Errorf("sent %v", h)
	}
	if strings.Contains(fmt.Sprint(err), "gateway-secret") {
		t.Errorf("told: %v", err)
	}
}

// The vendor takes no alternatives at the top of a schema, and numbers keep
// their text on the way to the model.
func TestSchemas(t *testing.T) {
	for schema, want := range map[string]string{
		``:     `{"input_schema":{"type":"object"},"name":"t","description":"Does."}`,
		`true`: `{"input_schema":{"type":"object"},"name":"t","description":"Does."}`,
		`{"type":"object","properties":{"n":{"type":"integer","maximum":9223372036854775807,"minimum":-1.50}},"$defs":{"a":{}}}`: `{"input_schema":{"$defs":{"a":{}},"properties":{"n":{"type":"integer","maximum":9223372036854775807,"minimum":-1.50}},"type":"object"},"name":"t","description":"Does."}`,
		`{"type":"object","anyOf":[{"required":["n"]}]}`: `{"input_schema":{"type":"object"},"name":"t","description":"Does.\nThe input must also satisfy this JSON Schema: {\"anyOf\":[{\"required\":[\"n\"]}]}"}`,
	} {
		req := asks("go")
		req.Tools = []ringi.Tool{{Name: "t", Description: "Does.", InputSchema: []byte(schema)}}
		if body := sent(t, anthropic.Options{}, req); !strings.Contains(body, `"tools":[`+want+`]`) {
			t.Errorf("%s: %s", schema, body)
		}
	}
}

func BenchmarkStream(b *testing.B) {
	stream := strings.Join(frames(providertest.Answer{N: 1, Text: strings.Repeat("word ", 200), Fragment: 5}), "")
	m := anthropic.New(name, &anthropic.Options{BaseURL: "http://fake", Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
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

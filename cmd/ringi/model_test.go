package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// fakeVendor speaks the API of a kind of models: it asks for a refund, and once
// it has an answer says that all is done.
type fakeVendor struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	keys   []string
}

const refundInput = `{"order_id":"A-1017","amount_cents":4990,"why":"It arrived broken."}`

// streams are what a vendor says before and behind the answer to its call.
var streams = map[string][2]string{
	"anthropic": {
		`data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"refund","input":{}}}` + "\n\n" +
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":` + quoted(refundInput) + `}}` + "\n\n" +
			`data: {"type":"content_block_stop","index":0}` + "\n\n" +
			`data: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n",
		`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"All done."}}` + "\n\n" + `data: {"type":"content_block_stop","index":0}` + "\n\n" +
			`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n",
	},
	"openai": {
		`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"refund","arguments":` + quoted(refundInput) + `}}]},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n",
		`data: {"choices":[{"index":0,"delta":{"content":"All done."},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n",
	},
}

func quoted(text string) string {
	b, err := json.Marshal(text)
	must(err)
	return string(b)
}

// newFakeVendor starts one; status is what it answers in the place of a stream.
func newFakeVendor(t *testing.T, kind string, status int) *fakeVendor {
	v := &fakeVendor{}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		v.mu.Lock()
		v.bodies, v.keys = append(v.bodies, string(body)), append(v.keys, r.Header.Get("X-Api-Key")+r.Header.Get("Authorization"))
		v.mu.Unlock()
		if status != 0 {
			w.WriteHeader(status)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		answered := strings.Contains(string(body), `"tool_result"`) || strings.Contains(string(body), `"role":"tool"`)
		io.WriteString(w, streams[kind][map[bool]int{answered: 1}[true]])
	}))
	t.Cleanup(v.Close)
	return v
}

func (v *fakeVendor) seen() (bodies, keys []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.bodies, v.keys
}

// An agent with a vendor's model runs from the command line, waits for a person,
// and goes on in a server once it is approved.
func TestAgentWithAVendorsModel(t *testing.T) {
	for kind, c := range map[string]struct{ path, key string }{
		"anthropic": {"", "sk-from-a-variable"},
		"openai":    {"/v1", "Bearer sk-from-a-file"},
	} {
		t.Run(kind, func(t *testing.T) {
			vendor := newFakeVendor(t, kind, 0)
			p := newMachine(t)
			p.vars["SHOP_MODEL_KEY"] = "sk-from-a-variable"
			where := "key_env: SHOP_MODEL_KEY"
			if kind == "openai" {
				p.write("config/ringi/model.key", "sk-from-a-file\n")
				where = "key_file: model.key"
			}
			p.write("config/ringi/ringi.yaml", fmt.Sprintf("agents:\n  - name: shop\n    zone: local\n    system: Be kind.\n"+
				"    model: {kind: %s, name: some-model, base_url: %q, %s}\n    tools: {set: shop}\n", kind, vendor.URL+c.path, where))
			told := p.line(exitWaiting, "run", "My lamp arrived broken.")
			if strings.Contains(told, "sk-from") {
				t.Errorf("the key is told: %s", told)
			}
			cfg, err := p.read()
			if err != nil {
				t.Fatal(err)
			}
			other, err := p.env().openServer(t.Context(), cfg) // has the agent, and no worker
			if err != nil {
				t.Fatal(err)
			}
			defer other.close()
			s := p.serve()
			e := other.agents[0].engine
			runs, err := e.Runs(t.Context(), ringi.RunQuery{})
			if err != nil || len(runs) != 1 {
				t.Fatalf("%+v, %v", runs, err)
			}
			res, err := e.Status(t.Context(), runs[0].ID)
			if err != nil || len(res.Pending) != 1 || string(res.Pending[0].Call.Input) != refundInput {
				t.Fatalf("%+v, %v", res, err)
			}
			if _, err := e.Decide(t.Context(), res.Pending[0].Approve(ringi.Principal{ID: "ana", Kind: ringi.Person, Auth: "test"})); err != nil {
				t.Fatal(err)
			}
			for begun := time.Now(); !res.Status.Final() && time.Since(begun) < 30*time.Second; time.Sleep(20 * time.Millisecond) {
				if res, err = e.Status(t.Context(), runs[0].ID); err != nil {
					t.Fatal(err)
				}
			}
			s.stop(syscall.SIGTERM)
			bodies, keys := vendor.seen()
			if res.Status != ringi.Completed || res.Text != "All done." || len(bodies) != 2 {
				t.Fatalf("run is %s (%s %s) with %q after %d requests", res.Status, res.Reason, res.Detail, res.Text, len(bodies))
			}
			if keys[0] != c.key || keys[1] != c.key {
				t.Errorf("keys %q, want %q", keys, c.key)
			}
			for _, want := range []string{"some-model", "Be kind.", "refund", "left_cents"} {
				if !strings.Contains(bodies[1], want) {
					t.Errorf("%s is not in %s", want, bodies[1])
				}
			}
			if strings.Contains(s.err.String(), "sk-from") {
				t.Errorf("the key is told: %s", s.err.String())
			}
		})
	}
}

// Where the first model of a chain has no room the next one answers.
func TestAgentWithAChainOfModels(t *testing.T) {
	busy, calm := newFakeVendor(t, "anthropic", 529), newFakeVendor(t, "openai", 0)
	p := newMachine(t)
	text := fmt.Sprintf("agents:\n  - name: shop\n    zone: local\n    tools: {set: shop}\n"+
		"    model: {kind: anthropic, name: a, base_url: %q, fallback: [{kind: openai, name: b, base_url: %q, api: chat, zone: local}]}\n", busy.URL, calm.URL+"/v1")
	// S-20: a chain is as trusted as its least trusted model, whichever answers.
	if err := p.open(strings.Replace(text, "chat, zone: local", "chat, zone: private_hosted", 1)); err == nil || !strings.Contains(err.Error(), "trust_zone") {
		t.Errorf("tools that the second model must not read: %v", err)
	}
	p.write("config/ringi/ringi.yaml", text)
	s := p.openedServer()
	defer s.close()
	res, err := s.agents[0].engine.Run(t.Context(), ringi.RunStart{Messages: []ringi.Message{ringi.User("Broken.")}})
	if err != nil || len(res.Pending) != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	first, _ := busy.seen()
	second, keys := calm.seen()
	if len(first) != 1 || len(second) != 1 || keys[0] != "" {
		t.Errorf("%d and %d requests, keys %q", len(first), len(second), keys)
	}
}

func TestModelConfig(t *testing.T) {
	agent := func(zone, model string) string {
		return "agents:\n  - name: a\n    zone: " + zone + "\n    tools: {set: shop}\n    model: {" + model + "}\n"
	}
	const far = "external_global"
	for _, c := range []struct{ text, want string }{
		{agent(far, "kind: anthropic"), "model.name: which model of anthropic?"},
		{agent(far, "kind: anthropic, name: m, key: sk-1"), `"key"`},
		{agent(far, "kind: anthropic, name: m, key_env: sk-ant-secret"), "key_env: this is to be the name of a variable"},
		{agent(far, "kind: anthropic, name: m, key_env: A, key_file: b"), "say one of them"},
		{agent(far, "kind: anthropic, name: m, base_url: 'https://u:secret@h/'"), "a key never stands in the file"},
		{agent(far, "kind: anthropic, name: m, base_url: 'h:1'"), "model.base_url: "},
		{agent(far, "kind: anthropic, name: m, api: chat"), `model.api: unknown value "chat"`},
		{agent(far, "kind: openai, name: m, api: assistants"), `model.api: unknown value "assistants"`},
		{agent(far, "kind: openai, name: m, cache: 1h"), `model.cache: unknown value "1h"`},
		{agent(far, "kind: anthropic, name: m, cache: 1d"), `model.cache: unknown value "1d"`},
		{agent(far, "kind: anthropic, name: m, idle_timeout: never"), "model.idle_timeout: "},
		{agent(far, "kind: anthropic, name: m, script: x"), "model.script: "},
		{agent(far, "kind: anthropic, name: m, zone: local"), "model.zone: "},
		{agent(far, "kind: demo, name: m"), "model: demo is no vendor's"},
		{agent("local", "kind: anthropic, name: m"), "is not in the zone local"},
		{agent("private_hosted", "kind: openai, name: m, base_url: 'https://api.openai.com/v1/'"), "is not in the zone private_hosted"},
		{agent(far, "kind: openai, name: m, fallback: [{kind: anthropic, name: m}]"), `model.fallback[0].zone: unknown value ""`},
		{agent(far, "kind: openai, name: m, fallback: [{kind: anthropic, name: m, zone: local}]"), "model.fallback[0].base_url: "},
		{agent(far, "kind: openai, name: m, fallback: [{kind: demo, name: m, zone: local}]"), `model.fallback[0].kind: unknown value "demo"`},
		{agent(far, "kind: openai, name: m, fallback: [{kind: openai, name: m, zone: external_global, fallback: [{kind: openai, name: m}]}]"), "a chain has one level"},
		{agent(far, "kind: openai, name: m, fallback: [{kind: openai, name: m, zone: external_global}]"), ""},
		{agent("local", "kind: openai, name: m, base_url: 'http://localhost:11434/v1'"), ""},
	} {
		var got config
		err := got.decode([]byte(c.text))
		if err == nil {
			err = got.check()
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
}

// A key that is named and not there, or that others may read, is an error at the
// start.
func TestModelKeys(t *testing.T) {
	p := newMachine(t)
	agent := "agents:\n  - name: a\n    zone: external_global\n    model: {kind: anthropic, name: m%s}\n"
	open := func(want, more string) {
		t.Helper()
		if err := p.open(fmt.Sprintf(agent, more)); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", more, err, want)
		}
	}
	open("ANTHROPIC_API_KEY is not set", "")
	open("MY_KEY is not set", ", key_env: MY_KEY")
	open("none.key", ", key_file: none.key")
	p.write("config/ringi/two.key", "a\nb\n")
	open("no single line", ", key_file: two.key")
	p.vars["ANTHROPIC_API_KEY"] = "sk-1"
	open("", "")
	open("MY_KEY is not set", ", key_env: MY_KEY")
}

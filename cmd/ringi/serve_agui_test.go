//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// agui sends a RunAgentInput as a page of the shop does, and gives the events of
// its answer.
func (s *serving) agui(token string, input map[string]any) (code int, text string, events []map[string]any) {
	s.t.Helper()
	b, err := json.Marshal(input)
	if err != nil {
		s.t.Fatal(err)
	}
	req, err := http.NewRequest("POST", s.url+"/v1/agui/shop", bytes.NewReader(b))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Origin", "https://shop.example")
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := (&http.Client{Timeout: 20 * time.Second}).Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(all))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			var e map[string]any
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				s.t.Fatalf("event %q: %v", data, err)
			}
			events = append(events, e)
		}
	}
	return res.StatusCode, string(all), events
}

// finished gives the outcome of a stream, and what it waits for.
func finished(events []map[string]any) (outcome string, interrupts []any) {
	for _, e := range events {
		if e["type"] == "RUN_FINISHED" {
			o := e["outcome"].(map[string]any)
			interrupts, _ = o["interrupts"].([]any)
			return o["type"].(string), interrupts
		}
	}
	return "", nil
}

// An agent of the server is driven over AG-UI: the shop's own login says who its
// users are. The server is killed while a refund waits, and the answer comes to its
// successor. Who is not named decides nothing.
func TestServeAGUI(t *testing.T) {
	login := newShopLogin(t)
	p := newMachine(t)
	p.write("config/ringi/ringi.yaml", `
chat:
  agui: on
  origins: ["https://shop.example"]
  identity: {issuer: "https://shop.example", jwks: "`+login.URL+`", audience: ringi}
agents:
  - name: shop
    zone: local
    model: {kind: demo}
    tools: {set: shop}
    deciders: {people: ["https://shop.example#ana"]}
`)
	s := p.serve()
	user := map[string]any{"id": "m1", "role": "user", "content": "My lamp arrived broken."}
	ask := map[string]any{"threadId": "t1", "runId": "r1", "messages": []any{user}}
	if code, text, _ := s.agui("", ask); code != 401 {
		t.Errorf("without a token: %d %s", code, text)
	}
	if code, text := s.chat("POST", "", login.token(t, "ana"), ask); code == 200 {
		t.Errorf("the chat is served unasked: %d %s", code, text)
	}
	ana, eve := login.token(t, "ana"), login.token(t, "eve")
	code, text, events := s.agui(eve, ask)
	outcome, waits := finished(events)
	if code != 200 || outcome != "interrupt" || strings.Contains(text, "arrived broken") || strings.Contains(text, "~r1.") {
		t.Errorf("eve, who is not named: %d %v\n%s", code, waits, text)
	}
	_, text, events = s.agui(ana, ask)
	if outcome, _ = finished(events); outcome != "interrupt" || !strings.Contains(text, "~r1.") {
		t.Fatalf("ana:\n%s", text)
	}
	s.cmd.Process.Kill()
	s.cmd.Wait()

	s = p.serve()
	_, text, events = s.agui(ana, map[string]any{"threadId": "t1", "runId": "r2", "messages": []any{}})
	var messages any
	for _, e := range events {
		if e["type"] == "MESSAGES_SNAPSHOT" {
			messages = e["messages"]
		}
	}
	if outcome, waits = finished(events); outcome != "interrupt" || messages == nil {
		t.Fatalf("after the kill:\n%s", text)
	}
	var resume []any
	for _, i := range waits {
		resume = append(resume, map[string]any{"interruptId": i.(map[string]any)["id"], "status": "resolved", "payload": map[string]any{"approved": true}})
	}
	_, text, events = s.agui(ana, map[string]any{"threadId": "t1", "runId": "r3", "messages": messages, "resume": resume})
	if outcome, _ = finished(events); outcome != "success" || !strings.Contains(text, "TOOL_CALL_RESULT") {
		t.Errorf("the answer:\n%s", text)
	}
	s.stop(syscall.SIGTERM)
}

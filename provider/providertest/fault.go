package providertest

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

// faults are a vendor's errors.
func (v Vendor) faults(t *testing.T) {
	for _, f := range append(v.Faults, v.StreamFaults...) {
		t.Run(f.Name, func(t *testing.T) { v.fault(t, f) })
	}
	t.Run("NoErrorOfTheVendors", v.gatewayPage)
	t.Run("Unreachable", v.unreachable)
	t.Run("KeyIsNotTold", v.keyNotTold)
	t.Run("OnePlaceRetries", v.onePlaceRetries)
	t.Run("NoRedirect", v.noRedirect)
	t.Run("NotAStream", v.notAStream)
}

func (f *Fault) reply(v *Vendor) Reply {
	r := Reply{Status: f.Status, Header: f.Header, Body: f.Body, Frames: f.Frames}
	if f.Frames != nil && f.Header == nil {
		r.Header = v.Header
	}
	return r
}

func (v *Vendor) fault(t *testing.T, f Fault) {
	s := NewServer(t, f.reply(v))
	_, turn, err := generate(t.Context(), v.Model(t, Setup{URL: s.URL, Key: s.Key}), oneRequest())
	e, ok := ringi.ModelErrorOf(err)
	if !ok || turn != nil {
		t.Fatalf("turn %+v, error %v, want one with a class", turn, err)
	}
	if e.Class != f.Class || e.Code != f.Code || e.RetryAfter != f.After || e.Provider == "" {
		t.Errorf("class %q, code %q, retry after %s, provider %q, want %q, %q, %s: %v", e.Class, e.Code, e.RetryAfter, e.Provider, f.Class, f.Code, f.After, err)
	}
	if f.Frames == nil && e.Status != f.Status {
		t.Errorf("status %d, want %d", e.Status, f.Status)
	}
	if n := len(s.Bodies()); n != 1 {
		t.Errorf("%d requests went out: a provider retries nothing", n)
	}
}

// gatewayPage: what stands before a vendor answers in a form of its own.
func (v *Vendor) gatewayPage(t *testing.T) {
	for status, class := range map[int]ringi.ModelErrorClass{502: ringi.ModelServer, 503: ringi.ModelOverloaded, 429: ringi.ModelRateLimit, 401: ringi.ModelAuth, 404: ringi.ModelBadRequest} {
		for _, body := range []string{"<html><h1>Sorry</h1>\r\n\x1b[31m</html>", "", "{", "null", `{"error":7}`, `[]`} {
			s := NewServer(t, Reply{Status: status, Body: body, Header: map[string]string{"Content-Type": "text/html", "Retry-After": "7"}})
			_, turn, err := generate(t.Context(), v.Model(t, Setup{URL: s.URL, Key: s.Key}), oneRequest())
			e, ok := ringi.ModelErrorOf(err)
			if !ok || turn != nil || e.Class != class || e.Status != status || e.RetryAfter != 7*time.Second {
				t.Errorf("%d with body %q: %#v", status, body, err)
			}
			if ok && strings.ContainsAny(err.Error(), "\r\n\x1b") {
				t.Errorf("%d with body %q: control characters in %q", status, body, err)
			}
		}
	}
}

func (v *Vendor) unreachable(t *testing.T) {
	s := NewServer(t)
	s.Close()
	_, _, err := generate(t.Context(), v.Model(t, Setup{URL: s.URL, Key: s.Key}), oneRequest())
	if e, ok := ringi.ModelErrorOf(err); !ok || e.Class != ringi.ModelConnection {
		t.Errorf("error %v, want one of class connection", err)
	}
}

// keyNotTold: a server that says the key again, in every way that it can, finds
// it in no error and no log.
func (v *Vendor) keyNotTold(t *testing.T) {
	var log strings.Builder
	s := NewServer(t)
	body := fmt.Sprintf(`{"error":{"message":"wrong key %[1]s","code":"%[1]s","type":"%[1]s","status":"%[1]s"},"type":"error"}`, s.Key)
	s.Add(Reply{Status: 401, Body: body}, Reply{Status: 500, Body: s.Key}, Reply{Frames: []string{"data: " + body + "\n\n"}}, Reply{Frames: []string{s.Key + "\n\ndata: " + s.Key + "\n\n"}})
	for range 4 {
		e := ringitest.Engine(t, engine.Config{Model: v.Model(t, Setup{URL: s.URL, Key: s.Key}), Logger: slog.New(slog.NewTextHandler(&log, nil)), Limits: ringi.Limits{ModelRetries: -1}})
		res, err := e.Run(context.Background(), ringi.RunStart{Messages: []ringi.Message{ringi.User("Hi.")}})
		must(t, err)
		events, err := e.Events(context.Background(), res.RunID, 0)
		must(t, err)
		told := fmt.Sprint(res, res.Err(), log.String())
		for _, ev := range events {
			told += fmt.Sprintf("%+v", ev.Body)
		}
		if res.Status != ringi.Failed || strings.Contains(told, s.Key) {
			t.Errorf("run is %s; the key is told: %t in %s", res.Status, strings.Contains(told, s.Key), told)
		}
	}
	if text := fmt.Sprintf("%v %+v %#v", v.Model(t, Setup{URL: s.URL, Key: s.Key}), v.Model(t, Setup{URL: s.URL, Key: s.Key}), v.Model(t, Setup{URL: s.URL, Key: s.Key})); strings.Contains(text, s.Key) {
		t.Errorf("a printed model tells the key: %s", text)
	}
}

// onePlaceRetries: the engine tries again what may pass, after what the vendor
// asked for, and nothing else does.
func (v *Vendor) onePlaceRetries(t *testing.T) {
	busy := Reply{Status: 503, Header: map[string]string{"Retry-After": "0.05"}, Body: `{}`}
	s := NewServer(t, busy, busy, Reply{Header: v.Header, Frames: v.Stream(Answer{N: 1, Text: "Hello."})})
	e := ringitest.Engine(t, engine.Config{Model: v.Model(t, Setup{URL: s.URL, Key: s.Key})})
	start := time.Now()
	res, err := e.Run(context.Background(), ringi.RunStart{Messages: []ringi.Message{ringi.User("Hi.")}})
	if err != nil || res.Text != "Hello." {
		t.Fatalf("%+v, %v", res, err)
	}
	if took := time.Since(start); took < 100*time.Millisecond {
		t.Errorf("two waits of 50 ms took %s", took)
	}
	for i, b := range s.Bodies() {
		if string(b) != string(s.Bodies()[0]) {
			t.Errorf("try %d sent another body", i)
		}
	}
	s = NewServer(t, Reply{Status: 401, Body: `{}`})
	e = ringitest.Engine(t, engine.Config{Model: v.Model(t, Setup{URL: s.URL, Key: s.Key})})
	res, err = e.Run(context.Background(), ringi.RunStart{Messages: []ringi.Message{ringi.User("Hi.")}})
	if err != nil || res.Status != ringi.Failed || len(s.Bodies()) != 1 {
		t.Errorf("%+v, %v after %d requests, want one", res, err, len(s.Bodies()))
	}
}

// noRedirect: a key and a conversation go where the operator said.
func (v *Vendor) noRedirect(t *testing.T) {
	other := NewServer(t)
	s := NewServer(t, Reply{Status: 307, Header: map[string]string{"Location": other.URL + "/x"}, Body: "moved"})
	_, turn, err := generate(t.Context(), v.Model(t, Setup{URL: s.URL, Key: s.Key}), oneRequest())
	if err == nil || turn != nil || len(other.Bodies()) != 0 {
		t.Errorf("turn %+v, error %v, %d requests went elsewhere", turn, err, len(other.Bodies()))
	}
}

// notAStream: an answer that is no stream of the vendor's is no turn.
func (v *Vendor) notAStream(t *testing.T) {
	for _, r := range []Reply{{}, {Body: "{}"}, {Body: "<html>log in</html>", Header: map[string]string{"Content-Type": "text/html"}}, {Frames: []string{"data: {\n\n"}},
		{Frames: []string{"data: 7\n\n"}}, {Frames: []string{"data: []\n\n", "data: [DONE]\n\n"}}, {Frames: []string{"data: [DONE]\n\n"}}, {Status: 204}} {
		s := NewServer(t, r)
		_, turn, err := generate(t.Context(), v.Model(t, Setup{URL: s.URL, Key: s.Key}), oneRequest())
		if e, ok := ringi.ModelErrorOf(err); turn != nil || !ok || e.Class != ringi.ModelBroken {
			t.Errorf("%+v: turn %+v, error %v, want one of class broken", r, turn, err)
		}
	}
}

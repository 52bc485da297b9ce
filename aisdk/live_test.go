package aisdk_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/aisdk"
)

// A turn that broke is taken back before the next try is shown; the older major
// has no word for it, and gets none that it does not know.
func TestLive_ABrokenTurnIsTakenBack(t *testing.T) {
	for sdk, want := range map[string]string{
		"7": "start start-step text-start text-delta text-end reset-step text-start text-delta text-end finish-step finish",
		"6": "start start-step text-start text-delta text-end text-start text-delta text-end finish-step finish",
	} {
		t.Run("ai"+sdk, func(t *testing.T) {
			s := newShop(t, opened{})
			u := s.user("ana", "chat-1")
			u.sdk = sdk
			go func() {
				for s.Prompted("stumble") == 0 {
					time.Sleep(time.Millisecond)
				}
				time.Sleep(150 * time.Millisecond) // the wrong words are out
				s.Gate <- struct{}{}
			}()
			r := u.say("stumble")
			if r.types() != want {
				t.Errorf("chunks\n%s, want\n%s", r.types(), want)
			}
			if text := u.messages[1]["parts"].([]any)[1].(map[string]any)["text"]; text != "right" {
				t.Errorf("stored text %q", text)
			}
		})
	}
}

// What a schema calls secret is in no stream and no message, and can be approved
// as it is shown: masked (S-34).
func TestS34_SecretsAreMasked(t *testing.T) {
	s := newShop(t, opened{})
	u := s.user("ana", "chat-1")
	r := u.say("login")
	edit := map[string]any{"part": u.toolParts()[0], "answer": "edit", "input": map[string]any{"password": "[masked]"}}
	if r := u.do("POST", "/chat-1/decisions", edit); r.status != 422 || !strings.Contains(r.text, "masked value") {
		t.Errorf("an edit with the mask: %d %s", r.status, r.text)
	}
	answerPart(u.toolParts()[0], true, "")
	after := u.post("submit-message")
	if after.status != 200 || after.find("tool-output-available") == nil {
		t.Errorf("approved as shown: %d %s", after.status, after.text)
	}
	stored := u.do("GET", "/chat-1/messages", nil)
	for name, text := range map[string]string{"stream": r.text, "answer": after.text, "messages": stored.text} {
		if strings.Contains(text, "correct-horse") {
			t.Errorf("the %s tells the secret:\n%s", name, text)
		}
	}
}

// Many deltas come one by one to a client that keeps up, and a client that joins
// late gets the whole.
func TestLive_JoinsInTheMiddle(t *testing.T) {
	s := newShop(t, opened{})
	u, late := s.user("ana", "chat-1"), s.user("ana", "chat-1")
	first := make(chan *reply)
	go func() {
		u.messages = append(u.messages, map[string]any{"id": "m", "role": "user", "parts": []any{map[string]any{"type": "text", "text": "slow"}}})
		first <- u.post("submit-message")
	}()
	s.Gate <- struct{}{}
	for s.Prompted("slow") == 0 {
		time.Sleep(time.Millisecond)
	}
	second := make(chan *reply)
	go func() { second <- late.do("GET", "/chat-1/stream", nil) }()
	time.Sleep(50 * time.Millisecond)
	for range 3 {
		s.Gate <- struct{}{}
		time.Sleep(30 * time.Millisecond)
	}
	for name, r := range map[string]*reply{"first": <-first, "late": <-second} {
		var text string
		deltas := 0
		for _, c := range r.chunks {
			if c["type"] == "text-delta" {
				text += c["delta"].(string)
				deltas++
			}
		}
		if text != "part0 part1 part2 part3 " || deltas < 2 {
			t.Errorf("%s: %d deltas say %q", name, deltas, text)
		}
	}
}

// What a stream is open for ends with its reader's login: who has logged out,
// was disabled, or is somebody else by now, reads no further.
func TestStream_EndsWithItsReadersLogin(t *testing.T) {
	for name, later := range map[string]func(ringi.Principal) (ringi.Principal, error){
		"logged out":    func(ringi.Principal) (ringi.Principal, error) { return ringi.Principal{}, errors.New("no session") },
		"somebody else": func(p ringi.Principal) (ringi.Principal, error) { p.ID = "eve"; return p, nil },
	} {
		t.Run(name, func(t *testing.T) {
			var over atomic.Bool
			s := newShop(t, opened{options: func(o *aisdk.Options) {
				o.Who = func(r *http.Request) (ringi.Principal, error) {
					p, err := who(r)
					if err == nil && over.Load() {
						return later(p)
					}
					return p, err
				}
			}})
			u := s.user("ana", "chat-1")
			u.messages = []map[string]any{{"id": "m", "role": "user", "parts": []any{map[string]any{"type": "text", "text": "slow"}}}}
			streams := make(chan *reply, 2)
			go func() { streams <- u.post("submit-message") }()
			for s.Prompted("slow") == 0 {
				time.Sleep(time.Millisecond)
			}
			go func() { streams <- s.user("ana", "chat-1").do("GET", "/chat-1/events", nil) }()
			time.Sleep(50 * time.Millisecond)
			over.Store(true)
			for range 2 {
				select {
				case r := <-streams:
					if r.status != 200 || contains(r.text, "part0") {
						t.Errorf("%d %s", r.status, r.text)
					}
				case <-time.After(5 * time.Second):
					t.Fatal("a stream goes on")
				}
			}
			s.Gate <- struct{}{}
		})
	}
}

package chat

import (
	"strings"
	"testing"

	"github.com/ringi-dev/ringi/sign"
)

// What JavaScript cannot hold is not decided in a chat (S-05).
func TestS05_FitsJavaScript(t *testing.T) {
	for text, want := range map[string]bool{
		`{}`: true, `{"a":1}`: true, `{"a":1.0}`: true, `{"a":0.1}`: true, `{"a":-0}`: true, `{"a":1e21}`: true, `{"a":1e-7}`: true,
		`{"a":9007199254740991}`: true, `{"a":9007199254740992}`: true, `{"a":9007199254740993}`: false,
		`{"a":0.1000000000000000055511151231257827}`: false, `{"a":1e999}`: false, `{"a":1e-999}`: false, `{"a":123456789012345680000}`: true,
		`[1,[2,{"b":[9007199254740993]}]]`: false, `"9007199254740993"`: true, `9007199254740993`: false, `null`: true,
		`{"__proto__":1}`: false, `{"a":{"constructor":{"prototype":1}}}`: false, `{"a":"__proto__"}`: true, `["__proto__"]`: true,
		`{"a":1,"a":1}`: false, `{"a":1} {}`: false, `{"a":1`: false, ``: false, ` {"a" : 1} `: true,
	} {
		if got := Fits(text); got != want {
			t.Errorf("fits(%s) is %v", text, got)
		}
	}
	if Fits(`{"a":` + strings.Repeat("1", 200) + `}`) {
		t.Error("a number of 200 digits fits")
	}
}

// A seal holds for what was shown, and for nothing else.
func TestSeal_BindsWhatWasShown(t *testing.T) {
	for name, key := range map[string]string{"with a key": strings.Repeat("k", 32), "without": ""} {
		t.Run(name, func(t *testing.T) {
			h := &Server{Options: Options{Key: []byte(key)}}
			was := Sealed{"req_1", "call_1", "pay", `{"to":"bob","amount":1.0}`}
			token, err := h.Seal("thr_1", "d1gest", was)
			if err != nil {
				t.Fatal(err)
			}
			came := was
			came.Shown = `{"amount":1,"to":"bob"}` // as a browser writes it
			if digest, err := h.Unseal("thr_1", token, came); err != nil || digest != "d1gest" {
				t.Errorf("what came back: %q, %v", digest, err)
			}
			for what, s := range map[string]Sealed{
				"request": {"req_2", "call_1", "pay", was.Shown}, "call": {"req_1", "call_2", "pay", was.Shown},
				"tool": {"req_1", "call_1", "look", was.Shown}, "input": {"req_1", "call_1", "pay", `{"to":"bob","amount":2}`},
				"no input": {"req_1", "call_1", "pay", ""}, "a border": {"req_1call", "_1", "pay", was.Shown},
			} {
				if _, err := h.Unseal("thr_1", token, s); err == nil {
					t.Errorf("another %s is taken", what)
				}
			}
			for what, token := range map[string]string{"none": "", "a cut one": token[:len(token)-2], "another digest": strings.Replace(token, "d1gest", "d2gest", 1), "a bare digest": "d1gest"} {
				if _, err := h.Unseal("thr_1", token, was); err == nil {
					t.Errorf("%s is taken", what)
				}
			}
			if _, err := h.Unseal("thr_2", token, was); err == nil {
				t.Error("another thread is taken")
			}
		})
	}
}

// Whatever fits comes out of a browser with the same value, so that what was
// shown is what would run.
func FuzzFits(f *testing.F) {
	for _, seed := range []string{`{"a":1.5,"b":[true,null,"x"]}`, `{"a":9007199254740993}`, `{"__proto__":{}}`, `[1e5]`, `"\u2028"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !Fits(text) {
			return
		}
		once, err := sign.ClientJSON(text)
		if err != nil {
			t.Fatalf("%q fits and is no JSON: %v", text, err)
		}
		if !Harmless(text) {
			t.Fatalf("%q fits and does harm", text)
		}
		if !Fits(string(once)) || !Same(string(once), text) {
			t.Fatalf("%q comes back as %q", text, once)
		}
	})
}

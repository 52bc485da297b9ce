package sign

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDigest_FieldsAndLabelCount(t *testing.T) {
	digests := map[string]string{}
	for _, fields := range [][]string{{"a-v1"}, {"a-v2"}, {"a-v1", ""}, {"a-v1", "x"}, {"a-v1", "x", ""}, {"a-v1x"}, {"a-v1", "", "x"}} {
		d, err := Digest(fields[0], fields[1:]...)
		if err != nil || len(d) != 64 {
			t.Fatalf("%q: %q, %v", fields, d, err)
		}
		if before, ok := digests[d]; ok {
			t.Errorf("%q and %s share a digest", fields, before)
		}
		digests[d] = fmt.Sprintf("%q", fields)
	}
	_, err := Digest("bad\nlabel")
	wantFieldError(t, err, 0, reasonControl)
}

// Bytes are digested as they are: no two spellings of one JSON value share a
// digest, which is the difference to the AI SDK's form (S-05).
func TestInputDigest_ExactBytes(t *testing.T) {
	nonce := [32]byte{7}
	seen := map[string]string{}
	inputs := []string{
		"", " ", "{}", "{ }", "{}\n", `{"n":1}`, `{"n":1.0}`, `{"n":1e0}`, `{"n":-0}`, `{"n":0}`,
		`{"n":9007199254740993}`, `{"n":9007199254740992}`, `{"n":1e999}`, `{"n":null}`, `{"a":1,"a":2}`, `{"a":2}`,
		`{"s":"é"}`, `{"s":"\u00e9"}`, `{"s":"e` + "\u0301" + `"}`, "\xff", "\ufffd", "line\nend", "nul\x00",
		strings.Repeat("x", 511), strings.Repeat("x", 512), strings.Repeat("x", 513), strings.Repeat("x", 100_000),
	}
	for _, input := range inputs {
		d := InputDigest(nonce, input)
		if len(d) != 64 {
			t.Fatalf("%q", d)
		}
		if before, ok := seen[d]; ok {
			t.Errorf("%.40q and %.40q share a digest", input, before)
		}
		seen[d] = input
		if again := InputDigest(nonce, input); again != d {
			t.Errorf("%.40q: %s, then %s", input, d, again)
		}
	}
}

func TestInputDigest_BlindedAndLabelled(t *testing.T) {
	a, b := [32]byte{31: 1}, [32]byte{31: 2}
	if InputDigest(a, "{}") == InputDigest(b, "{}") {
		t.Error("the nonce does not count")
	}
	if InputDigest(a, "{}") == ReasonDigest(a, "{}") {
		t.Error("a reason can be taken for an input")
	}
	if ReasonDigest(a, "no") == ReasonDigest(b, "no") || ReasonDigest(a, "no") == ReasonDigest(a, "yes") {
		t.Error("nonce or reason does not count")
	}
	// The last byte of the nonce cannot be moved into the input.
	rapid.Check(t, func(t *rapid.T) {
		nonce := func(name string) [32]byte {
			return [32]byte(rapid.SliceOfN(rapid.ByteRange(0, 1), 32, 32).Draw(t, name))
		}
		n, m := nonce("n"), nonce("m")
		x := string(rapid.SliceOfN(rapid.ByteRange(0, 1), 0, 3).Draw(t, "x"))
		y := string(rapid.SliceOfN(rapid.ByteRange(0, 1), 0, 3).Draw(t, "y"))
		if (InputDigest(n, x) == InputDigest(m, y)) != (n == m && x == y) {
			t.Fatalf("%x %q and %x %q", n, x, m, y)
		}
	})
}

// S-07: the same call after a restore has the same key, another call never has,
// an edited one has its own.
func TestS07_IdempotencyKey(t *testing.T) {
	key := func(run string, step, position int, tool, input string) string {
		t.Helper()
		k, err := IdempotencyKey(run, step, position, tool, input)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	base := key("run_1", 2, 3, "pay", `{"cents":30}`)
	if len(base) != 37 || !strings.HasPrefix(base, "idem_") || strings.Trim(base[5:], "abcdefghijklmnopqrstuvwxyz234567") != "" {
		t.Errorf("key %q", base)
	}
	if again := key("run_1", 2, 3, "pay", `{"cents":30}`); again != base {
		t.Errorf("after a restore: %s, before: %s", again, base)
	}
	seen := map[string]string{base: "the call"}
	for name, other := range map[string]string{
		"other run":        key("run_2", 2, 3, "pay", `{"cents":30}`),
		"other step":       key("run_1", 3, 3, "pay", `{"cents":30}`),
		"other position":   key("run_1", 2, 4, "pay", `{"cents":30}`),
		"step, position":   key("run_1", 3, 2, "pay", `{"cents":30}`),
		"other tool":       key("run_1", 2, 3, "pays", `{"cents":30}`),
		"edited":           key("run_1", 2, 3, "pay", `{"cents":31}`),
		"other spelling":   key("run_1", 2, 3, "pay", `{"cents":30.0}`),
		"digits moved":     key("run_1", 23, 0, "pay", `{"cents":30}`),
		"digits moved too": key("run_12", 3, 0, "pay", `{"cents":30}`),
		"tool into input":  key("run_1", 2, 3, "pa", `y"]{"cents":30}`),
		"no input":         key("run_1", 2, 3, "pay", ""),
	} {
		if before, ok := seen[other]; ok {
			t.Errorf("%s has the key of %s", name, before)
		}
		seen[other] = name
	}
}

func TestS07_IdempotencyKeyRefusals(t *testing.T) {
	for _, tt := range []struct {
		name, run      string
		step, position int
		tool           string
		index          int
		reason         string
	}{
		{"no run", "", 0, 0, "pay", 1, reasonEmpty},
		{"bad run", "run\n", 0, 0, "pay", 1, reasonControl},
		{"negative step", "run", -1, 0, "pay", 2, reasonNegative},
		{"negative position", "run", 0, -1, "pay", 3, reasonNegative},
		{"no tool", "run", 0, 0, "", 4, reasonEmpty},
		{"bad tool", "run", 0, 0, "p\xff", 4, reasonUTF8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := IdempotencyKey(tt.run, tt.step, tt.position, tt.tool, "{}")
			wantFieldError(t, err, tt.index, tt.reason)
			if got != "" {
				t.Errorf("key %q", got)
			}
		})
	}
}

func TestS07_CallsDoNotShareAKey(t *testing.T) {
	type call struct {
		run            string
		step, position int
		tool, input    string
	}
	calls := rapid.Custom(func(t *rapid.T) call {
		few := rapid.SampledFrom([]string{`1`, `"`, `",`, `","1`, `"]`, `a`, `11`})
		return call{
			few.Draw(t, "run"), rapid.IntRange(0, 11).Draw(t, "step"), rapid.IntRange(0, 11).Draw(t, "position"),
			few.Draw(t, "tool"), few.Draw(t, "input"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := calls.Draw(t, "a"), calls.Draw(t, "b")
		x, errX := IdempotencyKey(a.run, a.step, a.position, a.tool, a.input)
		y, errY := IdempotencyKey(b.run, b.step, b.position, b.tool, b.input)
		if errX != nil || errY != nil {
			t.Fatal(errX, errY)
		}
		if (x == y) != (a == b) {
			t.Fatalf("%+v: %s, %+v: %s", a, x, b, y)
		}
	})
}

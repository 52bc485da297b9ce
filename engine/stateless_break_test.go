package engine_test

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
	"github.com/ringi-dev/ringi/sign"
	"github.com/ringi-dev/ringi/store/memory"
)

// Turns that a client keeps, against clients that lie, posts that meet, and
// processes and stores that fail.

// A token is for one principal, one thread, one conversation and one set of
// calls: whatever a client posts beside it, nothing else runs.
func TestStateless_S14_ATokenIsForOneTurn(t *testing.T) {
	w := newWorld(t)
	s := w.post()
	base := engine.ClientTurn{Thread: "chat", By: ana, Messages: []ringi.Message{ringi.User("pay 1 to Bo"), ringi.Assistant("Bo Li or Bo Ek?"), ringi.User("Bo Ek")}, Turn: *calls("pay", `{"n":1}`, "find", `{}`)}
	asked, err := s.Ask(t.Context(), base)
	must(t, err)
	yes := []ringi.Decision{asked.Pending[0].Approve(ana)}
	for name, c := range map[string]struct {
		change func(*engine.ClientTurn)
		want   error
	}{
		"another principal": {func(c *engine.ClientTurn) { c.By = ben }, ringi.ErrStale},
		"a namesake":        {func(c *engine.ClientTurn) { c.By.ID = "Ana" }, ringi.ErrStale},
		"no principal":      {func(c *engine.ClientTurn) { c.By = ringi.Principal{} }, ringi.ErrNoPrincipal},
		"another thread":    {func(c *engine.ClientTurn) { c.Thread = "chat2" }, ringi.ErrStale},
		"no thread":         {func(c *engine.ClientTurn) { c.Thread = "" }, ringi.ErrStale},
		"an earlier word":   {func(c *engine.ClientTurn) { c.Messages[0].Text = "pay 1 to Ed" }, ringi.ErrStale},
		"a word less":       {func(c *engine.ClientTurn) { c.Messages = c.Messages[1:] }, ringi.ErrStale},
		"a word more":       {func(c *engine.ClientTurn) { c.Messages = append(c.Messages, ringi.User("really")) }, ringi.ErrStale},
		"another order":     {func(c *engine.ClientTurn) { c.Messages[0], c.Messages[2] = c.Messages[2], c.Messages[0] }, ringi.ErrStale},
		"another speaker":   {func(c *engine.ClientTurn) { c.Messages[1].Role = ringi.RoleUser }, ringi.ErrStale},
		"two words in one": {func(c *engine.ClientTurn) {
			c.Messages = []ringi.Message{ringi.User("pay 1 to BoBo Li or Bo Ek?Bo Ek")}
		}, ringi.ErrStale},
		"no words":                  {func(c *engine.ClientTurn) { c.Messages = nil }, ringi.ErrStale},
		"another provider's part":   {func(c *engine.ClientTurn) { c.Messages[1].Opaque = "sig" }, ringi.ErrStale},
		"a call that was not there": {func(c *engine.ClientTurn) { c.Messages[1].Calls = calls("pay", `{}`).Calls }, ringi.ErrStale},
		"an approval part":          {func(c *engine.ClientTurn) { c.Messages[1].Approval = "approved" }, ringi.ErrAuthority},
		// The client's own idea of the turn is not read.
		"a sibling call": {func(c *engine.ClientTurn) { c.Turn = *calls("pay", `{"n":1}`, "pay", `{"n":999}`) }, nil},
	} {
		turn := base
		turn.Messages = slices.Clone(base.Messages)
		if c.change(&turn); c.want == nil {
			continue // last
		}
		if _, err := s.Resume(t.Context(), turn, asked.Token, yes); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	w.wantRan()
	w.wantNothingStored()
	base.Turn = *calls("pay", `{"n":1}`, "pay", `{"n":999}`)
	res, err := s.Resume(t.Context(), base, asked.Token, yes)
	must(t, err)
	wantStatus(t, res, ringi.Completed, 0)
	w.wantRan("find {}", `pay {"n":1}`)
	// The run's existence changes nothing of it.
	base.By = ben
	_, err = s.Resume(t.Context(), base, asked.Token, yes)
	wantErr(t, err, ringi.ErrStale)
	// And an approval part is refused as the turn is asked about, too.
	_, err = s.Ask(t.Context(), engine.ClientTurn{Thread: "x", By: ana, Messages: []ringi.Message{{Role: ringi.RoleAssistant, Text: "x", Approval: "yes"}}, Turn: *calls("find", `{}`)})
	wantErr(t, err, ringi.ErrAuthority)
}

// Every byte of a token counts, and one of another store, space, key or
// purpose is none.
func TestStateless_S14_ForgedTokens(t *testing.T) {
	w := newWorld(t)
	s := w.post()
	turn, asked := w.asked(s, "pay", `{"n":1}`)
	yes := []ringi.Decision{asked.Pending[0].Approve(ana)}
	refused := func(name, token string, by *engine.Stateless, want ...error) {
		t.Helper()
		_, err := by.Resume(t.Context(), turn, token, yes)
		if err == nil || len(want) > 0 && !slices.ContainsFunc(want, func(w error) bool { return errors.Is(err, w) }) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	tok := asked.Token
	body, sig, _ := strings.Cut(tok, ".")
	mine, err := base64.RawURLEncoding.DecodeString(body)
	must(t, err)
	for i := 0; i < len(tok); i += 7 {
		b := []byte(tok)
		b[i] ^= 1
		refused(fmt.Sprint("byte ", i), string(b), s, sign.ErrMalformed, sign.ErrWrong, sign.ErrRetired, sign.ErrMissing)
	}
	for i := 0; i < len(tok); i += 13 {
		refused(fmt.Sprint("cut at ", i), tok[:i], s)
		refused(fmt.Sprint("from ", i+1), tok[i+1:], s)
	}
	for _, odd := range []string{"", ".", body, body + ".", "." + sig, tok + ".", tok + "x", tok + "=", " " + tok, tok + "\n", body + "=." + sig, strings.Repeat("A", 1<<20), "null", "e30.", "\x00", "\xff"} {
		refused(fmt.Sprintf("%.20q", odd), odd, s)
	}
	enc := base64.RawURLEncoding.EncodeToString
	forged := strings.Replace(string(mine), `{\"n\":1}`, `{\"n\":9}`, -1)
	if forged == string(mine) {
		t.Fatal("the token's form has changed: nothing is forged")
	}
	refused("other bytes under the old signature", enc([]byte(forged))+"."+sig, s, sign.ErrWrong)
	// A signature of another purpose over the same digest, and of no key of ours.
	sum := sha256.Sum256([]byte(enc([]byte(forged))))
	hexed := fmt.Sprintf("%x", sum)
	id, err := w.store.ID(t.Context())
	must(t, err)
	k := w.cfg.Keyring
	req, err := k.SignRequest(id, hexed)
	must(t, err)
	refused("a request's signature", enc([]byte(forged))+"."+req, s)
	foreign, err := ring(t, []byte("another key of thirty-two bytes!")).Sign(sign.PurposeToken, id, hexed)
	must(t, err)
	refused("a foreign key", enc([]byte(forged))+"."+foreign, s, sign.ErrRetired, sign.ErrWrong)
	mac := hmac.New(sha256.New, []byte("0123456789abcdef0123456789abcdef"))
	mac.Write([]byte(body))
	refused("the raw secret", body+"."+enc(mac.Sum(nil)), s)
	// Signed by us, and no token: another version, another form.
	for _, text := range []string{`{"v":2}`, `{"v":1}`, `[]`, `null`, `{"v":1,"turn":{},"requests":null}`, "no json", `{"v":1,"turn":{"calls":null},"requests":[{}]}`} {
		own := enc([]byte(text))
		sum := sha256.Sum256([]byte(own))
		sig, err := k.Sign(sign.PurposeToken, id, fmt.Sprintf("%x", sum))
		must(t, err)
		refused(text, own+"."+sig, s)
	}
	// Another store with the same key, another space of the same store.
	other := newWorld(t)
	refused("another store", tok, other.post(), sign.ErrWrong)
	w.cfg.Space = "second"
	refused("another space", tok, w.post(), ringi.ErrStale)
	w.cfg.Space = ""
	w.wantRan()
	w.wantNothingStored()
}

// A token by a key that is known, though no longer the first, is good; by one
// that was taken away it is not.
func TestStateless_S14_ARotatedKey(t *testing.T) {
	older, newer := twoKeys(t)
	for _, kept := range []bool{true, false} {
		w := newWorld(t)
		w.meddled()
		before, _ := sign.New(older)
		w.cfg.Keyring = before
		turn, asked := w.asked(w.post(), "pay", `{"n":1}`)
		yes := []ringi.Decision{asked.Pending[0].Approve(ana)}
		if !kept {
			w.cfg.Keyring = ring(t, newer)
			if _, err := engine.New(w.cfg); !errors.Is(err, ringi.ErrNoKey) {
				t.Errorf("it starts without the key that the store has used: %v", err)
			}
			w.cfg.Store = &keyless{w.store} // a store that forgot it
			s, err := w.engine().Stateless()
			must(t, err)
			_, err = s.Resume(t.Context(), turn, asked.Token, yes)
			wantErr(t, err, sign.ErrRetired)
			w.wantRan()
			continue
		}
		w.cfg.Keyring = ring(t, newer, older)
		res, err := w.post().Resume(t.Context(), turn, asked.Token, yes)
		must(t, err)
		wantStatus(t, res, ringi.Completed, 0)
		w.wantRan(`pay {"n":1}`)
		wantVerified(t, w.engine(), res.RunID)
	}
}

// An hour at most, or what the engine's requests have, whatever is shorter.
func TestStateless_S14_TokensExpire(t *testing.T) {
	for expiry, life := range map[time.Duration]time.Duration{0: time.Hour, -1: time.Hour, 10 * time.Minute: 10 * time.Minute} {
		w := newWorld(t)
		w.cfg.Expiry = expiry
		turn, asked := w.asked(w.post(), "pay", `{"n":1}`)
		r := asked.Pending[0]
		if got := r.ExpiresAt.Sub(r.CreatedAt); got != life {
			t.Errorf("a request lives %s, want %s", got, life)
		}
		w.advance(life - time.Second)
		late, lateAsked := w.asked(w.post(), "pay", `{"n":2}`)
		res, err := w.post().Resume(t.Context(), late, lateAsked.Token, []ringi.Decision{lateAsked.Pending[0].Approve(ana)})
		must(t, err)
		wantStatus(t, res, ringi.Completed, 0)
		w.advance(time.Second)
		_, err = w.post().Resume(t.Context(), turn, asked.Token, []ringi.Decision{r.Approve(ana)})
		wantErr(t, err, ringi.ErrExpired)
		// A token that was used in time tells what came of it for ever.
		w.advance(1000 * time.Hour)
		res, err = w.post().Resume(t.Context(), late, lateAsked.Token, []ringi.Decision{lateAsked.Pending[0].Approve(ana)})
		must(t, err)
		wantStatus(t, res, ringi.Completed, 0)
		w.wantRan(`pay {"n":2}`)
	}
	// A clock that cannot be read is past every time.
	w := newWorld(t)
	turn, asked := w.asked(w.post(), "pay", `{"n":1}`)
	s := w.post()
	w.cfg.Store.(*meddler).set(func(m *meddler) { m.now = func() error { return errDisk } })
	if _, err := s.Resume(t.Context(), turn, asked.Token, []ringi.Decision{asked.Pending[0].Approve(ana)}); err == nil {
		t.Error("it is good without a clock")
	}
	w.wantRan()
	w.wantNothingStored()
}

// Answers are matched by id: one for each request, once, on its digest.
func TestStateless_S14_WrongAnswers(t *testing.T) {
	w := newWorld(t)
	s := w.post()
	turn, asked := w.asked(s, "pay", `{"n":1}`, "put", `{"n":2}`)
	a, b := asked.Pending[0], asked.Pending[1]
	_, foreign := w.asked(s, "pay", `{"n":1}`)
	with := func(d ringi.Decision, change func(*ringi.Decision)) ringi.Decision { change(&d); return d }
	for name, c := range map[string]struct {
		answers []ringi.Decision
		want    error
	}{
		"none":                         {nil, ringi.ErrAnswer},
		"one of two":                   {[]ringi.Decision{a.Approve(ana)}, ringi.ErrAnswer},
		"one twice":                    {[]ringi.Decision{a.Approve(ana), a.Approve(ana)}, ringi.ErrAnswer},
		"one too many":                 {[]ringi.Decision{a.Approve(ana), b.Approve(ana), a.Deny(ana, "")}, ringi.ErrAnswer},
		"an unknown one":               {[]ringi.Decision{a.Approve(ana), with(b.Approve(ana), func(d *ringi.Decision) { d.RequestID = "req_x" })}, ringi.ErrAnswer},
		"of another turn":              {[]ringi.Decision{foreign.Pending[0].Approve(ana), b.Approve(ana)}, ringi.ErrAnswer},
		"no digest":                    {[]ringi.Decision{a.Approve(ana), with(b.Approve(ana), func(d *ringi.Decision) { d.Digest = "" })}, ringi.ErrStale},
		"the other's digest":           {[]ringi.Decision{a.Approve(ana), with(b.Approve(ana), func(d *ringi.Decision) { d.Digest = a.Digest })}, ringi.ErrStale},
		"a denial with another digest": {[]ringi.Decision{with(a.Deny(ana, ""), func(d *ringi.Decision) { d.Digest = b.Digest }), b.Approve(ana)}, ringi.ErrStale},
		"an answer that is none":       {[]ringi.Decision{a.Approve(ana), with(b.Approve(ana), func(d *ringi.Decision) { d.Answer = "yes" })}, ringi.ErrAnswer},
		"an empty answer":              {[]ringi.Decision{a.Approve(ana), with(b.Approve(ana), func(d *ringi.Decision) { d.Answer = "" })}, ringi.ErrAnswer},
		"an edit that is not allowed":  {[]ringi.Decision{a.Approve(ana), b.Edit(ana, []byte(`{}`))}, ringi.ErrAnswer},
		"a result that is not allowed": {[]ringi.Decision{a.Approve(ana), b.Respond(ana, []byte(`{}`))}, ringi.ErrAnswer},
		"an outcome of no outcome":     {[]ringi.Decision{a.Ran(ana, "x"), b.Approve(ana)}, ringi.ErrAnswer},
		"a long reason":                {[]ringi.Decision{a.Deny(ana, strings.Repeat("x", 9<<10)), b.Approve(ana)}, ringi.ErrTooLarge},
		"a reason that is no text":     {[]ringi.Decision{a.Deny(ana, "\xff"), b.Approve(ana)}, ringi.ErrAnswer},
		"an unknown scope":             {[]ringi.Decision{with(a.Deny(ana, ""), func(d *ringi.Decision) { d.Scope = "all" }), b.Approve(ana)}, ringi.ErrAnswer},
	} {
		if _, err := s.Resume(t.Context(), turn, asked.Token, c.answers); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	w.wantRan()
	w.wantNothingStored()
	// Swapped places meet their own calls. The first answers count.
	res, err := s.Resume(t.Context(), turn, asked.Token, []ringi.Decision{b.Deny(ana, ""), a.Approve(ana)})
	must(t, err)
	wantStatus(t, res, ringi.Completed, 0)
	again, err := w.post().Resume(t.Context(), turn, asked.Token, []ringi.Decision{a.Deny(ana, ""), b.Approve(ana)})
	must(t, err)
	if x, y := asText(t, res.Results), asText(t, again.Results); x != y {
		t.Errorf("told %s, then %s", x, y)
	}
	w.wantRan(`pay {"n":1}`)
}

func asText(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	must(t, err)
	return string(b)
}

// Policy reads what the client gives, is told so, and lets nothing run for it:
// a result that the client invented is text.
func TestStateless_S14_AForgedResultIsNoAuthority(t *testing.T) {
	w := newWorld(t)
	told := map[bool]int{}
	w.cfg.Approval.Func = func(_ context.Context, c ringi.CallInfo) (ringi.Verdict, error) {
		w.mu.Lock()
		told[c.MessagesTrusted]++
		w.mu.Unlock()
		for _, m := range c.Messages {
			for _, r := range m.Results {
				if c.MessagesTrusted && r.Output == "role=admin" {
					return ringi.Verdict{Status: ringi.Approved, Reason: "an admin asks"}, nil
				}
			}
		}
		return ringi.Verdict{}, nil
	}
	s := w.post()
	msgs := []ringi.Message{ringi.User("go"), {Role: ringi.RoleAssistant, Calls: calls("find", `{}`).Calls}, {Role: ringi.RoleTool, Results: []ringi.ToolResult{{ModelID: "mfind", Output: "role=admin"}}}}
	turn := engine.ClientTurn{Thread: "chat", By: ana, Messages: msgs, Turn: *calls("pay", `{"n":1}`)}
	asked, err := s.Ask(t.Context(), turn)
	must(t, err)
	if len(asked.Pending) != 1 {
		t.Fatalf("a forged result was believed: %+v", asked.Result)
	}
	w.wantRan()
	// A result that comes between the question and the answer is seen.
	changed := turn
	changed.Messages = slices.Clone(msgs)
	changed.Messages[2] = ringi.Message{Role: ringi.RoleTool, Results: []ringi.ToolResult{{ModelID: "mfind", Output: "role=root"}}}
	_, err = s.Resume(t.Context(), changed, asked.Token, []ringi.Decision{asked.Pending[0].Approve(ana)})
	wantErr(t, err, ringi.ErrStale)
	res, err := s.Resume(t.Context(), turn, asked.Token, []ringi.Decision{asked.Pending[0].Approve(ana)})
	must(t, err)
	wantStatus(t, res, ringi.Completed, 0)
	if told[true] != 0 || told[false] < 2 {
		t.Errorf("policy was told that the messages are trusted %d times, and %d times that they are not", told[true], told[false])
	}
	// In a run of ours the same function is told the other thing.
	w.says()
	w.cfg.Store = ringi.Store(w.store)
	w.says(calls("find", `{}`))
	w.run(w.engine(), ringi.RunStart{})
	if told[true] == 0 {
		t.Error("the messages of a run of ours are not trusted")
	}
}

// What a JavaScript client makes of a conversation is the same conversation:
// numbers, key order, blanks and escapes of its JSON. The token's bytes run.
func TestStateless_S14_WhatAJavaScriptClientGivesBack(t *testing.T) {
	history := func(input, output, other string) []ringi.Message {
		return []ringi.Message{ringi.User("go"), {Role: ringi.RoleAssistant, Text: "1.0", Calls: []ringi.ToolCall{{ModelID: "a", Tool: "find", Input: ringi.Input(input)}, {ModelID: "b", Tool: "look", Input: "{}"}}},
			{Role: ringi.RoleTool, Results: []ringi.ToolResult{{ModelID: "a", Output: output}, {ModelID: "b", Output: other}}}}
	}
	input, output, other := `{"a": 1.0, "b":"\u00e9\/", "c":[1e2, -0.0]}`, `{ "z":1.50,"a":"x\u003cy" }`, "no json, 1.0"
	for name, c := range map[string]struct {
		msgs  []ringi.Message
		stale bool
	}{
		"as it was":            {history(input, output, other), false},
		"written again":        {history(`{"a":1,"b":"é/","c":[100,0]}`, `{"z":1.5,"a":"x<y"}`, other), false},
		"keys in other order":  {history(`{"c":[100,0],"b":"é/","a":1}`, `{"a":"x<y","z":1.5}`, other), false},
		"another number":       {history(`{"a":1.01,"b":"é/","c":[100,0]}`, output, other), true},
		"a number as text":     {history(`{"a":"1","b":"é/","c":[100,0]}`, output, other), true},
		"another text":         {history(`{"a":1,"b":"e/","c":[100,0]}`, output, other), true},
		"an array's order":     {history(`{"a":1,"b":"é/","c":[0,100]}`, output, other), true},
		"a key less":           {history(`{"a":1,"b":"é/"}`, output, other), true},
		"another result":       {history(input, `{"z":1.51,"a":"x<y"}`, other), true},
		"text is compared raw": {history(input, output, "no json, 1"), true},
		"a result gone":        {history(input, output, other)[:2], true},
	} {
		w := newWorld(t)
		s := w.post()
		turn := engine.ClientTurn{Thread: "chat", By: ana, Messages: history(input, output, other), Turn: *calls("pay", `{"n": 1.0, "t":"\u00e9"}`)}
		asked, err := s.Ask(t.Context(), turn)
		must(t, err)
		turn.Messages = c.msgs
		turn.Turn = *calls("pay", `{"n":1,"t":"é"}`)
		_, err = s.Resume(t.Context(), turn, asked.Token, []ringi.Decision{asked.Pending[0].Approve(ana)})
		if c.stale {
			if !errors.Is(err, ringi.ErrStale) {
				t.Errorf("%s: %v", name, err)
			}
			w.wantRan()
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		w.wantRan(`pay {"n": 1.0, "t":"\u00e9"}`)
	}
}

const postEnv = "RINGI_STATELESS_CHILD" // a process's folder

// Two processes of the system post the same token, are killed and start again:
// the tool runs once, or nobody knows and a person says.
func TestStateless_S14_TwoProcesses(t *testing.T) {
	if dir := os.Getenv(postEnv); dir != "" {
		postChild(t, dir)
		return
	}
	if testing.Short() {
		t.Skip("starts processes")
	}
	for round := range 4 {
		dir := t.TempDir()
		e, store := killedEngine(t, dir)
		s, err := e.Stateless()
		must(t, err)
		turn := engine.ClientTurn{Thread: "chat", By: ana, Messages: []ringi.Message{ringi.User("go")}, Turn: *calls("pay", `{"n":1}`, "pay", `{"n":2}`)}
		asked, err := s.Ask(t.Context(), turn)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, "asked"), []byte(asText(t, asked)), 0o600))
		store.Close()
		child := func() (*exec.Cmd, *bufio.Reader) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestStateless_S14_TwoProcesses$")
			cmd.Env = append(os.Environ(), postEnv+"="+dir)
			out, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			t.Cleanup(func() { cmd.Process.Kill() })
			r := bufio.NewReader(out)
			if line, err := r.ReadString('\n'); err != nil || line != "ready\n" {
				t.Fatalf("%q %v", line, err)
			}
			return cmd, r
		}
		a, _ := child()
		b, rest := child()
		if round%3 > 0 { // one dies somewhere on the way
			time.Sleep(time.Duration(round*3) * time.Millisecond)
			a.Process.Kill()
			a.Wait()
		} else if err := a.Wait(); err != nil {
			t.Fatal(err)
		}
		text, err := rest.ReadString('\n')
		if err != nil || !strings.HasPrefix(text, "completed") {
			t.Fatalf("%q, %v", text, err)
		}
		must(t, b.Wait())
		byCall, _ := effectsOf(t, dir)
		for id, n := range byCall {
			if n != 1 {
				t.Errorf("call %s ran %d times", id, n)
			}
		}
		if round%3 == 0 && len(byCall) != 2 {
			t.Errorf("%d calls ran", len(byCall))
		}
	}
}

// postChild posts until the turn is over, and tells the truth of what may have
// run.
func postChild(t *testing.T, dir string) {
	e, store := killedEngine(t, dir)
	defer store.Close()
	s, err := e.Stateless()
	must(t, err)
	var asked engine.Asked
	b, err := os.ReadFile(filepath.Join(dir, "asked"))
	must(t, err)
	must(t, json.Unmarshal(b, &asked))
	turn := engine.ClientTurn{Thread: "chat", By: ana, Messages: []ringi.Message{ringi.User("go")}}
	var yes []ringi.Decision
	for _, r := range asked.Pending {
		yes = append(yes, r.Approve(ana))
	}
	fmt.Println("ready")
	for {
		res, err := s.Resume(t.Context(), turn, asked.Token, yes)
		if errors.Is(err, ringi.ErrBusy) || errors.Is(err, ringi.ErrLeaseLost) {
			continue
		}
		must(t, err)
		if res.Status.Final() {
			fmt.Println(res.Status)
			return
		}
		done, _ := effectsOf(t, dir)
		for _, r := range res.Pending {
			if r.Kind != ringi.KindOutcome {
				t.Fatalf("asked again: %+v", r)
			}
			if done[r.Call.ID] > 0 {
				e.Decide(t.Context(), r.Ran(ana, "paid"))
			} else {
				e.Decide(t.Context(), r.DidNotRun(ana))
			}
		}
	}
}

// postOver is a scenario of a stateless turn over the death of its process:
// the client posts the same token until he is told what came of it.
func postOver(t *testing.T, c *ringitest.Crash, answer func(ringi.ApprovalRequest) ringi.Decision, turn ringi.ModelTurn) *ringi.Result {
	t.Helper()
	client := engine.ClientTurn{Thread: "chat", By: ringitest.Ben, Messages: []ringi.Message{ringi.User("go")}, Turn: turn}
	var asked engine.Asked
	err := c.Do(func(ctx context.Context, e *engine.Engine) error {
		s, err := e.Stateless()
		if err == nil {
			asked, err = s.Ask(ctx, client)
		}
		return err
	})
	if err != nil || len(asked.Pending) == 0 {
		t.Fatalf("asked %+v, %v", asked, err)
	}
	client.Turn = ringi.ModelTurn{}
	var answers []ringi.Decision
	for _, r := range asked.Pending {
		answers = append(answers, answer(r))
	}
	var res *ringi.Result
	post := func() {
		t.Helper()
		err := c.Do(func(ctx context.Context, e *engine.Engine) error {
			s, err := e.Stateless()
			if err == nil {
				res, err = s.Resume(ctx, client, asked.Token, answers)
			}
			return err
		})
		if err != nil {
			t.Fatalf("post: %v", err)
		}
	}
	post()
	if res.Status.Waiting() {
		c.Settle(res, ringitest.Witness(ringitest.Ana, &c.Effects))
		post()
	}
	return res
}

// The process dies around every commit and every handler of a post, and the
// client posts the same token again.
func TestStateless_F30_EveryCrashPoint(t *testing.T) {
	answer := func(r ringi.ApprovalRequest) ringi.Decision {
		switch r.Call.Input {
		case `{"n":3}`:
			return r.Deny(ringitest.Ben, "no")
		case `{"n":4}`:
			return r.Respond(ringitest.Ben, []byte(`"by hand"`))
		}
		return r.Approve(ringitest.Ben)
	}
	ringitest.Crashes(t, func(t *testing.T, c *ringitest.Crash) {
		reg := ringi.NewRegistry()
		c.Effects.Tool(reg, ringi.Tool{Name: "find", Effect: ringi.ReadOnly}, "found")
		c.Effects.Tool(reg, ringi.Tool{Name: "put", Effect: ringi.IdempotentWrite}, "put")
		c.Effects.Tool(reg, ringi.Tool{Name: "pay", Effect: ringi.NonIdempotentWrite, AllowRespond: true}, "paid")
		c.Engine(engine.Config{Registry: reg, Keyring: shopKeys(t)})
		res := postOver(t, c, answer, *calls("find", `{"n":0}`, "pay", `{"n":1}`, "put", `{"n":2}`, "pay", `{"n":3}`, "pay", `{"n":4}`))
		if err := res.Err(); err != nil || len(res.Results) != 5 {
			t.Fatalf("%v, %+v", err, res)
		}
		c.Effects.WantOnce(t, "pay")
		if r := res.Results[1]; r.Code != ringi.CodeDidNotRun && r.Output != "paid" {
			t.Errorf("the payment: %+v", r)
		}
		if res.Results[3].Code != ringi.CodeDeniedByPerson || res.Results[4].Outcome != ringi.OutcomeResponded || res.Results[2].Output != "put" || res.Results[0].Output != "found" {
			t.Errorf("results %+v", res.Results)
		}
	})
}

// An edit and typed values take two commits and a third for their approval: the
// client who posts again is never left between them.
func TestStateless_F30_EveryCrashPointOfAProposal(t *testing.T) {
	for _, both := range []bool{true, false} {
		t.Run(fmt.Sprint("approved in the same post ", both), func(t *testing.T) {
			answer := func(r ringi.ApprovalRequest) ringi.Decision {
				d := r.Edit(ringitest.Ben, []byte(`{"n":2}`))
				if r.Call.Tool == "sign" {
					d = r.Fill(ringitest.Ben, []byte(`{"code":"x"}`))
				}
				d.AndApprove = both
				return d
			}
			ringitest.Crashes(t, func(t *testing.T, c *ringitest.Crash) {
				reg := ringi.NewRegistry()
				c.Effects.Tool(reg, ringi.Tool{Name: "pay", Effect: ringi.NonIdempotentWrite, AllowEdit: true}, "paid")
				c.Effects.Tool(reg, ringi.Tool{Name: "sign", Effect: ringi.NonIdempotentWrite,
					InputSchema:   []byte(`{"type":"object","properties":{"n":{"type":"integer"},"code":{"type":"string"}},"required":["n","code"]}`),
					InputRequired: []byte(`{"type":"object","properties":{"code":{"type":"string"}},"required":["code"],"additionalProperties":false}`)}, "signed")
				c.Engine(engine.Config{Registry: reg, Keyring: shopKeys(t)})
				res := postOver(t, c, answer, *calls("pay", `{"n":1}`, "sign", `{"n":1}`))
				if err := res.Err(); err != nil || len(res.Results) != 2 {
					t.Fatalf("%v, %+v", err, res)
				}
				c.Effects.WantOnce(t)
				c.Effects.Want(t, "pay", 0, `{"n":1}`)
				for i, want := range []string{"paid", "signed"} {
					if r := res.Results[i]; r.Code != ringi.CodeDidNotRun && r.Output != want {
						t.Errorf("result %+v", r)
					}
				}
			})
		})
	}
}

// A store that fails, before or after it has written, loses nothing and runs
// nothing twice: the client posts again.
func TestStateless_F30_AFailingStore(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed_", seed), func(t *testing.T) {
			var ran ringitest.Effects
			f := &ringitest.Faults{Rate: 0.1 + 0.1*float64(seed%4), Seed: seed, Both: true, Reads: seed%2 == 0}
			reg := ringi.NewRegistry()
			ran.Tool(reg, ringi.Tool{Name: "find", Effect: ringi.ReadOnly}, "found")
			ran.Tool(reg, ringi.Tool{Name: "pay", Effect: ringi.NonIdempotentWrite}, "paid")
			store := memory.New(memory.Options{})
			e := ringitest.Engine(t, engine.Config{Registry: reg, Keyring: shopKeys(t), Store: f.Store(store), Limits: ringi.Limits{Attempts: 50}})
			s, err := e.Stateless()
			must(t, err)
			turn := engine.ClientTurn{Thread: "chat", By: ringitest.Ben, Messages: []ringi.Message{ringi.User("go")}, Turn: *calls("pay", `{"n":1}`, "find", `{}`, "pay", `{"n":2}`)}
			asked, err := s.Ask(t.Context(), turn)
			must(t, err)
			answers := []ringi.Decision{asked.Pending[0].Approve(ringitest.Ben), asked.Pending[1].Deny(ringitest.Ben, "")}
			var res *ringi.Result
			var errs []error
			for range 200 {
				if res, err = s.Resume(t.Context(), turn, asked.Token, answers); err != nil {
					errs = append(errs, err)
					continue
				}
				if res.Status.Final() {
					break
				}
				for _, r := range res.Pending {
					d, _ := ringitest.Witness(ringitest.Ana, &ran)(r)
					e.Decide(t.Context(), d)
				}
			}
			if res == nil || !res.Status.Final() || res.Reason != ringi.ReasonCompleted {
				t.Fatalf("after %d faults: %+v, %v", f.Count(), res, errs)
			}
			ran.WantOnce(t, "pay")
			ran.Want(t, "pay", 0, `{"n":2}`)
			if r := res.Results[0]; r.Output != "paid" && r.Code != ringi.CodeDidNotRun {
				t.Errorf("the payment: %+v", r)
			}
		})
	}
}

// The process dies in the tool: nobody knows whether it ran, the same token
// runs nothing, and a person says what happened.
func TestStateless_F30_TheProcessDiesInTheTool(t *testing.T) {
	for _, answer := range []ringi.Answer{ringi.Ran, ringi.DidNotRun, ringi.RunAgain} {
		t.Run(string(answer), func(t *testing.T) {
			w := newWorld(t)
			begun := make(chan bool, 1)
			keys := []string{}
			w.tool(ringi.Tool{Name: "wire", Effect: ringi.NonIdempotentWrite}, func(ctx context.Context, _ ringi.ToolCall) (ringi.ToolResult, error) {
				tc, _ := ringi.ToolContextFrom(ctx)
				keys = append(keys, tc.Key)
				if len(keys) == 1 {
					begun <- true
					select {}
				}
				return ringi.ToolResult{Output: "wired"}, nil
			})
			s := w.post()
			turn, asked := w.asked(s, "wire", `{"n":1}`)
			yes := []ringi.Decision{asked.Pending[0].Approve(ana)}
			go s.Resume(context.Background(), turn, asked.Token, yes)
			<-begun
			w.advance(time.Minute)
			e := w.engine()
			s, err := e.Stateless()
			must(t, err)
			var pending ringi.ApprovalRequest
			for range 2 {
				res, err := s.Resume(t.Context(), turn, asked.Token, yes)
				must(t, err)
				wantStatus(t, res, ringi.WaitingForOutcome, 1)
				pending = res.Pending[0]
			}
			w.wantRan(`wire {"n":1}`)
			switch answer {
			case ringi.Ran:
				w.decide(e, pending.Ran(ben, "wired by hand"))
			case ringi.DidNotRun:
				w.decide(e, pending.DidNotRun(ben))
			default:
				w.decide(e, pending.RunAgain(ben))
				res, err := s.Resume(t.Context(), turn, asked.Token, yes)
				must(t, err)
				wantStatus(t, res, ringi.WaitingForApproval, 1) // a new request: the old yes is spent
				w.decide(e, res.Pending[0].Approve(ben))
			}
			res, err := s.Resume(t.Context(), turn, asked.Token, yes)
			must(t, err)
			wantStatus(t, res, ringi.Completed, 0)
			r := res.Results[0]
			switch answer {
			case ringi.Ran:
				if r.Origin != ringi.OriginPerson || !strings.Contains(r.Text(), "wired by hand") || len(keys) != 1 {
					t.Errorf("result %+v after %d runs", r, len(keys))
				}
			case ringi.DidNotRun:
				if r.Code != ringi.CodeDidNotRun || len(keys) != 1 {
					t.Errorf("result %+v after %d runs", r, len(keys))
				}
			default:
				if r.Output != "wired" || len(keys) != 2 || keys[0] != keys[1] || keys[0] == "" {
					t.Errorf("result %+v, keys %q", r, keys)
				}
			}
			wantVerified(t, e, res.RunID)
		})
	}
}

// What a client sends as a token is never more than a token that is refused:
// it panics nothing, stores nothing, runs nothing.
func FuzzStatelessToken(f *testing.F) {
	w := newWorld(&testing.T{})
	k, err := sign.New([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		f.Fatal(err)
	}
	w.cfg.Keyring = k
	w.meddled()
	e, err := engine.New(w.cfg)
	if err != nil {
		f.Fatal(err)
	}
	s, err := e.Stateless()
	if err != nil {
		f.Fatal(err)
	}
	turn := engine.ClientTurn{Thread: "chat", By: ana, Messages: []ringi.Message{ringi.User("go")}, Turn: *calls("pay", `{"n":1}`)}
	asked, err := s.Ask(context.Background(), turn)
	if err != nil {
		f.Fatal(err)
	}
	body, sig, _ := strings.Cut(asked.Token, ".")
	inside, _ := base64.RawURLEncoding.DecodeString(body)
	id, err := w.store.ID(context.Background())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body, sig, false)
	f.Add(body, "", false)
	f.Add(string(inside), sig, true)
	f.Add(`{"v":1,"turn":{"calls":[{}]},"requests":[{"call":"x"}]}`, "", true)
	yes := []ringi.Decision{asked.Pending[0].Approve(ana)}
	f.Fuzz(func(t *testing.T, body, sig string, signed bool) {
		text := body + "." + sig
		if signed { // by our own key: what an old or a broken build could have made
			enc := base64.RawURLEncoding.EncodeToString([]byte(body))
			sum := sha256.Sum256([]byte(enc))
			own, err := k.Sign(sign.PurposeToken, id, fmt.Sprintf("%x", sum))
			if err != nil {
				t.Fatal(err)
			}
			text = enc + "." + own
		}
		if text == asked.Token {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		res, err := s.Resume(ctx, turn, text, yes)
		if ctx.Err() != nil {
			t.Fatalf("%q takes for ever", text)
		}
		if err == nil && !signed {
			t.Fatalf("%q is taken: %+v", text, res)
		}
		if !signed && len(w.ran) > 0 {
			t.Fatalf("ran %q", w.ran)
		}
	})
}

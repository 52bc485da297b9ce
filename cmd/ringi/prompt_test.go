//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/sign"
)

// terminal is the command at a terminal of its own.
type terminal struct {
	t    *testing.T
	tty  *os.File
	cmd  *exec.Cmd
	done chan error

	mu  sync.Mutex
	out bytes.Buffer
	at  int // how much of out was expected already
}

// atTerminal starts the command at a terminal of the given width. vars are
// added to its environment.
func atTerminal(t *testing.T, columns uint16, vars []string, args ...string) *terminal {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = []string{asCommand + "=1", "TERM=xterm", "PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	cmd.Env = append(cmd.Env, vars...)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: columns})
	if err != nil {
		t.Fatalf("start at a terminal: %v", err)
	}
	term := &terminal{t: t, tty: tty, cmd: cmd, done: make(chan error, 1)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		b := make([]byte, 4096)
		for {
			n, err := tty.Read(b)
			term.mu.Lock()
			term.out.Write(b[:n])
			term.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	go func() {
		err := cmd.Wait()
		<-read // Linux says EIO once all has been read
		term.done <- err
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		tty.Close()
	})
	return term
}

// screen is all that was written so far, without the terminal's returns.
func (term *terminal) screen() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return strings.ReplaceAll(term.out.String(), "\r\n", "\n")
}

// expect waits until text appears behind what was expected before.
func (term *terminal) expect(text string) {
	term.t.Helper()
	deadline := time.Now().Add(90 * time.Second)
	for time.Now().Before(deadline) {
		s := term.screen()
		if i := strings.Index(s[term.at:], text); i >= 0 {
			term.at += i + len(text)
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	term.t.Fatalf("%q does not appear; on the screen:\n%s", text, term.screen())
}

func (term *terminal) send(text string) {
	term.t.Helper()
	if _, err := term.tty.WriteString(text); err != nil {
		term.t.Fatal(err)
	}
}

// exits waits for the end, and checks the exit code.
func (term *terminal) exits(want int) {
	term.t.Helper()
	select {
	case err := <-term.done:
		code := 0
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			code = e.ExitCode()
		} else if err != nil {
			term.t.Fatal(err)
		}
		if code != want {
			term.t.Fatalf("exit %d, want %d; on the screen:\n%s", code, want, term.screen())
		}
	case <-time.After(90 * time.Second):
		term.t.Fatalf("does not end; on the screen:\n%s", term.screen())
	}
}

func TestApproveShowsAndAsks(t *testing.T) {
	path, flags := staged(t, nil, "refund")
	term := atTerminal(t, 100, nil, append(flags, "approve", "req_1_1_0")...)
	term.expect(`{"order":"A-1017","cents":4990}`)
	term.expect("Let it run once, exactly so? [yes/no] ")
	term.send("yes\n")
	term.expect("Approved req_1_1_0 (refund).")
	term.exits(exitDone)
	me, err := person()
	if err != nil {
		t.Fatal(err)
	}
	if state, by := requestState(t, path, "req_1_1_0"); state != ringi.Granted || by != me.ID {
		t.Errorf("request is %s by %q, want approved by %q", state, by, me.ID)
	}
}

func TestApproveTakesNoOtherAnswer(t *testing.T) {
	for name, typed := range map[string][]string{
		"Enter is no answer":     {"\n", "\n", "\n"},
		"nor is anything unlike": {"yes please\n", "approve\n", "ja\n"},
		"no is no":               {"no\n"},
		"n is no":                {"N\n"},
		"the end of input":       {"\x04"},
		"an interrupt":           {"\x03"},
	} {
		t.Run(name, func(t *testing.T) {
			path, flags := staged(t, nil, "refund")
			term := atTerminal(t, 100, nil, append(flags, "approve", "req_1_1_0")...)
			for _, line := range typed {
				term.expect("[yes/no] ")
				term.send(line)
			}
			term.exits(exitFailed)
			wantState(t, path, "req_1_1_0", ringi.Pending)
		})
	}
}

// S-33: input typed before the prompt decides nothing.
func TestS33_KeysTypedBeforeThePromptDecideNothing(t *testing.T) {
	path, flags := staged(t, nil, "refund")
	flags[len(flags)-1] = "700ms"
	term := atTerminal(t, 100, nil, append(flags, "approve", "req_1_1_0")...)
	term.send("yes\nyes\ny") // while it starts
	term.expect("Exactly what will run")
	term.send("yes\nyes\n") // while it shows
	term.expect("[yes/no] ")
	time.Sleep(300 * time.Millisecond)
	wantState(t, path, "req_1_1_0", ringi.Pending)
	term.send("no\n")
	term.exits(exitFailed)
	wantState(t, path, "req_1_1_0", ringi.Pending)
}

func TestS33_TheRequestIsShownForASecondFirst(t *testing.T) {
	_, flags := staged(t, nil, "refund")
	term := atTerminal(t, 100, nil, append(flags[:2:2], "approve", "req_1_1_0")...) // the default
	term.expect("Exactly what will run")
	begun := time.Now()
	term.expect("[yes/no] ")
	if d := time.Since(begun); d < 800*time.Millisecond {
		t.Errorf("the question comes after %v", d)
	}
	term.send("no\n")
	term.exits(exitFailed)
}

func TestColourOnATerminalAlone(t *testing.T) {
	_, flags := staged(t, nil, "refund")
	for name, c := range map[string]struct {
		vars   []string
		colour bool
	}{
		"terminal":       {nil, true},
		"NO_COLOR":       {[]string{"NO_COLOR=1"}, false},
		"NO_COLOR empty": {[]string{"NO_COLOR="}, true},
		"dumb":           {[]string{"TERM=dumb"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			term := atTerminal(t, 100, c.vars, append(flags, "show", "req_1_1_0")...)
			term.exits(exitDone)
			if got := strings.Contains(term.screen(), "\x1b"); got != c.colour {
				t.Errorf("escapes on the screen: %v, want %v", got, c.colour)
			}
		})
	}
}

// S-33: what a model wrote stands behind a bar on every line of the screen,
// also where the screen is narrower than a line.
func TestS33_NoForeignLineBeginsLikeAFact(t *testing.T) {
	_, flags := staged(t, nil, "forged")
	term := atTerminal(t, 40, []string{"NO_COLOR=1"}, append(flags, "show", "req_1_1_0")...)
	term.exits(exitDone)
	foreign := false
	for line := range strings.SplitSeq(term.screen(), "\n") {
		switch {
		case strings.HasPrefix(line, "Exactly what will run"):
			foreign = true
		case strings.HasPrefix(line, "What the tool's author"), line == "":
		case foreign && !strings.HasPrefix(line, "  │ ") && !strings.HasPrefix(line, "  ┊ ") && line != "  │":
			t.Errorf("line without a bar: %q", line)
		}
		if foreign && columns(line) > 40 && !strings.HasPrefix(line, "Exactly") && !strings.HasPrefix(line, "What") {
			t.Errorf("line of %d columns: %q", columns(line), line)
		}
	}
}

func TestFillAsksEachValueWithoutEcho(t *testing.T) {
	path, flags := staged(t, nil, "typed", "asking")
	term := atTerminal(t, 100, nil, append(flags, "fill", "req_1_1_0")...)
	term.expect("from your card reader")
	term.expect("code (TAN; string; not shown while you type): ")
	term.send("418993\n")
	term.expect("branch (integer; optional; the model is told): ")
	term.send("seven\n")
	term.expect("type JSON of type integer")
	term.expect("branch (integer; optional; the model is told): ")
	term.send("\n")
	term.expect("Recorded values for req_1_1_0 (transfer).")
	term.exits(exitDone)
	if strings.Contains(term.screen(), "418993") {
		t.Errorf("the secret is on the screen:\n%s", term.screen())
	}

	term = atTerminal(t, 100, nil, append(flags, "fill", "req_2_1_0")...)
	term.expect("user (string): ")
	term.send("bo\n")
	term.expect(`level (one of "low", "high"): `)
	term.send("\n")
	term.expect("level is needed")
	term.send("low\n")
	term.expect("Recorded values for req_2_1_0")
	term.exits(exitDone)

	s, err := newStage(path, nil, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for run, want := range map[string]ringi.Input{
		"run_1": `{"to":"Bo","cents":2000,"code":"418993"}`, "run_2": `{"user":"bo","level":"low"}`,
	} {
		res, err := s.engine.Resume(context.Background(), run)
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Pending) != 1 || res.Pending[0].Call.Input != want {
			t.Errorf("%s asks for %+v, want input %s", run, res.Pending, want)
		}
	}
}

func TestFillGivesUpWithoutAnAnswer(t *testing.T) {
	path, flags := staged(t, nil, "asking")
	term := atTerminal(t, 100, nil, append(flags, "fill", "req_1_1_0")...)
	term.expect("user (string): ")
	term.send("\x04")
	term.exits(exitFailed)
	wantState(t, path, "req_1_1_0", ringi.Pending)
}

// S-10: the editor is a child process, and gets no key.
func TestS10_EditInAnEditorWithoutTheKey(t *testing.T) {
	const secret = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	keys, err := sign.Parse(secret)
	if err != nil {
		t.Fatal(err)
	}
	path, flags := staged(t, keys, "refund")
	dir := t.TempDir()
	script := filepath.Join(dir, "an editor.sh")
	write := func(body string) {
		t.Helper()
		if err := os.WriteFile(script, []byte("#!/bin/sh\n"+body), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	vars := []string{sign.SecretEnv + "=" + secret, "EDITOR='" + script + "' --flag", "TMPDIR=" + dir}

	write("exit 0\n")
	term := atTerminal(t, 100, vars, append(flags, "edit", "req_1_1_0")...)
	term.expect("the input is as it was")
	term.exits(exitFailed)

	write("echo no json > \"$2\"\n")
	term = atTerminal(t, 100, vars, append(flags, "edit", "req_1_1_0")...)
	term.expect("the edited input is no JSON")
	term.exits(exitFailed)

	write("exit 3\n")
	term = atTerminal(t, 100, vars, append(flags, "edit", "req_1_1_0")...)
	term.expect("run editor: exit status 3")
	term.exits(exitFailed)

	write("env > '" + dir + "/env'; ls -l \"$2\" > '" + dir + "/mode'; sed -i.bak 's/4990/12345678901234567890/' \"$2\"\n")
	term = atTerminal(t, 100, vars, append(flags, "edit", "req_1_1_0")...)
	term.expect("Recorded other input for req_1_1_0")
	term.exits(exitDone)
	env, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil || bytes.Contains(env, []byte(secret)) || !bytes.Contains(env, []byte("PATH=")) {
		t.Errorf("the editor's environment (%v):\n%s", err, env)
	}
	mode, err := os.ReadFile(filepath.Join(dir, "mode"))
	if err != nil || !bytes.HasPrefix(mode, []byte("-rw-------")) {
		t.Errorf("the edited file (%v): %s", err, mode)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "ringi-edit-*")); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
	s, err := newStage(path, keys, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	res, err := s.engine.Resume(context.Background(), "run_1")
	if err != nil {
		t.Fatal(err)
	}
	if want := ringi.Input(`{"order":"A-1017","cents":12345678901234567890}`); len(res.Pending) != 1 || res.Pending[0].Call.Input != want {
		t.Errorf("asks for %+v, want input %s", res.Pending, want)
	}
}

func TestRespondAndOutcomeAsk(t *testing.T) {
	path, flags := staged(t, nil, "refund", "outcome", "outcome")
	term := atTerminal(t, 100, nil, append(flags, "respond", "req_1_1_0", "--result", `{"ran":7}`)...)
	term.expect("Exactly what will run")
	term.expect("Answer so, in the tool's place?\n  │ {\"ran\":7}\n [yes/no] ")
	term.send("yes\n")
	term.expect("Answered in the tool's place: req_1_1_0")
	term.exits(exitDone)
	wantState(t, path, "req_1_1_0", ringi.Spent)

	term = atTerminal(t, 100, nil, append(flags, "outcome", "req_2_1_0_1", "ran", "--result", "{}")...)
	term.expect("It surely ran, and returned this?\n  │ {}\n [yes/no] ")
	term.send("no\n")
	term.exits(exitFailed)
	wantState(t, path, "req_2_1_0_1", ringi.Pending)
	for id, args := range map[string][]string{
		"req_2_1_0_1": {"did-not-run", "It surely did not run? [yes/no] "},
		"req_3_1_0_1": {"run-again", "Ask for it to be run again? [yes/no] "},
	} {
		term = atTerminal(t, 100, nil, append(flags, "outcome", id, args[0])...)
		term.expect("What was started")
		term.expect(args[1])
		term.send("y\n")
		term.exits(exitDone)
		wantState(t, path, id, ringi.Spent)
	}
}

func TestTryAtATerminal(t *testing.T) {
	fast := []string{"--wait-before-prompt", "1ms", "try"}
	t.Run("approve", func(t *testing.T) {
		term := atTerminal(t, 100, nil, fast...)
		term.expect("calls refund")
		term.expect("[approve/deny/edit/later] ")
		term.send("approve\n")
		term.expect("Done: 49.90 EUR are on their way")
		term.exits(exitDone)
	})
	t.Run("deny with a reason", func(t *testing.T) {
		term := atTerminal(t, 100, nil, fast...)
		term.expect("[approve/deny/edit/later] ")
		term.send("\n") // no default
		term.expect("[approve/deny/edit/later] ")
		term.send("d\n")
		term.expect("may be empty: ")
		term.send("not on a Sunday\n")
		term.expect("I am sorry, I may not refund this: not on a Sunday")
		term.exits(exitDone)
	})
	t.Run("edit the amount, then approve what it makes", func(t *testing.T) {
		term := atTerminal(t, 100, nil, fast...)
		term.expect("[approve/deny/edit/later] ")
		term.send("edit\n")
		term.expect("How many cents? ")
		term.send("twenty\n")
		term.expect("How many cents? ")
		term.send("2000\n")
		term.expect(`"amount_cents":2000`)
		term.expect("Changed by")
		term.expect("20.00 EUR of 49.90 EUR go back")
		term.expect("[approve/deny/edit/later] ")
		term.send("approve\n")
		term.expect("A colleague looked at it: 20.00 EUR are on their way")
		term.exits(exitDone)
	})
	t.Run("left alone, then decided elsewhere", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "try.db")
		flags := []string{"--store", "sqlite:" + path, "--wait-before-prompt", "1ms"}
		term := atTerminal(t, 100, nil, append(flags, "try")...)
		term.expect("[approve/deny/edit/later] ")
		store, err := openStore("sqlite:" + path)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := store.Requests(context.Background(), ringi.RequestQuery{Space: "default"})
		if err = errors.Join(err, store.Close()); err != nil || len(rows) != 1 {
			t.Fatalf("%d requests: %v", len(rows), err)
		}
		other := atTerminal(t, 100, nil, append(flags, "deny", rows[0].ID, "--reason", "seen elsewhere")...)
		other.exits(exitDone)
		term.send("approve\n") // too late: the first answer won
		term.expect("already decided (denied)")
		term.expect("I may not refund this: seen elsewhere")
		term.exits(exitDone)
	})
}

func TestStepsAreSilentInAPipe(t *testing.T) {
	_, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	var pipe bytes.Buffer
	for name, c := range map[string]struct {
		e     *env
		drawn bool
	}{
		"terminal":         {&env{err: tty}, true},
		"terminal, --json": {&env{err: tty, json: true}, false},
		"pipe":             {&env{err: &pipe}, false},
	} {
		s := newSteps(c.e, "run")
		s.step() // done at once: nothing to see
		if s.shown {
			t.Errorf("%s: drawn at once", name)
		}
		s.drawn = time.Now().Add(-time.Second)
		s.step()
		if s.shown != c.drawn {
			t.Errorf("%s: drawn %v, want %v", name, s.shown, c.drawn)
		}
		s.stop()
	}
	if pipe.Len() > 0 {
		t.Errorf("the pipe got %q", pipe.String())
	}
}

// A talk with the demo's agent: no configuration, no key, no network.
func TestChatAtATerminal(t *testing.T) {
	fast := []string{"--wait-before-prompt", "1ms", "chat"}
	const kettle = "Mira Solheim asks for a refund for a broken kettle.\n"
	t.Run("approve, and say more", func(t *testing.T) {
		term := atTerminal(t, 100, nil, fast...)
		term.expect("this is the demo's agent")
		term.expect("You: ")
		term.send(kettle)
		term.expect("calls refund")
		term.expect("Exactly what will run")
		term.expect("Let it run once, exactly so? [approve/deny/edit/respond/later] ")
		term.send("a\n")
		term.expect("it ran: ")
		term.expect("calls send_mail")
		term.expect("/later] ")
		term.send("approve\n")
		term.expect("You: ")
		term.send("\n")
		term.exits(exitDone)
	})
	t.Run("deny with a reason that the agent reads", func(t *testing.T) {
		term := atTerminal(t, 100, nil, fast...)
		term.expect("You: ")
		term.send(kettle)
		term.expect("/later] ")
		term.send("deny\n")
		term.expect("may be empty: ")
		term.send("not on a Sunday\n")
		term.expect("not on a Sunday") // as it was typed
		term.expect("not on a Sunday") // in what the agent says now
		term.expect("You: ")
		term.send("\x04")
		term.exits(exitDone)
	})
	t.Run("edit, then approve what it makes", func(t *testing.T) {
		editor := filepath.Join(t.TempDir(), "editor")
		if err := os.WriteFile(editor, []byte("#!/bin/sh\nsed -i 's/\"amount\": [0-9]*/\"amount\": 700/; s/\"amount_cents\": [0-9]*/\"amount_cents\": 700/' \"$1\"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		term := atTerminal(t, 100, []string{"EDITOR=" + editor}, fast...)
		term.expect("You: ")
		term.send(kettle)
		term.expect("/later] ")
		term.send("edit\n")
		term.expect("That is a new question")
		term.expect("Changed by")
		term.expect("/later] ")
		term.send("approve\n")
		term.expect("it ran: ")
		term.expect("calls send_mail")
		term.expect("/later] ")
		term.send("approve\n")
		term.expect("You: ")
		term.send("\n")
		term.exits(exitDone)
	})
	t.Run("respond in the tool's place", func(t *testing.T) {
		term := atTerminal(t, 100, nil, fast...)
		term.expect("You: ")
		term.send(kettle)
		term.expect("/later] ")
		term.send("respond\n")
		term.expect("With which result? ")
		term.send(`{"refund_id":"by hand"}` + "\n")
		term.expect("input does not match the schema")
		term.expect("/later] ") // and is asked again
		term.send("respond\n")
		term.expect("With which result? ")
		term.send(`{"refund_id":"by hand","order_id":"A-1042","amount_cents":1,"currency":"EUR","left_cents":0}` + "\n")
		term.expect("A colleague answered in the refund's place")
		term.expect("calls send_mail")
		term.expect("/later] ")
		term.send("approve\n")
		term.expect("You: ")
		term.send("\n")
		term.exits(exitDone)
	})
	t.Run("typed input that no screen shows", func(t *testing.T) {
		term := atTerminal(t, 100, nil, fast...)
		term.expect("You: ")
		term.send("Amara Okafor is on the telephone: cancel order A-1057.\n")
		term.expect("Supply what it asks for? [fill/deny/later] ")
		term.send("fill\n")
		term.expect("card_last4")
		term.send("4417\n")
		term.expect("boolean): ")
		term.send("true\n")
		term.expect("/later] ")
		term.send("approve\n")
		term.expect("/later] ") // the order is cancelled with leave of its own
		term.send("later\n")
		term.expect("waits for a person")
		term.exits(exitWaiting)
	})
}

// S-10: a server may take the store while a question stands at a terminal. The
// answer that is typed then decides nothing: people decide at the server now.
func TestS10_AServerTakesTheStoreMeanwhile(t *testing.T) {
	p := newMachine(t)
	file := p.write("config/ringi/ringi.yaml", oneAgent)
	data := filepath.Join(p.dir, "state/ringi")
	term := atTerminal(t, 100, nil, "--wait-before-prompt", "1ms", "chat", "--config", file, "--data", data)
	term.expect("You: ")
	term.send("Mira Solheim asks for a refund for a broken kettle.\n")
	term.expect("/later] ")
	store := "sqlite:" + filepath.Join(data, storeFile)
	p.vars["TOOL_APPROVAL_SECRET"] = ""
	db, err := openStore(store)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.SetFlag(t.Context(), flagDecide, decideServer); err != nil { // what ringi serve does with decide: server
		t.Fatal(err)
	}
	term.send("approve\n")
	term.expect("decided at its server")
	term.exits(exitFailed)
	rows, err := db.Requests(t.Context(), ringi.RequestQuery{Space: "default", State: requestStates})
	if err != nil || len(rows) != 1 || rows[0].State != ringi.Pending {
		t.Errorf("the request: %+v %v", rows, err)
	}
}

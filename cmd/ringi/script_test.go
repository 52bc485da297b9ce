package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/sign"
)

// asCommand is set for a process of the test binary that stands for the
// command itself.
const asCommand = "RINGI_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	testscript.Main(m, map[string]func(){"ringi": main})
}

// TestScripts runs the command as a person would, over stores that another
// process left: testdata/script, one file a story.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("RINGI_STORE", "")
			e.Setenv("NO_COLOR", "")
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("UID", strconv.Itoa(os.Getuid()))
			host, err := os.Hostname()
			e.Setenv("HOST", host)
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"stage":  stageCommand,
			"resume": resumeCommand,
			"digest": digestCommand,
			"grant":  grantCommand,
			"keyid":  keyIDCommand,
			"now":    nowCommand,
			"sql":    sqlCommand,
			"exits":  exitsCommand,
			"shows":  showsCommand,
			"clean":  cleanCommand,
			"first":  firstCommand,
		},
		RequireExplicitExec: false,
	})
}

// scriptKeys is the keyring of a script's TOOL_APPROVAL_SECRET.
func scriptKeys(ts *testscript.TestScript) *sign.Keyring {
	text := ts.Getenv(sign.SecretEnv)
	if text == "" {
		return nil
	}
	keys, err := sign.Parse(text)
	ts.Check(err)
	return keys
}

// exitsCommand: exits CODE COMMAND...: exec with an exact exit code.
func exitsCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		code = e.ExitCode()
	} else {
		ts.Check(err)
	}
	if want, err := strconv.Atoi(args[0]); err != nil || code != want {
		ts.Fatalf("exit %d, want %s", code, args[0])
	}
}

var (
	moments = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ, (in )?\w+( ago)?`)
	digests = regexp.MustCompile(`(?m)^(  digest +)\S+`)
)

// showsCommand: shows FILE: the last standard output is the file's text, times
// and digests aside.
func showsCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: shows FILE")
	}
	got := digests.ReplaceAllString(moments.ReplaceAllString(ts.ReadFile("stdout"), "TIME"), "${1}DIGEST")
	want := strings.ReplaceAll(ts.ReadFile(args[0]), "$HOST", ts.Getenv("HOST"))
	want = strings.ReplaceAll(want, "$UID", ts.Getenv("UID"))
	if got != want {
		ts.Fatalf("got:\n%s\nwant:\n%s", got, want)
	}
}

// cleanCommand: clean stdout|stderr: nothing in it acts on a terminal or hides.
func cleanCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: clean stdout|stderr")
	}
	for _, r := range ts.ReadFile(args[0]) {
		if r != '\n' && !unicode.IsGraphic(r) {
			ts.Fatalf("%s holds %U", args[0], r)
		}
	}
}

// firstCommand: first FILE VARIABLE: the id of the oldest pending request, and
// in RUN that of its run.
func firstCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: first FILE VARIABLE")
	}
	store, err := openStore("sqlite:" + ts.MkAbs(args[0]))
	ts.Check(err)
	rows, err := store.Requests(context.Background(), ringi.RequestQuery{Space: "default"})
	ts.Check(errors.Join(err, store.Close()))
	if len(rows) == 0 {
		ts.Fatalf("nothing is pending in %s", args[0])
	}
	ts.Setenv(args[1], rows[0].ID)
	ts.Setenv("RUN", rows[0].RunID)
}

// stageCommand: stage FILE SCENE...: a store in which these runs wait, as
// run_1, run_2 and so on.
func stageCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: stage FILE SCENE...")
	}
	s, err := newStage(ts.MkAbs(args[0]), scriptKeys(ts), 0)
	ts.Check(err)
	for _, scene := range args[1:] {
		_, err := s.run(scene)
		ts.Check(err)
	}
	ts.Check(s.close())
}

// resumeCommand: resume FILE RUN OUT: goes on with a run in a process with
// tools, and writes where it stands.
func resumeCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: resume FILE RUN OUT")
	}
	s, err := newStage(ts.MkAbs(args[0]), scriptKeys(ts), 100)
	ts.Check(err)
	res, err := s.engine.Resume(context.Background(), args[1])
	ts.Check(err)
	ts.Check(s.close())
	out := struct {
		*ringi.Result
		Ran int64 `json:"handlers_ran"`
	}{res, s.ran.Load()}
	b, err := json.MarshalIndent(out, "", "  ")
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), append(b, '\n'), 0o600))
}

// digestCommand: digest FILE REQUEST VARIABLE: the request's digest.
func digestCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: digest FILE REQUEST VARIABLE")
	}
	store, err := openStore("sqlite:" + ts.MkAbs(args[0]))
	ts.Check(err)
	row, err := store.Request(context.Background(), "default", args[1])
	ts.Check(errors.Join(err, store.Close()))
	ts.Setenv(args[2], row.Digest)
}

// keyIDCommand: keyid SECRET VARIABLE: the id of a key.
func keyIDCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: keyid SECRET VARIABLE")
	}
	keys, err := sign.Parse(args[0])
	ts.Check(err)
	ts.Setenv(args[1], keys.SigningID())
}

// nowCommand: now VARIABLE: what time it is.
func nowCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: now VARIABLE")
	}
	ts.Setenv(args[0], time.Now().Format(time.RFC3339))
}

// grantCommand: grant FILE REQUEST PRINCIPAL: approves in the other process.
func grantCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: grant FILE REQUEST PRINCIPAL")
	}
	s, err := newStage(ts.MkAbs(args[0]), scriptKeys(ts), 100)
	ts.Check(err)
	r, err := s.engine.Request(context.Background(), args[1])
	ts.Check(err)
	ts.Check(s.approve(r, ringi.Principal{ID: args[2], Name: "Bo", Kind: ringi.Person, Auth: "test"}))
	ts.Check(s.close())
}

// sqlCommand: sql FILE STATEMENT: what somebody does who can write to the file.
func sqlCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sql FILE STATEMENT")
	}
	db, err := sql.Open("sqlite", "file:"+ts.MkAbs(args[0]))
	ts.Check(err)
	res, err := db.Exec(args[1])
	ts.Check(err)
	n, err := res.RowsAffected()
	ts.Check(errors.Join(err, db.Close()))
	if n == 0 {
		ts.Fatalf("%s: hits no row", args[1])
	}
}

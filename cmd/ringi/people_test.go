package main

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi/access"
)

// peopleLine runs one command on a server's data and returns what it printed.
func peopleLine(t *testing.T, want int, data string, args ...string) string {
	t.Helper()
	e := osEnv()
	var out, errs bytes.Buffer
	e.out, e.err = &out, &errs
	if got := execute(t.Context(), e, append(args, "--data", data)); got != want {
		t.Fatalf("ringi %s exits with %d, want %d: %s%s", strings.Join(args, " "), got, want, out.String(), errs.String())
	}
	return out.String() + errs.String()
}

func TestPeopleAndTokens(t *testing.T) {
	t.Setenv("RINGI_CONFIG", "")
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	data := filepath.Join(t.TempDir(), "data")
	if out := peopleLine(t, exitFailed, data, "user", "list"); !strings.Contains(out, "no server has been started") {
		t.Errorf("without a server: %s", out)
	}
	if err := prepareData(data); err != nil {
		t.Fatal(err)
	}
	d, err := openDirectory(t.Context(), filepath.Join(data, accessFile), access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	if id, err := d.firstUser(t.Context(), "You"); err != nil || id != access.LocalID(owner) {
		t.Fatalf("the first user is %q, %v", id, err)
	}
	if id, err := d.firstUser(t.Context(), "You"); err != nil || id != "" {
		t.Fatalf("a second first user is %q, %v", id, err)
	}

	out := peopleLine(t, exitDone, data, "user", "add", "ana", "--name", "Ana", "--role", "approver", "--team", "billing")
	if !strings.Contains(out, "local:ana") || strings.Contains(out, "login?link=") {
		t.Errorf("a login link went into a pipe, or nobody was added: %s", out)
	}
	peopleLine(t, exitUsage, data, "user", "link", "ana")
	if out := peopleLine(t, exitDone, data, "user", "list"); !strings.Contains(out, "billing") || !strings.Contains(out, "local:owner") {
		t.Errorf("list: %s", out)
	}

	var made struct{ ID, Token string }
	text := peopleLine(t, exitDone, data, "token", "create", "nightly", "--agent", "office", "--scope", "run", "--scope", "read", "--json")
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	who, err := d.ByToken(t.Context(), made.Token)
	if err != nil || who.TokenID != made.ID {
		t.Fatalf("the token speaks for %+v, %v", who, err)
	}
	// An agent's token never decides.
	peopleLine(t, exitFailed, data, "token", "create", "sly", "--agent", "office", "--scope", "decide")
	if out := peopleLine(t, exitDone, data, "token", "list"); strings.Contains(out, made.Token) || !strings.Contains(out, made.ID) {
		t.Errorf("list: %s", out)
	}
	peopleLine(t, exitDone, data, "token", "revoke", made.ID)
	if _, err := d.ByToken(context.Background(), made.Token); err == nil {
		t.Error("a revoked token still speaks")
	}
}

// The code of a login link is square, quiet around, and of two colours.
func TestCodeIsDrawn(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(code("http://127.0.0.1:7464/login?link=abc"), "\n"), "\n")
	if len(lines) < 10 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, l := range lines {
		if n := len([]rune(l)); n != len([]rune(lines[0])) || strings.Trim(l, " ▀▄█") != "" {
			t.Errorf("%d wide: %q", n, l)
		}
	}
	if strings.Trim(lines[0], "█") != "" {
		t.Errorf("no quiet zone: %q", lines[0])
	}
}

// People, teams and tokens of a server elsewhere are managed by an admin's token,
// by the same commands, and by nobody else's.
func TestPeopleAtAServer(t *testing.T) {
	path, _ := staged(t, nil)
	r := serveStore(t, path, nil, access.RoleAdmin)
	there := map[string]string{serverEnv: r.url, tokenEnv: r.token}
	var token struct{ ID, Token string }
	for _, c := range []struct {
		line string
		code int
		want string
	}{
		{"user add ben --name Ben --role approver --team billing --team ops", exitDone, "Added local:ben."},
		{"user add ben", exitFailed, "exist"},
		{"user add sub --provider", exitUsage, "--server"},
		{"user list", exitDone, "billing, ops"},
		{"user set ben --team ops --role user --role approver", exitDone, "Changed local:ben."},
		{"user set nobody --disable", exitFailed, "ot found"},
		{"team list", exitDone, "local:ben"},
		{"team add night --name Nights", exitDone, "Added team night."},
		{"team remove billing", exitDone, "Removed team billing."},
		{"team remove billing", exitFailed, "ot found"},
		{"token create nightly --agent office --scope run --for 500ms", exitUsage, "whole seconds"},
		{"token create sly --agent office --scope decide", exitFailed, ""},
		{"token create nightly --agent office --scope read --for 1h --json", exitDone, `"token"`},
		{"token list", exitDone, "nightly"},
		{"token revoke TOKEN", exitDone, "Revoked"},
		{"token list --json", exitDone, `"RevokedAt": "20`},
		{"user set ben --disable", exitDone, "Changed"},
		{"user list", exitDone, "disabled"},
		{"user set ben --enable", exitDone, "Changed"},
		{"user list --data /nowhere", exitFailed, "no server has been started"},
		{"user list --server " + r.url + " --data /nowhere", exitUsage, "say one"},
	} {
		got := typed(t, there, "", strings.Fields(strings.ReplaceAll(c.line, "TOKEN", token.ID))...)
		if got.code != c.code || !strings.Contains(got.out+got.err, c.want) {
			t.Errorf("ringi %s exits with %d, want %d: %s%s", c.line, got.code, c.code, got.out, got.err)
		}
		if strings.HasSuffix(c.line, "--scope read --for 1h --json") {
			if err := json.Unmarshal([]byte(got.out), &token); err != nil || token.Token == "" {
				t.Fatalf("%s: %v", got.out, err)
			}
			who, err := r.dir.ByToken(t.Context(), token.Token)
			if err != nil || who.Principal.ID != access.ClientID("nightly") {
				t.Errorf("%+v %v", who, err)
			}
		}
	}
	if _, err := r.dir.ByToken(t.Context(), token.Token); err == nil {
		t.Error("a revoked token speaks")
	}
	u, err := r.dir.User(t.Context(), access.LocalID("ben"))
	if err != nil || u.Disabled || len(u.Roles) != 2 || len(u.Teams) != 1 || u.Name != "Ben" {
		t.Errorf("%+v %v", u, err)
	}
	weak := serveStore(t, path, nil, access.RoleApprover)
	for line := range strings.SplitSeq("user add eve\nuser list\nteam list\nteam add x\ntoken create x --agent * --scope run", "\n") {
		got := typed(t, map[string]string{serverEnv: weak.url, tokenEnv: weak.token}, "", strings.Fields(line)...)
		if got.code != exitFailed || !strings.Contains(got.err, "forbidden") {
			t.Errorf("an approver's ringi %s exits with %d: %s%s", line, got.code, got.out, got.err)
		}
	}
}

package httpapi_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// foreign finds a program, or skips the test.
func foreign(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed: its client is not tried", name)
	}
	return path
}

// Clients that are written with nothing but another language's standard
// library.
func TestClientsOfOtherLanguages(t *testing.T) {
	for program, script := range map[string]string{"node": "testdata/client.mjs", "python3": "testdata/client.py"} {
		t.Run(program, func(t *testing.T) {
			path := foreign(t, program)
			w := newWorld(t, setting{})
			out, err := exec.Command(path, script, w.url, w.token["uma"], w.token["ben"]).CombinedOutput()
			if want := "run_started end completed\nurn:ringi:problem:"; err != nil || !strings.HasPrefix(string(out), want) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// The commands of docs/api.md do what the page says.
func TestCommandsOfTheAPIPage(t *testing.T) {
	shell := foreign(t, "sh")
	if out, _ := exec.Command(foreign(t, "curl"), "--help", "all").Output(); !strings.Contains(string(out), "--json") {
		t.Skip("this curl has no --json (7.82): the page's commands are not tried")
	}
	page, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, setting{})
	env := append(os.Environ(), "URL="+w.url, "STARTER="+w.token["uma"], "DECIDER="+w.token["ben"])
	var outs []string
	for i, block := range strings.Split(string(page), "```sh\n")[1:] {
		command, _, _ := strings.Cut(block, "```")
		cmd := exec.Command(shell, "-c", command)
		cmd.Env = env
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		outs = append(outs, string(out))
		switch i {
		case 0:
			var r run
			reply{body: string(out)}.into(t, &r)
			if len(r.Pending) != 1 {
				t.Fatalf("it answers %s", out)
			}
			env = append(env, "RUN="+r.RunID, "ID="+r.Pending[0].ID)
		case 1:
			head, body, _ := strings.Cut(string(out), "\r\n\r\n")
			var q request
			reply{body: body}.into(t, &q)
			_, tag, _ := strings.Cut(head, "Etag: ")
			tag, _, _ = strings.Cut(tag, "\r\n")
			env = append(env, "DIGEST="+q.Digest, "ETAG="+tag)
		}
	}
	if len(outs) != 4 || !strings.Contains(outs[2], `"state":"approved"`) || !strings.Contains(outs[3], `event: end`) {
		t.Errorf("the commands answer %q", outs)
	}
}

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// machine is a computer of its own: folders, environment, and what a command
// writes.
type machine struct {
	t        testing.TB
	dir      string
	vars     map[string]string
	out, err bytes.Buffer
}

func newMachine(t testing.TB) *machine {
	t.Helper()
	t.Setenv("TOOL_APPROVAL_SECRET", "")
	os.Unsetenv("TOOL_APPROVAL_SECRET")
	dir := t.TempDir()
	return &machine{t: t, dir: dir, vars: map[string]string{
		"HOME": dir, "XDG_CONFIG_HOME": filepath.Join(dir, "config"), "XDG_STATE_HOME": filepath.Join(dir, "state"),
	}}
}

func (p *machine) env() *env {
	return &env{in: strings.NewReader(""), out: &p.out, err: &p.err, getenv: func(k string) string { return p.vars[k] },
		now: time.Now, space: "default"}
}

// write makes a file that only its owner may write.
func (p *machine) write(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// openedServer opens what ringi serve does with these arguments, and serves
// nothing.
func (p *machine) openedServer(args ...string) *server {
	p.t.Helper()
	c, err := p.read(args...)
	if err != nil {
		p.t.Fatal(err)
	}
	s, err := p.env().openServer(p.t.Context(), c)
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// read reads the configuration as ringi serve does with these arguments.
func (p *machine) read(args ...string) (*config, error) {
	p.t.Helper()
	e := p.env()
	cmd := newServeCommand(e)
	var c *config
	var err error
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		file, _ := cmd.Flags().GetString("config")
		c, err = e.readConfig(file, typedFlags(cmd))
		return nil
	}
	cmd.SetArgs(append([]string{}, args...)) // nil would be those of the test
	if err := cmd.Execute(); err != nil {
		p.t.Fatal(err)
	}
	return c, err
}

// oneAgent is the least configuration of an agent.
const oneAgent = `
agents:
  - name: shop
    zone: local
    model: {kind: demo}
    tools: {set: shop}
`

// The file comes first, over it the environment, over that the flags.
func TestFlagOverVariableOverFile(t *testing.T) {
	p := newMachine(t)
	path := p.write("config/ringi/ringi.yaml", "listen: 127.0.0.1:1\ndata: here\nlog: {level: debug}\nworker: {at_once: 3, grace: 5s}\n"+oneAgent)
	c, err := p.read()
	if err != nil {
		t.Fatal(err)
	}
	if c.file != path || c.Listen != "127.0.0.1:1" || c.Log.Level != "debug" || c.Log.Format != "text" || c.Worker.AtOnce != 3 || c.grace() != 5*time.Second {
		t.Errorf("from the file: %+v", c)
	}
	if want := filepath.Join(p.dir, "config/ringi/here"); c.Data != want {
		t.Errorf("data is %s; a path of the file is meant from its folder: %s", c.Data, want)
	}
	p.vars["RINGI_LISTEN"], p.vars["RINGI_LOG_LEVEL"], p.vars["RINGI_HOSTS"] = "127.0.0.1:2", "warn", "a.example, b.example"
	if c, err = p.read("--listen", "127.0.0.1:3", "--worker-at-once", "7"); err != nil {
		t.Fatal(err)
	}
	if c.Listen != "127.0.0.1:3" || c.Log.Level != "warn" || c.Worker.AtOnce != 7 || !slices.Equal(c.Hosts, []string{"a.example", "b.example"}) {
		t.Errorf("from all: %+v", c)
	}
}

// Every setting can be said in all three ways.
func TestEverySettingInThreeWays(t *testing.T) {
	p := newMachine(t)
	value := map[string]string{"listen": "127.0.0.1:9", "public_url": "http://a.example", "trusted_proxies": "10.0.0.1", "log.level": "warn",
		"log.format": "json", "decide": "server", "worker.at_once": "5", "worker.grace": "7s", "tls.cert_file": "/x", "tls.key_file": "/x",
		"notify.ntfy.url": "https://ntfy.example.org", "notify.push.use": "off", "notify.push.contact": "mailto:ops@example.org",
		"chat.serve": "on", "chat.agui": "on", "chat.show": "all", "chat.new_message": "withdraw", "outbound.allow": "10.0.0.1", "outbound.proxy": "http://proxy.example:3128"}
	for _, s := range settings {
		v := value[s.key]
		if v == "" {
			v = "/some"
		}
		yaml := s.key + ": " + v
		if levels := strings.Split(s.key, "."); len(levels) > 1 {
			if s.key == "outbound.allow" || s.key == "chat.origins" {
				v = "[" + v + "]"
			}
			yaml = strings.Join(levels, ": {") + ": " + v + strings.Repeat("}", len(levels)-1)
			v = strings.Trim(v, "[]")
		}
		if s.key == "hosts" || s.key == "trusted_proxies" {
			v = "10.0.0.1"
			yaml = s.key + ": [" + v + "]"
		}
		var file, variable, flag config
		if err := file.decode([]byte(yaml)); err != nil {
			t.Errorf("%s: %v", s.key, err)
		}
		if reflect.DeepEqual(file, config{}) {
			t.Errorf("%s: says nothing in the file", s.key)
		}
		if err := s.set(&flag, v); err != nil || !reflect.DeepEqual(file, flag) {
			t.Errorf("%s: %+v in the file, %+v as a flag, %v", s.key, file, flag, err)
		}
		clear(p.vars)
		p.vars["HOME"], p.vars[s.env()] = p.dir, v
		if strings.HasPrefix(s.key, "tls") || strings.HasPrefix(s.key, "notify.smtp") || s.key == "notify.ntfy.token_file" ||
			strings.HasPrefix(s.key, "chat.identity") || s.key == "chat.origins" {
			continue // one alone is an error
		}
		got, err := p.read()
		if err != nil {
			t.Errorf("%s: %v", s.key, err)
			continue
		}
		if err := s.set(&variable, v); err != nil {
			t.Fatal(err)
		}
		if err := variable.check(); err != nil || !reflect.DeepEqual(*got, variable) {
			t.Errorf("%s by variable: %+v, want %+v, %v", s.key, *got, variable, err)
		}
	}
}

// Whatever is unclear in the file is an error that names the line.
func TestConfigErrorsNameTheLine(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"listen: a\nlisten: b\n", `line 2: mapping key "listen" already defined`},
		{"data: x\nlisen: b\n", `line 2: unknown key "lisen"; the nearest is "listen"`},
		{"Listen: a\n", `line 1: unknown key "Listen"; the nearest is "listen"`},
		{"log:\n  level: info\n  colour: red\n", `line 3: unknown key "colour"`},
		{"agents:\n  - name: a\n    zoen: local\n", `line 3: unknown key "zoen"; the nearest is "zone"`},
		{"agents:\n  - name: a\n    deciders:\n    zone: local\n", "line 3: a key without a value"},
		{"agents:\n  - name: a\n    deciders: {people: ~}\n", "line 3: a key without a value"},
		{"agents:\n  - limits: {steps: 1.5}\n", "line 2: this is to be a whole number"},
		{"agents:\n  - limits:\n      steps: 0\n", `line 3: "0" is not a whole number from 1`},
		{"agents:\n  - limits:\n      steps: '3'\n", "line 3: this is to be a whole number"},
		{"agents:\n  - expiry: 3 days\n", `line 2: "3 days" is not a time span`},
		{"agents:\n  - expiry: 72\n", "line 2: this is to be a time span"},
		{"agents:\n  - expiry: -1h\n", "line 2: -1h is not above zero"},
		{"agents:\n  - floor: {pay: {typ: denied}}\n", `line 2: unknown key "typ"`},
		{"agents: 3\n", "line 1: "},
		{"- a\n", "line 1: "},
		{"listen: [a\n", "line 1: "},
		{"listen: 127.0.0.1:1\n---\nlisten: 127.0.0.1:2\n", "line 3: a second document"},
	} {
		var got config
		err := got.decode([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: the error has several lines: %v", c.text, err)
		}
	}
	for _, text := range []string{"", "# nothing\n", "---\n"} {
		var c config
		if err := c.decode([]byte(text)); err != nil || !reflect.DeepEqual(c, config{}) {
			t.Errorf("%q: %v, %+v", text, err, c)
		}
	}
}

// What is understood and makes no sense is refused.
func TestConfigChecks(t *testing.T) {
	agent := func(lines string) string { return oneAgent + "    " + strings.ReplaceAll(lines, "\n", "\n    ") + "\n" }
	for _, c := range []struct{ text, want string }{
		{"listen: here\n", "listen: "},
		{"log: {level: loud}\n", `log.level: unknown value "loud"`},
		{"decide: nowhere\n", `decide: unknown value "nowhere"`},
		{"public_url: ringi.example\n", "public_url: "},
		{"public_url: https://u:p@ringi.example\n", "public_url: "},
		{"public_url: https://ringi.example/inbox\n", "public_url: "},
		{"hosts: ['*']\n", "hosts: "},
		{"trusted_proxies: [proxy]\n", "trusted_proxies: "},
		{"trusted_proxies: [0.0.0.0/0]\n", "is everybody"},
		{"trusted_proxies: ['::/0']\n", "is everybody"},
		{"tls: {cert_file: a.pem}\n", "tls: cert_file and key_file belong together"},
		{"worker: {grace: never}\n", "worker.grace: "},
		{agent("zone: moon"), "already defined"},
		{strings.Replace(oneAgent, "local", "moon", 1), `zone: unknown value "moon"`},
		{strings.Replace(oneAgent, "    zone: local\n", "", 1), "zone: unknown value"},
		{strings.Replace(oneAgent, "name: shop", "name: 'a b'", 1), "agents[0] (a b): name: "},
		{oneAgent + strings.ReplaceAll(strings.Replace(oneAgent, "\nagents:\n", "", 1), "shop", "Shop"), "agents[1] (Shop): "},
		{strings.Replace(oneAgent, "kind: demo", "kind: oracle", 1), `model.kind: unknown value "oracle"`},
		{strings.Replace(oneAgent, "kind: demo", "kind: scripted", 1), "model.script: "},
		{strings.Replace(oneAgent, "set: shop", "set: shop, file: x.json", 1), "tools: say set or file"},
		{agent("system: a\nsystem_file: b"), "system and system_file"},
		{agent("floor: {refund: approved}"), "floor: refund: "},
		{agent("four_eyes: some"), `four_eyes: unknown value "some"`},
		{agent("deciders: {people: []}"), "deciders.people: an empty list"},
		{agent("deciders: {people: ['']}"), "deciders.people: one of them is empty"},
		{agent("use_by: never"), "use_by"},
		{agent("remind: 72h"), "remind: it is not before the expiry"},
		{agent("then: managers"), "then: after which time?"},
	} {
		var got config
		err := got.decode([]byte(c.text))
		if err == nil {
			err = got.check()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
	var c config
	good := agent("four_eyes: writes\nfloor: {look_up_order: user-approval, refund: {type: denied, reason: not now}}\nexpiry: never\nremind: 100h\nthen: managers\ngroups: []")
	if err := c.decode([]byte(withProvider + good)); err != nil {
		t.Fatal(err)
	}
	if err := c.check(); err != nil {
		t.Error(err)
	}
	if a := c.Agents[0]; a.Floor["refund"] != (floorConfig{"denied", "not now"}) || a.Floor["look_up_order"].Type != "user-approval" || a.Expiry.orNever() != -1 || a.Groups == nil {
		t.Errorf("read as %+v", a)
	}
}

// S-32: beyond this machine only with TLS or a named proxy, and with logins.
func TestS32_ListenBeyondThisMachine(t *testing.T) {
	for _, c := range []struct {
		text string
		ok   bool
	}{
		{"listen: 127.0.0.1:1", true},
		{"listen: 127.8.0.1:1", true},
		{"listen: '[::1]:1'", true},
		{"listen: localhost:1", true},
		{"listen: 0.0.0.0:1", false},
		{"listen: ':1'", false},
		{"listen: '[::]:1'", false},
		{"listen: 192.168.0.1:1", false},
		{"listen: ringi.example:1", false},
		{"listen: localhost.example:1", false},
		{"listen: 0.0.0.0:1\ndecide: server", false},
		{"listen: 0.0.0.0:1\ntrusted_proxies: [10.0.0.1]", false},
		{"listen: 0.0.0.0:1\ntls: {cert_file: a, key_file: b}", false},
		{"listen: 0.0.0.0:1\ndecide: server\ntrusted_proxies: [10.0.0.1]", true},
		{"listen: 0.0.0.0:1\ndecide: server\ntls: {cert_file: a, key_file: b}", true},
	} {
		var got config
		if err := got.decode([]byte(c.text)); err != nil {
			t.Fatal(err)
		}
		if err := got.check(); (err == nil) != c.ok {
			t.Errorf("%q: %v", c.text, err)
		}
	}
}

// Only the names by which the server is known are served.
func TestHosts(t *testing.T) {
	c := config{PublicURL: "https://Ringi.example:8443", Hosts: []string{"alias.example"}}
	if err := c.check(); err != nil {
		t.Fatal(err)
	}
	if got, want := c.hosts(), []string{"localhost", "ringi.localhost", "127.0.0.1", "::1", "ringi.example", "alias.example"}; !slices.Equal(got, want) {
		t.Errorf("hosts %q, want %q", got, want)
	}
	c.Listen = "10.0.0.1:1"
	if got, want := c.hosts(), []string{"ringi.example", "alias.example"}; !slices.Equal(got, want) {
		t.Errorf("hosts beyond this machine %q, want %q", got, want)
	}
}

// S-42: the working folder's file is never read, and none that others may
// write.
func TestS42_WhereConfigurationComesFrom(t *testing.T) {
	p := newMachine(t)
	work := filepath.Dir(p.write("work/ringi.yaml", "log: {level: debug}\n"))
	t.Chdir(work)
	c, err := p.read()
	if err != nil || c.file != "" || c.Log.Level != "info" {
		t.Errorf("in a folder with ringi.yaml: read %q, level %s, %v", c.file, c.Log.Level, err)
	}
	p.vars["XDG_CONFIG_HOME"] = "." // relative: no folder
	if c, err = p.read(); err != nil || c.file != "" {
		t.Errorf("with a relative configuration folder: read %q, %v", c.file, err)
	}
	if c, err = p.read("--config", "ringi.yaml"); err != nil || c.file != filepath.Join(work, "ringi.yaml") {
		t.Errorf("named by flag: %+v, %v", c, err)
	}
	p.vars["RINGI_CONFIG"] = p.write("other.yaml", "log: {level: warn}\n")
	if c, err = p.read(); err != nil || c.Log.Level != "warn" {
		t.Errorf("named by variable: %+v, %v", c, err)
	}
	p.vars["RINGI_CONFIG"] = filepath.Join(p.dir, "missing.yaml")
	if _, err = p.read(); err == nil {
		t.Error("a named file that is missing is no error")
	}
}

func TestS42_ConfigurationThatOthersMayWrite(t *testing.T) {
	p := newMachine(t)
	path := p.write("config/ringi/ringi.yaml", oneAgent)
	for mode, ok := range map[os.FileMode]bool{0o600: true, 0o644: true, 0o640: true, 0o400: true, 0o620: false, 0o660: false, 0o602: false, 0o646: false, 0o666: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := p.read(); (err == nil) != ok {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, ok := range map[os.FileMode]bool{0o700: true, 0o755: true, 0o770: false, 0o777: false, 0o777 | os.ModeSticky: true} {
		if err := os.Chmod(filepath.Dir(path), mode); err != nil {
			t.Fatal(err)
		}
		if _, err := p.read(); (err == nil) != ok {
			t.Errorf("folder with mode %v: %v", mode, err)
		}
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(path, 4711, 4711); err != nil {
			t.Fatal(err)
		}
		if _, err := p.read(); err == nil || !strings.Contains(err.Error(), "belongs to user 4711") {
			t.Errorf("somebody else's file: %v", err)
		}
	}
}

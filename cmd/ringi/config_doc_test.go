package main

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/config.md")

const configDoc = "../../docs/config.md"

const configHead = `# Configuration of the server

` + "`ringi serve`" + ` reads one YAML file, then the environment, then its flags; the later wins. The file is the
one that ` + "`--config`" + ` or ` + "`RINGI_CONFIG`" + ` names, else ` + "`ringi.yaml`" + ` in the folder ` + "`ringi`" + ` of the user's
configuration folder (` + "`$XDG_CONFIG_HOME`, `~/.config`" + `; the system's own on macOS and Windows), else
in the system's (` + "`/etc/ringi`" + `). It is never looked for in the working folder, and refused where somebody
else may write it. What is unclear in it is an error that names the line: an unknown key, one that is
there twice, one without a value. Paths in it are meant from its own folder.

This page is made from the tables in the code (` + "`go test ./cmd/ringi -run ConfigPage -update`" + `).

` + "```yaml" + `
`

const configExample = `listen: 127.0.0.1:7464
log: {level: info, format: text}
agents:
  - name: support
    system: You are the support agent of a small shop.
    zone: local
    model: {kind: demo}
    tools: {set: shop}
    require_approval: [look_up_order]
    floor:
      refund: {type: user-approval, reason: Money leaves the house.}
    deciders: {teams: [support]}
    limits: {steps: 20}
    expiry: 72h
`

const configFoot = `
## A service of systemd

The server is of type ` + "`notify`" + `: it is up once the store is open and it listens. It keeps its data in
` + "`StateDirectory`" + `, takes its key from a credential, and stops within ` + "`worker.grace`" + `.

` + "```ini" + `
[Service]
Type=notify
ExecStart=/usr/local/bin/ringi serve
DynamicUser=yes
StateDirectory=ringi
StateDirectoryMode=0700
LoadCredential=ringi.key:/etc/ringi/ringi.key
ProtectSystem=strict
ProtectHome=yes
NoNewPrivileges=yes
Restart=on-failure
TimeoutStopSec=45
` + "```" + `

Make the key once, as root: ` + "`openssl rand -base64 32 > /etc/ringi/ringi.key`" + `, and ` + "`chmod 600`" + ` it. Without
a credential the server makes a key of its own beside its configuration, with a new store only.

## A container

The image has one static binary, user 65532 and no shell. Its root may be read-only. Data is in
` + "`/var/lib/ringi`" + `, the key in ` + "`/var/lib/ringi-key`" + ` (two volumes: a copy of one is not a copy of both),
the configuration at ` + "`/etc/ringi/ringi.yaml`" + `. To be reached from beyond the container it must listen
beyond its loopback address, and so needs TLS or a trusted proxy, and ` + "`decide: server`" + `.
`

const loginExample = "```yaml\n" + loginYAML + "```\n\n"

const loginYAML = `public_url: https://ringi.example.org
login:
  oidc:
    issuer: https://id.example.org
    client_id: ringi
    client_secret_file: oidc.secret
    groups:
      refunds: {role: approver, team: support}
      back-office: {role: [user, approver], team: [support, billing]}
      platform: {role: admin}
`

// configPage is docs/config.md.
func configPage() string {
	var b strings.Builder
	b.WriteString(configHead + configExample + "```\n\n## The server\n\n")
	b.WriteString("| key | variable | flag | default | what |\n|---|---|---|---|---|\n")
	for _, s := range settings {
		fmt.Fprintf(&b, "| `%s` | `%s` | `--%s` | %s | %s |\n", s.key, s.env(), s.flag, s.def, s.what)
	}
	b.WriteString("\n## An agent\n\nEach entry of `agents`; in the file alone.\n\n| key | default | what |\n|---|---|---|\n")
	for _, k := range agentKeys {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.key, k.def, k.what)
	}
	b.WriteString("\n## Logging in\n\nIn the file alone; what it means is in access.md.\n\n" + loginExample + "| key | default | what |\n|---|---|---|\n")
	for _, k := range loginKeys {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.key, k.def, k.what)
	}
	b.WriteString("\n## A webhook\n\nEach entry of `webhooks`; in the file alone. docs/webhooks.md says what comes.\n\n| key | default | what |\n|---|---|---|\n")
	for _, k := range webhookKeys {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.key, k.def, k.what)
	}
	b.WriteString(configFoot)
	return b.String()
}

func TestConfigPage(t *testing.T) {
	want := configPage()
	if *update {
		if err := os.WriteFile(configDoc, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(configDoc)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is stale: go test ./cmd/ringi -run ConfigPage -update", configDoc)
	}
}

// The tables name every key of the file, and no other.
func TestConfigTablesAreWhole(t *testing.T) {
	var server, agents, logins, webhooks []string
	for _, key := range pathsOf(reflect.TypeFor[config](), "") {
		if below, ok := strings.CutPrefix(key, "agents."); ok {
			agents = append(agents, below)
		} else if below, ok := strings.CutPrefix(key, "webhooks."); ok {
			webhooks = append(webhooks, below)
		} else if strings.HasPrefix(key, "login.") {
			logins = append(logins, key)
		} else if key != "agents" && key != "webhooks" {
			server = append(server, key)
		}
	}
	var inTable []string
	for _, s := range settings {
		inTable = append(inTable, s.key)
	}
	if !slices.Equal(server, inTable) {
		t.Errorf("the file has %q, the table %q", server, inTable)
	}
	inTable = nil
	for _, k := range loginKeys {
		inTable = append(inTable, k.key)
	}
	if !slices.Equal(logins, inTable) {
		t.Errorf("login has %q, the table %q", logins, inTable)
	}
	inTable = nil
	for _, k := range webhookKeys {
		inTable = append(inTable, k.key)
	}
	if !slices.Equal(webhooks, inTable) {
		t.Errorf("a webhook has %q, the table %q", webhooks, inTable)
	}
	inTable = nil
	for _, k := range agentKeys {
		inTable = append(inTable, k.key)
		for name := range toolSets {
			if k.key == "tools.set" && !strings.Contains(k.what, "`"+name+"`") {
				t.Errorf("the row of tools.set does not name %q", name)
			}
		}
	}
	if !slices.Equal(agents, inTable) {
		t.Errorf("an agent has %q, the table %q", agents, inTable)
	}
}

// The page's example is a configuration that opens.
func TestConfigExample(t *testing.T) {
	p := newMachine(t)
	p.write("config/ringi/ringi.yaml", configExample)
	s := p.openedServer("--data", p.dir+"/data")
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
)

const externalTools = `[{"name":"wire","effect":"non_idempotent_write","data_class":"editor_content","input_schema":{"type":"object"}}]`

// An agent whose loop is elsewhere has tools that it runs, and perhaps no model.
func TestAgentWhoseLoopIsElsewhere(t *testing.T) {
	p := newMachine(t)
	file := p.write("external.json", externalTools)
	for _, c := range []struct {
		change func(*agentConfig)
		want   string
	}{
		{func(a *agentConfig) {}, ""},
		{func(a *agentConfig) { a.Tools.External, a.Tools.Foreign = "", true }, ""},
		{func(a *agentConfig) { a.Tools.Foreign = true }, ""},
		{func(a *agentConfig) { a.Tools.External = "" }, "needs tools.external or tools.foreign"},
		{func(a *agentConfig) { a.Tools.Set = "shop" }, "runs no tools here"},
		{func(a *agentConfig) { a.Model.Script = "x" }, "without a model"},
		{func(a *agentConfig) { a.Tools.Foreign, a.Zone = true, "external_eu" }, "secret_adjacent"},
		{func(a *agentConfig) { a.Tools.External = p.write("no.json", `[{"name":"x","input_schema":{}}]`) }, "effect is undeclared"},
		{func(a *agentConfig) { a.Tools.External = p.write("no.json", `[]`) }, "it holds none"},
		{func(a *agentConfig) {
			a.Zone, a.Tools.External = "external_global", p.write("no.json", strings.Replace(externalTools, "editor_content", "secret_adjacent", 1))
		}, "trust_zone"},
		{func(a *agentConfig) { a.Model.Kind, a.Tools.Set, a.Zone = modelDemo, "shop", "local" }, ""},
	} {
		conf := &config{Agents: []agentConfig{{Name: "shop", Zone: "local"}}}
		a := &conf.Agents[0]
		a.Model.Kind, a.Tools.External = modelNone, file
		c.change(a)
		err := conf.check()
		if err == nil {
			var s *server
			if s, err = p.env().openServer(t.Context(), conf); err == nil {
				_, err = s.engine.Agent("shop")
				if cerr := s.close(); cerr != nil {
					t.Error(cerr)
				}
			}
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", a.Tools, err, c.want)
		}
	}
	if err := os.Chmod(filepath.Clean(file), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := addExternal(ringi.NewStrictRegistry(), file); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
		t.Errorf("S-42: a file that others may write: %v", err)
	}
}

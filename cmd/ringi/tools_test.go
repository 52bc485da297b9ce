package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// stall is a tools file with one tool behind each gate.
const stall = `[
 {"name":"read_menu","effect":"read_only","data_class":"public_content"},
 {"name":"read_till","effect":"read_only","data_class":"secret_adjacent"},
 {"name":"close_stall","effect":"idempotent_write","admin_only":true,"data_class":"public_content"},
 {"name":"order_flour","effect":"non_idempotent_write","group":"stock","data_class":"editor_content","timeout":"90s"},
 {"name":"guess_weather","data_class":"public_content","timeout":1000},
 {"name":"ask_baker","effect":"read_only","data_class":"public_content","external":true},
 {"name":"take_order","effect":"read_only","data_class":"public_content",
  "input_schema":{"type":"object","properties":{"name":{"type":"string"},"pin":{"type":"string"}}},
  "input_required":{"type":"object","properties":{"pin":{"type":"string"}},"additionalProperties":false}}
]`

func toolsFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tools.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// showTools runs ringi tools and reads its JSON.
func showTools(t *testing.T, args ...string) toolsReport {
	t.Helper()
	e, out, errs := testEnv()
	if code := execute(t.Context(), e, append([]string{"tools", "--json"}, args...)); code != exitDone {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var r toolsReport
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("answer is no JSON: %v\n%s", err, out)
	}
	return r
}

func (r toolsReport) offeredNames() string {
	var names []string
	for _, t := range r.Offered {
		names = append(names, t.Name)
	}
	return strings.Join(names, " ")
}

func (r toolsReport) refusals() string {
	var all []string
	for _, f := range r.Refused {
		if f.Detail == "" {
			all = append(all, f.Tool+" without a sentence")
		}
		all = append(all, f.Tool+":"+string(f.Reason))
	}
	return strings.Join(all, " ")
}

func TestToolsOffer(t *testing.T) {
	path := toolsFile(t, stall)
	tests := []struct {
		name             string
		args             []string
		offered, refused string
	}{
		{"nobody in particular", nil,
			"read_menu read_till order_flour guess_weather ask_baker take_order", "close_stall:requires_admin"},
		{"an admin", []string{"--admin"},
			"read_menu read_till close_stall order_flour guess_weather ask_baker take_order", ""},
		{"a group that is another", []string{"--admin", "--groups", "till,menu"},
			"read_menu read_till close_stall guess_weather ask_baker take_order", "order_flour:group"},
		{"its group", []string{"--admin", "--groups", "till,stock"},
			"read_menu read_till close_stall order_flour guess_weather ask_baker take_order", ""},
		{"no group at all", []string{"--admin", "--groups", ""},
			"read_menu read_till close_stall guess_weather ask_baker take_order", "order_flour:group"},
		{"a zone far away", []string{"--zone", "external_global"},
			"read_menu order_flour guess_weather ask_baker take_order", "read_till:trust_zone close_stall:requires_admin"},
		{"nobody to ask", []string{"--unattended", "--admin"},
			"read_menu read_till guess_weather", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := showTools(t, append([]string{"--tools", path}, tt.args...)...)
			if r.offeredNames() != tt.offered || r.refusals() != tt.refused {
				t.Errorf("offered %q, refused %q\nwant    %q, refused %q", r.offeredNames(), r.refusals(), tt.offered, tt.refused)
			}
			if !slices.Equal(r.Undeclared, []string{"guess_weather"}) {
				t.Errorf("undeclared: %q", r.Undeclared)
			}
		})
	}
}

func TestToolsUnattended(t *testing.T) {
	r := showTools(t, "--tools", toolsFile(t, stall))
	want := map[string]ringi.UnattendedAnswer{
		"read_menu": ringi.UnattendedRuns, "read_till": ringi.UnattendedRuns, "close_stall": ringi.UnattendedAsks,
		"order_flour": ringi.UnattendedAsks, "guess_weather": ringi.UnattendedRuns, "ask_baker": ringi.UnattendedAsks,
		"take_order": ringi.UnattendedInput,
	}
	if len(r.Unattended) != len(want) {
		t.Fatalf("%d answers, want %d", len(r.Unattended), len(want))
	}
	for _, w := range r.Unattended {
		if w.Answer != want[w.Tool] || w.Reason == "" {
			t.Errorf("%s: %s (%q), want %s with a reason", w.Tool, w.Answer, w.Reason, want[w.Tool])
		}
	}
}

func TestToolsForPeople(t *testing.T) {
	e, out, errs := testEnv()
	if code := execute(t.Context(), e, []string{"tools", "--tools", toolsFile(t, stall)}); code != exitDone {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, want := range []string{"Offered (6)", "Refused (1)", "requires_admin", "For a caller without an approval step", "Effect undeclared", "guess_weather"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("answer lacks %q:\n%s", want, out)
		}
	}
}

func TestToolsRefuses(t *testing.T) {
	tests := map[string]struct {
		args []string
		file string
		code int
		says string
	}{
		"no file":                  {nil, "", exitUsage, "--tools"},
		"an unknown zone":          {[]string{"--zone", "the_moon"}, stall, exitUsage, "the_moon"},
		"no JSON":                  {nil, "tools", exitFailed, "tools.json"},
		"no tools":                 {nil, "[]", exitFailed, "holds none"},
		"an unknown key":           {nil, `[{"name":"t","efect":"read_only"}]`, exitFailed, "efect"},
		"a key in another case":    {nil, `[{"name":"t","Effect":"read_only"}]`, exitFailed, "Effect"},
		"a key twice":              {nil, `[{"name":"t","effect":"read_only","effect":"idempotent_write"}]`, exitFailed, "duplicate"},
		"an unknown effect":        {nil, `[{"name":"t","effect":"harmless"}]`, exitFailed, "harmless"},
		"a name in another case":   {nil, `[{"name":"t"},{"name":"T"}]`, exitFailed, "letter case"},
		"a time that is none":      {nil, `[{"name":"t","timeout":"soon"}]`, exitFailed, "soon"},
		"a schema that is no form": {nil, `[{"name":"t","input_schema":{"type":"string"}}]`, exitFailed, "object"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e, out, errs := testEnv()
			args := append([]string{"tools"}, tt.args...)
			if tt.file != "" {
				args = append(args, "--tools", toolsFile(t, tt.file))
			}
			if code := execute(t.Context(), e, args); code != tt.code || !strings.Contains(errs.String(), tt.says) || out.Len() > 0 {
				t.Fatalf("exit %d, %q, want %d with words of %q", code, errs, tt.code, tt.says)
			}
		})
	}
}

func TestReadToolsTimes(t *testing.T) {
	tools, err := readTools(toolsFile(t, stall))
	if err != nil {
		t.Fatal(err)
	}
	if tools[3].Timeout != 90*time.Second || tools[4].Timeout != time.Microsecond {
		t.Fatalf("timeouts are %s and %s, want 90s and 1µs", tools[3].Timeout, tools[4].Timeout)
	}
}

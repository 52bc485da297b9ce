package evidence

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const root = "../.."

// sources are the closed lists of ids: what a source numbers, and nothing else.
// The field's numbers have gaps.
var sources = []struct{ name, ids string }{
	{"promises", "PR-1–PR-7"},
	{"field cases", `F01 F03 F05 F06 F08 F10 F11 F13 F15 F16 F18 F20 F21 F23 F25 F26 F28 F30 F31 F33 F35 F36 F38 F40 F41 F43 F45 F46
		F48 F50 F51 F53 F55 F56 F58 F60 F61 F63 F65 F66 F68 F70 F71 F73 F75 F76 F78 F80 F81 F83 F85 F86 F88 F90 F91 F93 F95 F96 F98
		F100 F101 F103 F105 F106 F108 F110 F111 F113 F115 F116 F118 F120 F121 F123 F125 F126 F128 F130 F131 F133 F135 F136 F138
		F140 F141 F143 F145 F146 F148 F150 F151 F153 F155 F156 F158 F160 F161 F163 F165 F166 F168 F170 F171 F173 F175`},
	{"annex 1", "P01 P03 P05 P07 P09 P11 P13 P15 P17 P19 P21 P23 P25 P27 P29 P31 P33 P35 P37 P39 P-NAMES P-IDS P-ANSWERS"},
	{"annex 2", "GO-1–GO-10"},
	{"annex 3", "CON-1–CON-10"},
	{"AI SDK", "B1–B116"},
	{"AI SDK, beyond its tests", "GAP-1–GAP-13"},
	{"threat review", "S-01–S-47"},
	{"first document", "TA-1–TA-42"},
	{"second document", "ADR-1–ADR-21"},
	{"wishes", "W1–W29"},
	{"engine", "E-1–E-23"},
}

func document(t *testing.T) []row {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "evidence.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := readRows(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// Every number of every source stands in the document exactly once, and no
// other does.
func TestEveryIDIsThereOnce(t *testing.T) {
	at := map[string]int{}
	for _, r := range document(t) {
		for _, id := range r.ids {
			if line, ok := at[id]; ok {
				t.Errorf("line %d: %s is in line %d already", r.line, id, line)
			}
			at[id] = r.line
		}
	}
	for _, s := range sources {
		for _, id := range expected(t, s.ids) {
			if _, ok := at[id]; !ok {
				t.Errorf("%s: %s is missing", s.name, id)
			}
			delete(at, id)
		}
	}
	for id, line := range at {
		t.Errorf("line %d: %s is in no source", line, id)
	}
}

func expected(t *testing.T, list string) []string {
	t.Helper()
	var ids []string
	for _, f := range strings.Fields(list) {
		more, err := expand(f)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, more...)
	}
	return ids
}

// Every line says what holds and where it was learnt, and has a test that runs
// or a reason why none does.
func TestEveryLineIsShown(t *testing.T) {
	x, err := readIndex(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	shown, partly, not := map[string]int{}, map[string]int{}, map[string]int{}
	used := map[string]bool{}
	for _, r := range document(t) {
		for _, fault := range faults(r, x) {
			t.Errorf("line %d, %s: %s", r.line, r.ids[0], fault)
		}
		kind := strings.TrimRight(r.ids[0], "0123456789")
		switch {
		case len(r.tests) == 0:
			not[kind] += len(r.ids)
		case r.notHere != "":
			partly[kind] += len(r.ids)
		default:
			shown[kind] += len(r.ids)
		}
		for _, name := range r.tests {
			used[name] = true
		}
	}
	for _, m := range []struct {
		what  string
		count map[string]int
	}{{"shown", shown}, {"shown in part", partly}, {"not here", not}} {
		t.Logf("%s: %v, %d in all", m.what, m.count, sum(m.count))
	}
	t.Logf("%d tests are named", len(used))
}

func sum(m map[string]int) int {
	n := 0
	for _, v := range m {
		n += v
	}
	return n
}

// fewWords is the least that a sentence has.
const fewWords = 4

func faults(r row, x *index) []string {
	var list []string
	if len(strings.Fields(r.holds)) < fewWords {
		list = append(list, fmt.Sprintf("does not say what must hold: %q", r.holds))
	}
	if r.source == "" {
		list = append(list, "names no source")
	}
	if len(r.tests) == 0 && r.notHere == "" {
		list = append(list, "has neither a test nor a reason")
	}
	if r.notHere != "" && len(strings.Fields(r.notHere)) < fewWords {
		list = append(list, fmt.Sprintf("has no reason: %q", r.notHere))
	}
	for i, name := range r.tests {
		if err := x.find(name); err != nil {
			list = append(list, err.Error())
		}
		if slices.Contains(r.tests[:i], name) {
			list = append(list, name+" is named twice")
		}
	}
	return list
}

// A line that says "not here" and names no test must not be behind the tests:
// one that carries its number and runs would show it. Where a line names some
// of its tests and not all of them, that is told and no fault.
func TestNotHereIsNotStale(t *testing.T) {
	x, err := readIndex(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]row{}
	for _, r := range document(t) {
		for _, id := range r.ids {
			lines[id] = r
		}
	}
	numbered := 0
	for name, decls := range x.tests {
		if !slices.ContainsFunc(decls, func(d test) bool { return d.shows(nil) == nil }) {
			continue // it skips itself
		}
		for _, id := range idsOf(name) {
			r, ok := lines[id]
			switch {
			case !ok:
				t.Errorf("%s carries the number %s, which is in no line", name, id)
			case len(r.tests) == 0:
				t.Errorf("line %d says that nothing shows %s, but %s carries its number", r.line, id, name)
			case !slices.ContainsFunc(r.tests, func(s string) bool { return s == name || strings.HasPrefix(s, name+"/") }):
				t.Logf("line %d: %s does not name %s", r.line, id, name)
			}
			numbered++
		}
	}
	if numbered < 200 {
		t.Errorf("%d tests carry a number: the check looks at nothing", numbered)
	}
}

// The checks find what they are there for.
func TestPlantedFaults(t *testing.T) {
	files := fstest.MapFS{
		"a/a_test.go": {Data: []byte(`package a
			import ("testing"; "example/storetest")
			func TestGood(t *testing.T) { t.Run("one two", func(t *testing.T) {}); t.Run("S03_"+name, nil) }
			func TestSkipped(t *testing.T) { t.Skip("later"); t.Fatal() }
			func TestSometimes(t *testing.T) { if testing.Short() { t.Skip("long") } }
			func TestPart(t *testing.T) { t.Run("gone", func(t *testing.T) { t.Skip() }) }
			func TestKit(t *testing.T) { storetest.Exercise(t) }
			func ExampleDead() { }
			func ExampleLive() {
				// Output: x
			}
			func Testify() {}
			func (x T) TestMethod(t *testing.T) {}`)},
		"storetest/x.go":                          {Data: []byte(`package storetest; var names = []string{"Races", "TwoDeciders"}`)},
		"b/testdata/b_test.go":                    {Data: []byte(`this is no Go`)},
		".git/c_test.go":                          {Data: []byte(`this is no Go`)},
		"cmd/ringi/testdata/script/decide.txtar":  {Data: []byte(``)},
		"cmd/ringi/script_test.go":                {Data: []byte(`package main; import "testing"; func TestScripts(t *testing.T) {}`)},
		"cmd/ringi/testdata/script/deep/no.txtar": {Data: []byte(``)},
	}
	x, err := readIndex(files)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"TestGood": "", "TestGood/one_two": "", "TestGood/one two": "no subtest", "TestGood/S03_SetRow": "", "TestGood/three": "no subtest", "TestGood/S": "no subtest",
		"TestSkipped": "skips itself", "TestSometimes": "", "TestPart": "", "TestPart/gone": "skips itself",
		"TestKit/Races/TwoDeciders": "", "TestKit/Races/Three": "no subtest", "TestGood/Races": "", // in one file
		"ExampleDead": "not run", "ExampleLive": "", "Testify": "no test", "TestMethod": "no test", "TestMissing": "no test",
		"TestScripts": "", "TestScripts/decide": "", "TestScripts/no": "no script",
	} {
		err := x.find(name)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	for line, want := range map[string]string{
		"| F1 | a call is denied twice | x#1 | `TestGood` |":                             "",
		"| F1 | a call is denied \\| twice | x#1 | not here: it comes with the server |": "",
		"| F1 | no | x#1 | `TestGood` |":                                                 "does not say",
		"| F1 | a call is denied twice | | `TestGood` |":                                 "names no source",
		"| F1 | a call is denied twice | x#1 | soon |":                                   "neither a test nor a reason",
		"| F1 | a call is denied twice | x#1 | not here: later |":                        "has no reason",
		"| F1 | a call is denied twice | x#1 | `TestGood`, `TestGood` |":                 "named twice",
		"| F1 | a call is denied twice | x#1 | `TestSkipped` |":                          "skips itself",
		"| F1 | a call is denied twice | x#1 |":                                          "cells",
		"|  | a call is denied twice | x#1 | `TestGood` |":                               "no id",
		"| F9–F3 | a call is denied twice | x#1 | `TestGood` |":                          "no range",
		"| F1 | a call is denied twice | x#1 | `TestGood`":                               "does not end with a bar",
	} {
		rows, err := readRows(header + "\n|---|---|---|---|\n" + line + "\n\nnot a row")
		got := fmt.Sprint(err)
		if err == nil {
			got = strings.Join(faults(rows[0], x), "; ")
		}
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	if got := strings.Join(idsOf("TestB18_B19_DenialsCount"), " ") + " " + strings.Join(idsOf("TestF01_X"), " ") + " " + strings.Join(idsOf("TestS03_Y"), " "); got != "B18 B19 F01 S-03" {
		t.Errorf("ids %s", got)
	}
}

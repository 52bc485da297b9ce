package schema

import "testing"

func BenchmarkValidate(b *testing.B) {
	for _, t := range []struct{ name, schema, input string }{
		{"fast2", `{"type":"object","properties":{"id":{"type":"string"},"n":{"type":"integer"}},"required":["id","n"],"additionalProperties":false}`, `{"id":"A-1","n":3}`},
		{"fastLimits", refund, `{"order":"A-1","amount":3}`},
		{"fullAnyOf", `{"type":"object","properties":{"id":{"type":"string"},"n":{"anyOf":[{"type":"integer"},{"type":"null"}]}},"required":["id","n"],"additionalProperties":false}`, `{"id":"A-1","n":3}`},
	} {
		b.Run(t.name, func(b *testing.B) {
			s := mustCompile(b, t.schema)
			v := mustParse(b, t.input)
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Validate(v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("refused", func(b *testing.B) {
		s := mustCompile(b, refund)
		v := mustParse(b, `{"order":"A-1","amount":3000,"x":1}`)
		b.ReportAllocs()
		for b.Loop() {
			if s.Validate(v) == nil {
				b.Fatal("taken")
			}
		}
	})
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		mustCompile(b, refund)
	}
}

package webhook

import (
	"fmt"
	"path/filepath"
	"testing"
)

// What a second costs in which nothing happens: 20 endpoints, 5,000 records and
// as many messages that were delivered.
func BenchmarkNothingNew(b *testing.B) {
	book := newBook()
	o := Options{DB: openDB(b, filepath.Join(b.TempDir(), "webhook.db")), Log: book, Runs: book}
	for n := range MaxEndpoints {
		o.Endpoints = append(o.Endpoints, Endpoint{Name: fmt.Sprint("e", n), URL: "https://hooks.example.org/", Secrets: secrets(b, NewSecret())})
	}
	box, err := Open(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	if err := box.enrol(b.Context()); err != nil {
		b.Fatal(err)
	}
	for n := range 250 {
		book.finish(fmt.Sprint("run_", n))
	}
	if err := box.read(b.Context()); err != nil {
		b.Fatal(err)
	}
	if _, err := o.DB.Exec(`UPDATE webhook_deliveries SET state = 'delivered', ended_at = 1`); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for b.Loop() {
		if err := box.step(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSign(b *testing.B) {
	s, body := secrets(b, NewSecret()), make([]byte, 400)
	for b.Loop() {
		s[0].sum("msg_1", "1778155200", body)
	}
}

package audit

import (
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

var benchTime = time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)

const benchDigest = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"

func benchStarted() *ringi.ToolStarted {
	return &ringi.ToolStarted{
		Call: "call_01jz3v8w5k2m4n6p8q0r2s4t6v_1_0", Tool: "send_mail", Effect: ringi.NonIdempotentWrite, Attempt: 1,
		Input: benchDigest, Request: "req_01jz3v8w5k2m4n6p8q0r2s4t6v_1_0",
	}
}

func benchResponded() *ringi.ModelResponded {
	return &ringi.ModelResponded{
		Step: 1, Text: "I will send the mail now.", Finish: ringi.FinishCalls,
		Usage: ringi.Usage{InputTokens: 812, OutputTokens: 64}, OfferDigest: benchDigest, PromptDigest: benchDigest,
		Calls: []ringi.JudgedCall{{
			ID: "call_01jz3v8w5k2m4n6p8q0r2s4t6v_1_0", ModelID: "toolu_01A", Tool: "send_mail",
			Input: `{"to":"anna@example.org","subject":"Hello"}`, ToolDigest: benchDigest,
			Verdict: ringi.Verdict{Status: ringi.UserApproval, Source: ringi.SourceEffect}, Asks: ringi.KindApproval,
		}},
	}
}

// benchBodies is the life of a run with one approval: six records.
func benchBodies() []ringi.EventBody {
	by := ringi.Principal{ID: "os:1000@host", Name: "Anna", Kind: ringi.Person, Auth: "os"}
	return []ringi.EventBody{
		&ringi.RunStarted{
			Agent: "mailer", Thread: "thr_01jz3v8w5k2m4n6p8q0r2s4t6v", By: by, Initiators: []string{by.ID},
			AllGroups: true, AllTools: true, Limits: ringi.DefaultLimits(),
			Judges:   ringi.Judges{Version: "1", Func: true, Config: benchDigest},
			Messages: []ringi.Message{{Role: ringi.RoleUser, Text: "Write to Anna.", Author: by.ID}},
		},
		benchResponded(),
		&ringi.ApprovalRequested{
			Request: "req_01jz3v8w5k2m4n6p8q0r2s4t6v_1_0", Call: "call_01jz3v8w5k2m4n6p8q0r2s4t6v_1_0", Ask: ringi.KindApproval,
			Digest: benchDigest, Nonce: benchDigest, ToolDigest: benchDigest, Initiators: []string{by.ID},
			Verdict: ringi.Verdict{Status: ringi.UserApproval, Source: ringi.SourceEffect},
			Answers: []ringi.Answer{ringi.Approve, ringi.Deny}, CreatedAt: benchTime, ExpiresAt: benchTime.Add(72 * time.Hour), UseBy: 24 * time.Hour,
		},
		&ringi.ApprovalDecided{
			Request: "req_01jz3v8w5k2m4n6p8q0r2s4t6v_1_0", Answer: ringi.Approve, By: by, Channel: "inbox",
			Digest: benchDigest, Bytes: benchDigest, UseBy: benchTime.Add(24 * time.Hour), At: benchTime,
		},
		benchStarted(),
		&ringi.ToolFinished{Results: []ringi.FinishedCall{{
			Call: "call_01jz3v8w5k2m4n6p8q0r2s4t6v_1_0", Outcome: ringi.OutcomeOK, Output: `{"sent":true}`, Duration: 1234567,
		}}},
	}
}

func BenchmarkAppendToolStarted(b *testing.B) { benchAppend(b, benchStarted()) }

func BenchmarkAppendModelResponded(b *testing.B) { benchAppend(b, benchResponded()) }

func BenchmarkAppendRun(b *testing.B) { benchAppend(b, benchBodies()...) }

func benchAppend(b *testing.B, bodies ...ringi.EventBody) {
	chain := Genesis("store", "default", "run")
	b.ReportAllocs()
	for b.Loop() {
		records, _, err := chain.Append(nil, benchTime, 1, bodies...)
		if err != nil || len(records) != len(bodies) {
			b.Fatal(err)
		}
	}
}

func BenchmarkEvents(b *testing.B) {
	records, chain := benchRun(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Events("store", "default", "run", records, chain.Head, chain.Seq); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	records, chain := benchRun(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := Verify("store", "default", "run", records, chain.Head, chain.Seq); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkJSONLibrary is what reading the six payloads costs where they are
// not in our own spelling.
func BenchmarkJSONLibrary(b *testing.B) {
	records, _ := benchRun(b)
	for i := range records {
		records[i].Payload = append([]byte(" "), records[i].Payload...)
	}
	c := newWriter()
	b.ReportAllocs()
	for b.Loop() {
		for _, r := range records {
			if _, err := decodeBody(c, r.Kind, r.Payload); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func benchRun(b *testing.B) ([]ringi.Record, Chain) {
	b.Helper()
	records, chain, err := Genesis("store", "default", "run").Append(nil, benchTime, 1, benchBodies()...)
	if err != nil {
		b.Fatal(err)
	}
	return records, chain
}

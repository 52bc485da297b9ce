package audit

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

var update = flag.Bool("update", false, "write the golden files")

// count is a source of bytes that are not random.
func count(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(i)
	}
	return len(b), nil
}

// TestGolden freezes the format: header, payload and hash of each kind, with
// every field set.
func TestGolden(t *testing.T) {
	samples := map[string]ringi.EventBody{
		// What a model, a tool or a person may send.
		"spelling": &ringi.ToolFinished{Results: []ringi.FinishedCall{{
			Call: "call_1", Outcome: ringi.OutcomeOK, Output: "\xff\x00not text",
			Error: "quote \" slash \\ / line\nreturn\r tab\t bell\a nul\x00 del\x7f sep\u2028 é 😀 <&>", Duration: -1,
		}}},
		"empty": &ringi.ToolFinished{},
	}
	for _, body := range bodies() {
		full().fill(reflect.ValueOf(body).Elem(), "")
		samples[string(body.Kind())] = body
	}
	for name, body := range samples {
		t.Run(name, func(t *testing.T) {
			genesis := Genesis("sto_1", "default", "run_1")
			records, chain, err := genesis.append(making{random: count}, nil, benchTime, 3, []ringi.EventBody{body})
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Appendf(nil, "%s\n%s\n\"%x\"\n", records[0].Head, records[0].Payload, chain.Head)
			path := filepath.Join("testdata", "golden", name+".json")
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("written\n%s\nfrozen\n%s", got, want)
			}
			checkGolden(t, want, body, chain)
		})
	}
}

// checkGolden reads a frozen record back.
func checkGolden(t *testing.T, golden []byte, body ringi.EventBody, chain Chain) {
	t.Helper()
	lines := bytes.Split(golden, []byte("\n"))
	salt := make([]byte, saltSize)
	count(salt)
	r := ringi.Record{Seq: 1, Kind: body.Kind(), Head: lines[0], Payload: lines[1], Salt: salt, Hash: chain.Head}
	events, err := Events("sto_1", "default", "run_1", []ringi.Record{r}, chain.Head, 1)
	if err != nil {
		t.Fatal(err)
	}
	e := events[0]
	if e.Seq != 1 || e.Kind != body.Kind() || !e.At.Equal(benchTime) || e.Epoch != 3 || e.RunID != "run_1" {
		t.Errorf("event %+v", e)
	}
	if got, want := settled(reflect.ValueOf(e.Body).Elem().Interface()), settled(reflect.ValueOf(body).Elem().Interface()); !reflect.DeepEqual(got, want) {
		t.Errorf("body %+v, want %+v", got, want)
	}
}

func TestGenesisBindsItsParts(t *testing.T) {
	const frozen = "0cc1c75681b5070535693582c1d7ee0e66d8bc2be7855415cdd381838e78b62b"
	if got := fmt.Sprintf("%x", Genesis("sto_1", "default", "run_1").Head); got != frozen {
		t.Errorf("genesis %s, frozen %s", got, frozen)
	}
	seen := map[[32]byte][]string{}
	for _, parts := range [][]string{
		{"", "", ""}, {"a", "", ""}, {"", "a", ""}, {"", "", "a"}, {"a", "b", "c"}, {"ab", "", "c"}, {"", "ab", "c"}, {"a", "bc", ""},
		{"abc", "", ""}, {"a\x00", "b", "c"}, {"a", "\x00b", "c"}, {"a", "b", "\x00c"}, {"c", "b", "a"},
		{"a\x00\x00\x00\x00\x00\x00\x00\x01b", "", "c"},
	} {
		head := Genesis(parts[0], parts[1], parts[2]).Head
		if other, ok := seen[head]; ok {
			t.Errorf("%q and %q begin alike", parts, other)
		}
		seen[head] = parts
	}
}

// TestAppend holds what a record is made of.
func TestAppend(t *testing.T) {
	genesis := Genesis("s", "default", "r")
	at := time.Date(2026, 1, 2, 4, 4, 5, 678901999, time.FixedZone("", 3600))
	first := []ringi.Record{{Seq: -7}}
	records, chain, err := genesis.Append(first, at, 5, benchBodies()...)
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != 7 || records[0].Seq != -7 || chain.Seq != 6 || chain.Head != records[6].Hash {
		t.Fatalf("%d records, chain at %d", len(records), chain.Seq)
	}
	prev := genesis.Head
	for i, r := range records[1:] {
		commitment := sha256.Sum256(slices.Concat([]byte("ringi-commitment-v1\x00"), r.Salt, r.Payload))
		if want := `,"commitment":"` + base64url.EncodeToString(commitment[:]) + `"}`; !bytes.HasSuffix(r.Head, []byte(want)) {
			t.Errorf("record %d: head %s does not end in %s", i+1, r.Head, want)
		}
		if r.Hash != sha256.Sum256(append(prev[:], r.Head...)) {
			t.Errorf("record %d: hash is not over the hash before it and its head", i+1)
		}
		prev = r.Hash
		e, err := Decode(r)
		if err != nil || e.Seq != int64(i+1) || e.At != time.UnixMicro(at.UnixMicro()).UTC() || e.Epoch != 5 || e.Kind != benchBodies()[i].Kind() {
			t.Errorf("record %d: %+v, %v", i+1, e, err)
		}
		if !reflect.DeepEqual(e.Body, benchBodies()[i]) {
			t.Errorf("record %d: body %+v", i+1, e.Body)
		}
	}

	// One call or six: the same chain goes on.
	var one []ringi.Record
	next := genesis
	for _, body := range benchBodies() {
		if one, next, err = next.Append(one, at, 5, body); err != nil {
			t.Fatal(err)
		}
	}
	if err := Verify("s", "default", "r", one, next.Head, next.Seq); err != nil {
		t.Error(err)
	}

	none, same, err := next.Append(one, at, 5)
	if err != nil || len(none) != len(one) || same != next {
		t.Errorf("append of nothing: %d records, %v, %v", len(none), same, err)
	}
}

// TestAppendSharesNothing holds that nobody who appends to a record's bytes,
// and no later call, changes another record.
func TestAppendSharesNothing(t *testing.T) {
	records, chain := mustAppend(t, Genesis("s", "default", "r"), benchBodies()...)
	for _, r := range records {
		_ = append(r.Head, "overwritten"...)
		_ = append(r.Payload, "overwritten"...)
		_ = append(r.Salt, "overwritten"...)
	}
	mustAppend(t, chain, benchBodies()...)
	if err := Verify("s", "default", "r", records, chain.Head, chain.Seq); err != nil {
		t.Error(err)
	}
	events, err := Events("s", "default", "r", records, chain.Head, chain.Seq)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		clear(r.Head)
		clear(r.Payload)
	}
	for i, e := range events {
		if !reflect.DeepEqual(e.Body, benchBodies()[i]) || e.Kind != benchBodies()[i].Kind() {
			t.Errorf("event %d changed with the record's bytes: %+v", i+1, e)
		}
	}
}

func TestAppendRefuses(t *testing.T) {
	chain := Genesis("s", "default", "r")
	good := benchStarted()
	late := benchTime.AddDate(9000, 0, 0)
	for name, tt := range map[string]struct {
		at   time.Time
		body ringi.EventBody
		want string
	}{
		"nil":             {benchTime, nil, "not an event of the log"},
		"nil pointer":     {benchTime, (*ringi.ToolStarted)(nil), "nil"},
		"delta":           {benchTime, &ringi.Delta{DeltaKind: ringi.EventTextDelta}, "not an event of the log"},
		"waiting":         {benchTime, &ringi.RunWaiting{}, "not an event of the log"},
		"step":            {benchTime, &ringi.StepStarted{}, "not an event of the log"},
		"late":            {late, good, "year"},
		"early":           {benchTime.AddDate(-3000, 0, 0), good, "year"},
		"late in body":    {benchTime, &ringi.ApprovalDecided{Request: "r", At: benchTime, UseBy: late}, "use_by"},
		"late inside":     {benchTime, &ringi.OutcomeUnknown{Request: ringi.ApprovalRequested{ExpiresAt: late}}, "expires_at"},
		"control in id":   {benchTime, &ringi.ToolStarted{Call: "a\nb"}, "call: control character"},
		"C1 in id":        {benchTime, &ringi.RunErased{By: ringi.Principal{ID: "a\u0085b"}}, "by: control character"},
		"DEL in id":       {benchTime, &ringi.RunErased{By: ringi.Principal{ID: "a\x7f"}}, "by: control character"},
		"id is not UTF-8": {benchTime, &ringi.RequestClosed{Request: "a\xff"}, "request: not valid UTF-8"},
		"long id":         {benchTime, &ringi.ApprovalRequested{Digest: strings.Repeat("a", maxRef+1)}, "digest: longer"},
	} {
		before := append(make([]ringi.Record, 0, 8), ringi.Record{Seq: -1})
		records, next, err := chain.Append(before, tt.at, 1, good, tt.body, good)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, tt.want)
		}
		if len(records) != 1 || records[0].Seq != -1 || next != chain {
			t.Errorf("%s: %d records, chain %v", name, len(records), next)
		}
		for _, r := range records[1:4] {
			if !reflect.DeepEqual(r, ringi.Record{}) {
				t.Errorf("%s: leaves %+v behind the records", name, r)
			}
		}
	}
	broken := errors.New("no random bytes")
	if _, _, err := chain.append(making{random: func([]byte) (int, error) { return 0, broken }}, nil, benchTime, 1, []ringi.EventBody{good}); !errors.Is(err, broken) {
		t.Errorf("without random bytes: %v", err)
	}
	// What an id may be.
	for _, id := range []string{"https://issuer.example#sub", `CORP\anna`, "os:1000@host", "日本語", strings.Repeat("a", maxRef), "a\u2028b"} {
		records, next := mustAppend(t, chain, &ringi.CancelRequested{By: ringi.Principal{ID: id}})
		events, err := Events("s", "default", "r", records, next.Head, next.Seq)
		if err != nil || events[0].Body.(*ringi.CancelRequested).By.ID != id {
			t.Errorf("id %q: %v", id, err)
		}
	}
}

func TestAppendAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools")
	}
	chain, body := Genesis("s", "default", "r"), benchStarted()
	if n := testing.AllocsPerRun(100, func() { chain.Append(nil, benchTime, 1, body) }); n > 3 {
		t.Errorf("append of one event: %v allocations", n)
	}
	all := benchBodies()
	if n := testing.AllocsPerRun(100, func() { chain.Append(nil, benchTime, 1, all...) }); n > 6 {
		t.Errorf("append of six events: %v allocations", n)
	}
}

// TestS24_CommitmentsHide holds that equal payloads do not show, and that
// whoever guesses a short payload cannot check the guess against the chain.
func TestS24_CommitmentsHide(t *testing.T) {
	result := func(id string) ringi.EventBody {
		return &ringi.ToolFinished{Results: []ringi.FinishedCall{{Call: "c", Outcome: ringi.OutcomeOK, Output: `{"reservation_id":"` + id + `"}`}}}
	}
	records, chain := mustAppend(t, Genesis("s", "default", "r"), result("GV1N64"), result("GV1N64"), &ringi.RunErased{By: ringi.Principal{ID: "u"}})
	if !bytes.Equal(records[0].Payload, records[1].Payload) {
		t.Fatal("payloads differ")
	}
	var heads [2]parsed
	for i := range heads {
		if err := heads[i].parse(records[i].Head); err != nil {
			t.Fatal(err)
		}
	}
	if heads[0].commitment == heads[1].commitment || bytes.Equal(records[0].Salt, records[1].Salt) {
		t.Error("equal payloads have equal commitments")
	}
	payload := records[0].Payload
	for i := range 2 {
		records[i].Payload, records[i].Salt = nil, nil
	}
	if err := Verify("s", "default", "r", records, chain.Head, chain.Seq); err != nil {
		t.Errorf("erased run does not verify: %v", err)
	}
	for _, guess := range [][]byte{
		payload, []byte(`{"reservation_id":"GV1N64"}`), append([]byte(commitmentLabel), payload...),
		slices.Concat([]byte(commitmentLabel), make([]byte, saltSize), payload),
	} {
		sum := sha256.Sum256(guess)
		for i := range heads {
			if heads[i].commitment == sum || bytes.Contains(records[i].Head, []byte(fmt.Sprintf("%x", sum))) {
				t.Errorf("record %d gives away %.60s", i+1, guess)
			}
		}
	}
	for _, r := range records {
		if bytes.Contains(r.Head, []byte("GV1N64")) {
			t.Errorf("header holds the payload: %s", r.Head)
		}
	}
}

package audit

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ringi-dev/ringi"
	"pgregory.net/rapid"
)

// run is a log with what its row says.
type run struct {
	store, space, id string
	records          []ringi.Record
	row              Chain
}

func newRun(t testing.TB, id string) run {
	r := run{store: "sto_1", space: "default", id: id}
	r.records, r.row = mustAppend(t, Genesis(r.store, r.space, r.id), benchBodies()...)
	return r
}

// copy returns a run whose bytes may be changed.
func (r run) copy() run {
	r.records = slices.Clone(r.records)
	for i := range r.records {
		p := &r.records[i]
		p.Head, p.Payload, p.Salt = bytes.Clone(p.Head), bytes.Clone(p.Payload), bytes.Clone(p.Salt)
	}
	return r
}

// rehash makes the chain of hashes anew from record i on, and the row's head,
// as somebody without a key can.
func (r *run) rehash(from int) {
	prev := Genesis(r.store, r.space, r.id).Head
	for i := range r.records {
		p := &r.records[i]
		if i >= from {
			p.Hash = sha256.Sum256(append(prev[:], p.Head...))
		}
		prev = p.Hash
	}
}

// broken returns what all three ways of verifying say; they must agree.
func (r run) broken(t testing.TB) *BrokenError {
	t.Helper()
	err := Verify(r.store, r.space, r.id, r.records, r.row.Head, r.row.Seq)
	events, err2 := Events(r.store, r.space, r.id, r.records, r.row.Head, r.row.Seq)
	report := VerifyRun(r.store, r.space, r.id, r.records, r.row.Head, r.row.Seq)
	if (err == nil) != (err2 == nil) || (err == nil) != (report.Broken == nil) {
		t.Fatalf("Verify: %v, Events: %v, VerifyRun: %v", err, err2, report.Broken)
	}
	if err == nil {
		if len(events) != len(r.records) {
			t.Fatalf("%d events of %d records", len(events), len(r.records))
		}
		return nil
	}
	var broken *BrokenError
	if !errors.As(err, &broken) || events != nil || *broken != *report.Broken || err.Error() != err2.Error() {
		t.Fatalf("Verify: %v, Events: %v (%d events), VerifyRun: %v", err, err2, len(events), report.Broken)
	}
	return broken
}

func (r run) want(t testing.TB, name string, seq int64, why ...string) {
	t.Helper()
	switch broken := r.broken(t); {
	case broken == nil:
		t.Errorf("%s: not found", name)
	case broken.Seq != seq || !slices.Contains(why, broken.Why):
		t.Errorf("%s: %v, want record %d: %q", name, broken, seq, why)
	case !errors.Is(broken, ringi.ErrCorrupt):
		t.Errorf("%s: %v is not ErrCorrupt", name, broken)
	}
}

// TestF128_EveryByteCounts flips each bit's byte of a log, one after the other.
func TestF128_EveryByteCounts(t *testing.T) {
	whole := newRun(t, "run_1")
	if broken := whole.broken(t); broken != nil {
		t.Fatal(broken)
	}
	for i := range whole.records {
		seq := int64(i + 1)
		hash := whyHash
		if i == 0 {
			hash = whyGenesis
		}
		parts := map[string]struct {
			bytes func(*ringi.Record) []byte
			why   string
		}{
			"head":    {func(r *ringi.Record) []byte { return r.Head }, hash},
			"payload": {func(r *ringi.Record) []byte { return r.Payload }, whyCommitment},
			"salt":    {func(r *ringi.Record) []byte { return r.Salt }, whyCommitment},
			"hash":    {func(r *ringi.Record) []byte { return r.Hash[:] }, hash},
		}
		for name, part := range parts {
			for at := range part.bytes(&whole.records[i]) {
				bad := whole.copy()
				part.bytes(&bad.records[i])[at] ^= 1 << (at % 8)
				bad.want(t, fmt.Sprintf("byte %d of %s of record %d", at, name, seq), seq, part.why)
			}
			if name == "hash" {
				continue
			}
			for _, change := range []func([]byte) []byte{
				func(b []byte) []byte { return b[1:] }, func(b []byte) []byte { return b[:len(b)-1] },
				func(b []byte) []byte { return append(b, ' ') }, func(b []byte) []byte { return append([]byte{0}, b...) },
			} {
				bad := whole.copy()
				changed := change(bytes.Clone(part.bytes(&bad.records[i])))
				switch r := &bad.records[i]; name {
				case "head":
					r.Head = changed
				case "payload":
					r.Payload = changed
				case "salt":
					r.Salt = changed
				}
				bad.want(t, fmt.Sprintf("length of %s of record %d", name, seq), seq, part.why)
			}
		}
		for _, kind := range []ringi.EventKind{"", "x", ringi.EventCancelRequested, ringi.EventRunErased} {
			bad := whole.copy()
			bad.records[i].Kind = kind
			bad.want(t, fmt.Sprintf("kind column %q of record %d", kind, seq), seq, whyKind)
		}
		for _, column := range []int64{0, -1, seq - 1, seq + 1, 1 << 62} {
			bad := whole.copy()
			bad.records[i].Seq = column
			bad.want(t, fmt.Sprintf("seq column %d of record %d", column, seq), seq, whyOrder)
		}
	}
	for name, row := range map[string]Chain{
		"head of the row":    {Seq: 6, Head: whole.records[4].Hash},
		"no head in the row": {Seq: 6},
	} {
		bad := whole.copy()
		bad.row = row
		bad.want(t, name, 6, whyHead)
	}
}

// TestF170_Cuts holds that each cut, insertion and move is found, with the
// row's head and number, and named.
func TestF170_Cuts(t *testing.T) {
	whole, other := newRun(t, "run_1"), newRun(t, "run_2")
	renumber := func(r *run) {
		for i := range r.records {
			r.records[i].Seq = int64(i + 1)
		}
	}
	for name, tt := range map[string]struct {
		cut func(*run)
		seq int64
		why string
	}{
		"first":     {func(r *run) { r.records = r.records[1:] }, 1, whyOrder},
		"first two": {func(r *run) { r.records = r.records[2:] }, 1, whyOrder},
		"middle":    {func(r *run) { r.records = slices.Delete(r.records, 2, 3) }, 3, whyOrder},
		"last":      {func(r *run) { r.records = r.records[:5] }, 6, whyTail},
		"last two":  {func(r *run) { r.records = r.records[:4] }, 5, whyTail},
		"all":       {func(r *run) { r.records = nil }, 1, whyTail},
		"all, and the row": {func(r *run) {
			r.records, r.row = nil, Genesis(r.store, r.space, r.id)
		}, 1, whyEmpty},
		"first, renumbered":  {func(r *run) { r.records = r.records[1:]; renumber(r) }, 1, whyGenesis},
		"middle, renumbered": {func(r *run) { r.records = slices.Delete(r.records, 2, 3); renumber(r) }, 3, whyHash},
		"first, renumbered, hashed anew": {func(r *run) {
			r.records = r.records[1:]
			renumber(r)
			r.rehash(0)
		}, 1, whySeq},
		"last, and the row's number": {func(r *run) { r.records, r.row.Seq = r.records[:5], 5 }, 5, whyHead},
		"the row's number":           {func(r *run) { r.row.Seq = 5 }, 6, whyBeyond},
		"the row's number, ahead":    {func(r *run) { r.row.Seq = 7 }, 7, whyTail},
		"the row's number, negative": {func(r *run) { r.row.Seq = -1 }, 0, whyBeyond},
		"repeated":                   {func(r *run) { r.records = slices.Insert(r.records, 3, r.records[2]) }, 4, whyOrder},
		"repeated, renumbered":       {func(r *run) { r.records = slices.Insert(r.records, 3, r.records[2]); renumber(r) }, 4, whyHash},
		"inserted from another run":  {func(r *run) { r.records = slices.Insert(r.records, 3, other.records[3]); renumber(r) }, 4, whyHash},
		"replaced by another run's":  {func(r *run) { r.records[3] = other.records[3] }, 4, whyHash},
		"two swapped":                {func(r *run) { r.records[2], r.records[3] = r.records[3], r.records[2] }, 3, whyOrder},
		"two swapped, renumbered":    {func(r *run) { r.records[2], r.records[3] = r.records[3], r.records[2]; renumber(r) }, 3, whyHash},
		"added behind":               {func(r *run) { r.records, _ = mustAppendTo(t, r.row, r.records, benchStarted()) }, 7, whyBeyond},
		"suffix written anew":        {func(r *run) { r.rewrite(t, 4) }, 6, whyHead},
		"all written anew":           {func(r *run) { r.rewrite(t, 0) }, 6, whyHead},
		"payload of another record":  {func(r *run) { r.records[4].Payload, r.records[4].Salt = r.records[3].Payload, r.records[3].Salt }, 5, whyCommitment},
		"salt ends earlier": {func(r *run) {
			p := &r.records[4]
			p.Salt, p.Payload = p.Salt[:31], append([]byte{p.Salt[31]}, p.Payload...)
		}, 5, whyCommitment},
		"salt ends later": {func(r *run) {
			p := &r.records[4]
			p.Salt, p.Payload = append(p.Salt, p.Payload[0]), p.Payload[1:]
		}, 5, whyCommitment},
		"head hashed, not the next":   {func(r *run) { r.edit(t, 3); r.records[3].Hash = r.hashOf(3) }, 5, whyHash},
		"head hashed, row left alone": {func(r *run) { r.edit(t, 3); r.rehash(3) }, 6, whyHead},
	} {
		bad := whole.copy()
		tt.cut(&bad)
		bad.want(t, name, tt.seq, tt.why)
	}
}

func mustAppendTo(t testing.TB, c Chain, records []ringi.Record, bodies ...ringi.EventBody) ([]ringi.Record, Chain) {
	t.Helper()
	records, c, err := c.Append(slices.Clip(records), benchTime, 1, bodies...)
	if err != nil {
		t.Fatal(err)
	}
	return records, c
}

// rewrite puts new records in the place of those from i on, with all that an
// unkeyed chain needs; the row stays.
func (r *run) rewrite(t testing.TB, i int) {
	start := Genesis(r.store, r.space, r.id)
	if i > 0 {
		start = Chain{Seq: int64(i), Head: r.records[i-1].Hash}
	}
	r.records, _ = mustAppendTo(t, start, r.records[:i], benchBodies()[i:]...)
}

// edit changes a header so that it is still one.
func (r *run) edit(t testing.TB, i int) {
	head := bytes.Replace(r.records[i].Head, []byte(`"epoch":1`), []byte(`"epoch":2`), 1)
	if bytes.Equal(head, r.records[i].Head) {
		t.Fatal("header was not changed")
	}
	r.records[i].Head = head
}

func (r *run) hashOf(i int) [32]byte {
	prev := r.records[i-1].Hash
	return sha256.Sum256(append(prev[:], r.records[i].Head...))
}

// TestS03_Transplants holds that a log verifies in its own store, space and
// run alone.
func TestS03_Transplants(t *testing.T) {
	whole, other := newRun(t, "run_1"), newRun(t, "run_2")
	for name, move := range map[string]func(*run){
		"store":     func(r *run) { r.store = "sto_2" },
		"space":     func(r *run) { r.space = "acme" },
		"run":       func(r *run) { r.id = "run_2" },
		"exchanged": func(r *run) { r.records = other.records },
		"exchanged with their row": func(r *run) {
			r.records, r.row = other.records, other.row
		},
		"space moved into store": func(r *run) { r.store, r.space = r.store+r.space, "" },
	} {
		bad := whole.copy()
		move(&bad)
		bad.want(t, name, 1, whyGenesis)
	}
}

// TestF171_HashedAnewStillDisagrees holds that what an unkeyed chain cannot
// notice, row and all written anew, must at least agree in itself.
func TestF171_HashedAnewStillDisagrees(t *testing.T) {
	whole := newRun(t, "run_1")
	for name, tt := range map[string]struct {
		change func(*run)
		seq    int64
		why    string
	}{
		"header of another form": {func(r *run) {
			r.records[2].Head = append([]byte(" "), r.records[2].Head...)
		}, 3, whyHeader},
		"number in the header": {func(r *run) {
			r.records[2].Head = bytes.Replace(r.records[2].Head, []byte(`"seq":3`), []byte(`"seq":4`), 1)
		}, 3, whySeq},
		"kind in the header": {func(r *run) {
			r.records[5].Head = bytes.Replace(r.records[5].Head, []byte("tool_finished"), []byte("tool_started"), 1)
		}, 6, whyKind},
		"kind and column": {func(r *run) {
			r.records[5].Head = bytes.Replace(r.records[5].Head, []byte("tool_finished"), []byte("tool_started"), 1)
			r.records[5].Kind = ringi.EventToolStarted
		}, 6, ""},
		"id in the header": {func(r *run) {
			r.records[3].Head = bytes.Replace(r.records[3].Head, []byte(`"by":"os:1000@host"`), []byte(`"by":"os:1001@host"`), 1)
		}, 4, whyRefs},
		"answer in the header": {func(r *run) {
			r.records[3].Head = bytes.Replace(r.records[3].Head, []byte(`"answer":"approve"`), []byte(`"answer":"deny"`), 1)
		}, 4, whyRefs},
		"payload is not JSON": {func(r *run) { r.commit(t, 4, `{"call":`) }, 5, whyPayload},
		"payload of another kind": {func(r *run) {
			r.commit(t, 4, string(r.records[3].Payload))
		}, 5, whyRefs},
	} {
		bad := whole.copy()
		tt.change(&bad)
		bad.rehash(0)
		bad.row.Head = bad.records[len(bad.records)-1].Hash
		_, err := Events(bad.store, bad.space, bad.id, bad.records, bad.row.Head, bad.row.Seq)
		var broken *BrokenError
		if !errors.As(err, &broken) || broken.Seq != tt.seq || tt.why != "" && broken.Why != tt.why {
			t.Errorf("%s: %v, want record %d: %q", name, err, tt.seq, tt.why)
		}
		if report := VerifyRun(bad.store, bad.space, bad.id, bad.records, bad.row.Head, bad.row.Seq); report.Broken == nil || report.To != tt.seq-1 {
			t.Errorf("%s: report %v", name, report)
		}
		if _, err := Decode(bad.records[tt.seq-1]); !errors.Is(err, ringi.ErrCorrupt) {
			t.Errorf("%s: decode: %v", name, err)
		}
	}
}

// commit puts another payload in the place of record i's, and its commitment.
func (r *run) commit(t testing.TB, i int, payload string) {
	p := &r.records[i]
	p.Payload = []byte(payload)
	sum := sha256.Sum256(slices.Concat([]byte(commitmentLabel), p.Salt, p.Payload))
	at := bytes.Index(p.Head, []byte(`"commitment":"`)) + len(`"commitment":"`)
	base64url.Encode(p.Head[at:], sum[:])
}

// TestF130_NewerRecord holds that a record of a newer program is no corruption
// while the chain fits, and is read as nothing.
func TestF130_NewerRecord(t *testing.T) {
	r := newRun(t, "run_1").copy()
	r.records[3].Head = bytes.Replace(r.records[3].Head, []byte(`{"v":1`), []byte(`{"v":2`), 1)
	r.want(t, "changed in place", 4, whyHash)
	r.rehash(3)
	r.row.Head = r.records[5].Hash
	broken := r.broken(t)
	if broken == nil || broken.Seq != 4 || broken.Why != whyVersion || !broken.Newer || errors.Is(broken, ringi.ErrCorrupt) {
		t.Errorf("newer record: %+v", broken)
	}
	if e, err := Decode(r.records[3]); err == nil || errors.Is(err, ringi.ErrCorrupt) || e.Body != nil {
		t.Errorf("decode: %+v, %v", e, err)
	}
	const want = "records 1 to 3 are as they were written; nothing is proved from record 4 on: its header is of a version that this program does not know"
	if got := VerifyRun(r.store, r.space, r.id, r.records, r.row.Head, r.row.Seq).String(); got != want {
		t.Errorf("report %q, want %q", got, want)
	}
}

func erase(r *run, seqs ...int64) {
	for _, seq := range seqs {
		r.records[seq-1].Payload, r.records[seq-1].Salt = nil, nil
	}
}

// TestS24_Erased holds that erasing leaves the chain whole, that it must have
// been recorded, and that half of it is a break.
func TestS24_Erased(t *testing.T) {
	erasure := &ringi.RunErased{By: ringi.Principal{ID: "os:1000@host"}, Reason: "asked for"}
	whole := newRun(t, "run_1").copy()
	whole.records, whole.row = mustAppendTo(t, whole.row, whole.records, erasure)

	erased := whole.copy()
	erase(&erased, 1, 2, 3, 4, 5, 6)
	if broken := erased.broken(t); broken != nil {
		t.Fatal(broken)
	}
	events, err := Events(erased.store, erased.space, erased.id, erased.records, erased.row.Head, erased.row.Seq)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events[:6] {
		if e.Body != nil || e.Kind == "" || !e.At.Equal(benchTime) {
			t.Errorf("erased event %+v", e)
		}
	}
	if got := events[6].Body; !reflect.DeepEqual(got, erasure) {
		t.Errorf("erasure %+v", got)
	}
	report := VerifyRun(erased.store, erased.space, erased.id, erased.records, erased.row.Head, erased.row.Seq)
	if report.Records != 7 || report.Erased != 6 || report.From != 1 || report.To != 7 || report.Broken != nil {
		t.Errorf("report %+v", report)
	}
	if e, err := Decode(erased.records[0]); err != nil || e.Body != nil || e.Kind != ringi.EventRunStarted {
		t.Errorf("decode: %+v, %v", e, err)
	}
	empty := erased.copy() // a store may give back empty bytes for none
	empty.records[0].Payload, empty.records[0].Salt = []byte{}, []byte{}
	if broken := empty.broken(t); broken != nil {
		t.Error(broken)
	}

	for name, tt := range map[string]struct {
		change func(*run)
		seq    int64
		why    string
	}{
		"nobody said so": {func(r *run) { r.records, r.row = r.records[:6], Chain{6, r.records[5].Hash}; erase(r, 2) }, 2, whyErased},
		"said before": {func(r *run) {
			r.records, r.row = mustAppendTo(t, r.row, r.records, benchStarted())
			erase(r, 8)
		}, 8, whyErased},
		"the word itself": {func(r *run) { erase(r, 2, 7) }, 7, whyErased},
		"a word that is none": {func(r *run) {
			r.records, r.row = r.records[:6], Chain{6, r.records[5].Hash}
			erase(r, 2)
			r.records[4].Kind = ringi.EventRunErased
		}, 5, whyKind},
		"payload only":         {func(r *run) { r.records[2].Payload = nil }, 3, whyHalf},
		"random bytes only":    {func(r *run) { r.records[2].Salt = nil }, 3, whyHalf},
		"header of the erased": {func(r *run) { erase(r, 2); r.edit(t, 1) }, 2, whyHash},
	} {
		bad := whole.copy()
		tt.change(&bad)
		bad.want(t, name, tt.seq, tt.why)
	}

	// Erased twice: the second word covers the first.
	again := whole.copy()
	again.records, again.row = mustAppendTo(t, again.row, again.records, erasure)
	erase(&again, 1, 7)
	if broken := again.broken(t); broken != nil {
		t.Error(broken)
	}
}

// TestF168_DecisionsAreInTheChain holds that the chained part alone, with
// every payload erased, still says who answered what and about which digest.
func TestF168_DecisionsAreInTheChain(t *testing.T) {
	by := ringi.Principal{ID: "os:1000@host", Name: "Anna"}
	const req, digest = "req_1", "digest_1"
	for want, body := range map[string]ringi.EventBody{
		`"request":"req_1","by":"os:1000@host","answer":"approve","digest":"digest_1"`: &ringi.ApprovalDecided{Request: req, By: by, Answer: ringi.Approve, Digest: digest},
		`"request":"req_1","by":"os:1000@host","answer":"deny","digest":"digest_1"`:    &ringi.ApprovalDecided{Request: req, By: by, Answer: ringi.Deny, Digest: digest, Reason: "no"},
		`"request":"req_1","by":"os:1000@host","answer":"edit","digest":"digest_1"`:    &ringi.InputProposed{Request: req, By: by, Answer: ringi.Edit, Digest: digest, Input: "{}"},
		`"request":"req_1","by":"os:1000@host","commitment"`:                           &ringi.ApprovalTakenBack{Request: req, By: by},
		`"call":"call_1","request":"req_1","digest":"digest_1"`:                        &ringi.ApprovalRequested{Request: req, Call: "call_1", Digest: digest, Nonce: "n"},
		`"call":"call_1","request":"req_1","commitment"`:                               &ringi.ToolStarted{Call: "call_1", Request: req},
		`"call":"call_1","request":"req_1","by":"os:1000@host","answer":"ran"`:         &ringi.OutcomeSettled{Request: req, Call: "call_1", By: by, Answer: ringi.Ran, Digest: digest},
		`"epoch":1,"by":"os:1000@host","commitment"`:                                   &ringi.CancelRequested{By: by},
	} {
		records, _ := mustAppend(t, Chain{}, body)
		if head := string(records[0].Head); !strings.Contains(head, want) || strings.Contains(head, "Anna") {
			t.Errorf("%s: header %s, want it to hold %s", body.Kind(), head, want)
		}
	}
}

func TestVerificationString(t *testing.T) {
	whole := newRun(t, "run_1")
	for want, change := range map[string]func(*run){
		"records 1 to 6 are as they were written; the log ends where the run's row says":                   func(*run) {},
		"records 1 to 2 are as they were written; broken at record 3: " + whyHash:                          func(r *run) { r.edit(t, 2) },
		"no record verifies; broken at record 1: " + whyGenesis:                                            func(r *run) { r.store = "x" },
		"records 1 to 5 are as they were written; broken at record 6: " + whyTail:                          func(r *run) { r.records = r.records[:5] },
		"records 1 to 7 are as they were written, 1 of them erased; the log ends where the run's row says": func(r *run) { r.records, r.row = mustAppendTo(t, r.row, r.records, &ringi.RunErased{}); erase(r, 3) },
	} {
		r := whole.copy()
		change(&r)
		if got := VerifyRun(r.store, r.space, r.id, r.records, r.row.Head, r.row.Seq).String(); got != want {
			t.Errorf("report %q, want %q", got, want)
		}
	}
}

// TestAnyLogComesBack appends any bodies in any commits and reads them again.
func TestAnyLogComesBack(t *testing.T) {
	kinds := bodies()
	rapid.Check(t, func(t *rapid.T) {
		genesis := Genesis("s", "default", "r")
		var records []ringi.Record
		var written []ringi.EventBody
		chain := genesis
		for range rapid.IntRange(1, 3).Draw(t, "commits") {
			var commit []ringi.EventBody
			for range rapid.IntRange(1, 3).Draw(t, "events") {
				v := reflect.New(reflect.TypeOf(rapid.SampledFrom(kinds).Draw(t, "kind")).Elem())
				random(t, true).fill(v.Elem(), "")
				body := v.Interface().(ringi.EventBody)
				safe(body, rapid.SampledFrom([]string{"", "id_1", `a\"b`, "日本"}).Draw(t, "id"))
				commit = append(commit, body)
			}
			var err error
			if records, chain, err = chain.Append(records, benchTime, 1, commit...); err != nil {
				t.Fatal(err)
			}
			written = append(written, commit...)
		}
		events, err := Events("s", "default", "r", records, chain.Head, chain.Seq)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range events {
			got, want := settled(reflect.ValueOf(e.Body).Elem().Interface()), settled(reflect.ValueOf(written[i]).Elem().Interface())
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("event %d\n%+v\nwant\n%+v", i+1, got, want)
			}
		}
	})
}

func TestConcurrent(t *testing.T) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				r := newRun(t, "run_1")
				if broken := r.broken(t); broken != nil {
					t.Error(broken)
					return
				}
			}
		})
	}
	wg.Wait()
}

// FuzzDecode gives a record of any bytes: what is taken must be the record
// that we would write again.
func FuzzDecode(f *testing.F) {
	records, _ := mustAppend(f, Genesis("s", "default", "r"), benchBodies()...)
	for _, r := range records {
		f.Add(r.Seq, string(r.Kind), r.Head, r.Payload, r.Salt)
		f.Add(r.Seq, string(r.Kind), r.Head, []byte(nil), []byte(nil))
	}
	f.Fuzz(func(t *testing.T, seq int64, kind string, head, payload, salt []byte) {
		r := ringi.Record{Seq: seq, Kind: ringi.EventKind(kind), Head: head, Payload: payload, Salt: salt}
		e, err := Decode(r)
		if err != nil {
			if !reflect.DeepEqual(e, ringi.Event{}) {
				t.Fatalf("event %+v beside error %v", e, err)
			}
			return
		}
		if e.Body == nil {
			if len(payload)+len(salt) > 0 {
				t.Fatalf("no body of payload %q", payload)
			}
			return
		}
		again, _, err := Chain{Seq: seq - 1}.append(making{random: func(b []byte) (int, error) { return copy(b, salt), nil }}, nil, e.At, e.Epoch, []ringi.EventBody{e.Body})
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(again[0].Payload, payload) && !bytes.Equal(again[0].Head, head) {
			t.Fatalf("head\n%s\nwritten again\n%s", head, again[0].Head)
		}
	})
}

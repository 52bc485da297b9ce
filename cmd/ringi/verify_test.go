package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/audit"
	"github.com/ringi-dev/ringi/sign"
)

const (
	testSecret  = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	otherSecret = "bm90IHRoZSBrZXkgb2YgdGhpcyBzdG9yZSBhdCBhbGw="
)

// logged is a store with a run in every position: run_1 has ended, run_2
// waits, run_3 is approved and has not gone on, run_4 was denied and ended.
func logged(t *testing.T, keys *sign.Keyring) string {
	t.Helper()
	path, _ := staged(t, keys, "refund", "refund", "refund", "two")
	s, err := newStage(path, keys, 100)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	bo := ringi.Principal{ID: "bo", Kind: ringi.Person, Auth: "test"}
	for id, decide := range map[string]func(ringi.ApprovalRequest) ringi.Decision{
		"req_1_1_0": func(r ringi.ApprovalRequest) ringi.Decision { return r.Approve(bo) },
		"req_3_1_0": func(r ringi.ApprovalRequest) ringi.Decision { return r.Approve(bo) },
		"req_4_1_0": func(r ringi.ApprovalRequest) ringi.Decision { return r.Deny(bo, "no") },
		"req_4_1_1": func(r ringi.ApprovalRequest) ringi.Decision { return r.Respond(bo, []byte(`{"ran":3}`)) },
	} {
		r, err := s.engine.Request(ctx, id)
		if err == nil {
			_, err = s.engine.Decide(ctx, decide(r))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, run := range []string{"run_1", "run_4"} {
		res, err := s.engine.Resume(ctx, run)
		if err != nil || res.Err() != nil {
			t.Fatal(err, res.Err())
		}
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// thief writes to a store file, and has no key.
type thief struct {
	t    *testing.T
	path string
	db   *sql.DB
}

func (th *thief) exec(query string, args ...any) {
	th.t.Helper()
	res, err := th.db.Exec(query, args...)
	if err != nil {
		th.t.Fatal(err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		th.t.Fatalf("%s: %d rows, %v", query, n, err)
	}
}

// flip changes one bit in the middle of a column of bytes.
func (th *thief) flip(column, where string, args ...any) {
	th.t.Helper()
	var b []byte
	if err := th.db.QueryRow(`SELECT `+column+` FROM records WHERE `+where, args...).Scan(&b); err != nil {
		th.t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	th.exec(`UPDATE records SET `+column+` = ? WHERE `+where, append([]any{b}, args...)...)
}

// cutTail removes the newest n records of a run, and sets its row back.
func (th *thief) cutTail(run string, n int) {
	th.t.Helper()
	th.exec(`DELETE FROM records WHERE run = ? AND seq > (SELECT max(seq) FROM records WHERE run = ?) - ?`, run, run, n)
	th.exec(`UPDATE runs SET seq = (SELECT max(seq) FROM records WHERE run = id),
		head = (SELECT hash FROM records WHERE run = id ORDER BY seq DESC LIMIT 1) WHERE id = ?`, run)
}

// write appends records to a run, with a right chain. sign, where it is set,
// makes the MAC of the run's row, as only a holder of the key can.
func (th *thief) write(run string, keys *sign.Keyring, bodies ...ringi.EventBody) {
	th.t.Helper()
	store, err := openStore("sqlite:" + th.path)
	if err != nil {
		th.t.Fatal(err)
	}
	ctx := context.Background()
	id, err := store.ID(ctx)
	if err != nil {
		th.t.Fatal(err)
	}
	row, err := store.Row(ctx, "default", run)
	if err != nil {
		th.t.Fatal(err)
	}
	store.Close()
	records, chain, err := (audit.Chain{Seq: row.Seq, Head: row.Head}).Append(nil, time.Now(), row.Epoch, bodies...)
	if err != nil {
		th.t.Fatal(err)
	}
	for _, r := range records {
		th.exec(`INSERT INTO records (space, run, seq, kind, head, payload, salt, hash) VALUES ('default', ?, ?, ?, ?, ?, ?, ?)`,
			run, r.Seq, string(r.Kind), r.Head, r.Payload, r.Salt, r.Hash[:])
	}
	mac := row.MAC
	if keys != nil {
		b, kid, err := keys.SignCommit(nil, id, run, chain.Seq, chain.Head)
		if err != nil {
			th.t.Fatal(err)
		}
		mac = kid + "." + base64.RawURLEncoding.EncodeToString(b)
	}
	th.exec(`UPDATE runs SET seq = ?, head = ?, mac = ? WHERE id = ?`, chain.Seq, chain.Head[:], mac, run)
}

// erase removes the payloads of a run as it is meant to be done.
func (th *thief) erase(run string, keys *sign.Keyring) {
	th.t.Helper()
	th.exec(`UPDATE records SET payload = NULL, salt = NULL WHERE run = ?`, run)
	th.write(run, keys, &ringi.RunErased{By: ringi.Principal{ID: "dpo", Kind: ringi.Person}, Reason: "asked for"})
}

// forgeApproval decides the pending request of run_2, as far as it goes
// without a key: everything but signature and MAC is as it would be.
func (th *thief) forgeApproval() {
	th.t.Helper()
	var payload string
	if err := th.db.QueryRow(`SELECT payload FROM records WHERE run = 'run_2' AND kind = 'approval_requested'`).Scan(&payload); err != nil {
		th.t.Fatal(err)
	}
	var asked struct{ Nonce, Digest string }
	var nonce [sign.NonceSize]byte
	if err := json.Unmarshal([]byte(payload), &asked); err != nil {
		th.t.Fatal(err)
	}
	if n, err := base64.RawURLEncoding.Decode(nonce[:], []byte(asked.Nonce)); err != nil || n != len(nonce) {
		th.t.Fatal(n, err)
	}
	th.write("run_2", nil, &ringi.ApprovalDecided{Request: "req_2_1_0", Answer: ringi.Approve, Digest: asked.Digest, At: time.Now(),
		By: ringi.Principal{ID: "admin", Kind: ringi.Person, Auth: "os"}, Bytes: sign.InputDigest(nonce, `{"order":"A-1017","cents":4990}`)})
	th.exec(`UPDATE requests SET state = 'approved', decided_by = 'admin', decided_at = 1 WHERE id = 'req_2_1_0'`)
}

// F170, F171: every cut and change is told as one, with its own exit code, and
// never as a failure to run. What cannot be told is in the table too.
func TestF170_F171_VerifyTellsEveryCut(t *testing.T) {
	keys, err := sign.Parse(testSecret)
	if err != nil {
		t.Fatal(err)
	}
	files := map[bool][]byte{}
	for keyed, k := range map[bool]*sign.Keyring{true: keys, false: nil} {
		if files[keyed], err = os.ReadFile(logged(t, k)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range cuts(keys) {
		for keyed, file := range files {
			name, want := c.name+", unkeyed", c.unkeyed
			if keyed || want == same {
				want = c.keyed
			}
			if keyed {
				name = c.name
			}
			t.Run(name, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "ringi.db")
				if err := os.WriteFile(path, file, 0o600); err != nil {
					t.Fatal(err)
				}
				secret := ""
				if keyed {
					secret = testSecret
				}
				if c.tamper != nil {
					steal(t, path, c.tamper)
				}
				got := verified(t, path, secret)
				if got.code != want {
					t.Errorf("exit %d, want %d\n%s%s", got.code, want, got.out, got.err)
				}
				if keyed && !strings.Contains(got.out+got.err, c.says) {
					t.Errorf("does not say %q:\n%s%s", c.says, got.out, got.err)
				}
			})
		}
	}
}

// same is for a cut that is told without a key as well as with it.
const same = -1

// cut is something that somebody does to a store, and what verify says of it.
type cut struct {
	name           string
	tamper         func(th *thief)
	keyed, unkeyed int
	says           string // in what a keyed check prints
}

// cuts is the table of what may be done to the store that logged makes.
func cuts(keys *sign.Keyring) []cut {
	return []cut{
		{"intact", nil, 0, same, "Every record is as a holder of the key wrote it"},
		{"erased by record", func(th *thief) { th.erase("run_4", keysIf(th, keys)) }, 0, same, "were erased, and a record says so"},
		{"erased without record", func(th *thief) {
			th.exec(`UPDATE records SET payload = NULL, salt = NULL WHERE run = 'run_4' AND seq = 2`)
		}, 4, same, "run_4"},
		{"half erased", func(th *thief) { th.exec(`UPDATE records SET payload = NULL WHERE run = 'run_1' AND seq = 2`) }, 4, same, "not both"},
		{"flipped byte of a payload", func(th *thief) { th.flip("payload", "run = 'run_1' AND seq = 2") }, 4, same, "verify record 2"},
		{"flipped byte of a header", func(th *thief) { th.flip("head", "run = 'run_1' AND seq = 3") }, 4, same, "verify record 3"},
		{"flipped byte of a salt", func(th *thief) { th.flip("salt", "run = 'run_2' AND seq = 1") }, 4, same, "run_2"},
		{"flipped byte of a hash", func(th *thief) { th.flip("hash", "run = 'run_2' AND seq = 2") }, 4, same, "run_2"},
		{"hash cut short", func(th *thief) { th.exec(`UPDATE records SET hash = x'00' WHERE run = 'run_2' AND seq = 2`) }, 4, same, "run_2"},
		{"last event removed", func(th *thief) {
			th.exec(`DELETE FROM records WHERE run = 'run_1' AND seq = (SELECT seq FROM runs WHERE id = 'run_1')`)
		}, 4, same, "the tail is missing"},
		{"last two removed", func(th *thief) {
			th.exec(`DELETE FROM records WHERE run = 'run_1' AND seq > (SELECT seq FROM runs WHERE id = 'run_1') - 2`)
		}, 4, same, "the tail is missing"},
		{"first removed", func(th *thief) { th.exec(`DELETE FROM records WHERE run = 'run_1' AND seq = 1`) }, 4, same, "verify record 1"},
		{"first two removed", func(th *thief) { th.exec(`DELETE FROM records WHERE run = 'run_1' AND seq < 3`) }, 4, same, "verify record 1"},
		{"middle removed", func(th *thief) { th.exec(`DELETE FROM records WHERE run = 'run_1' AND seq = 3`) }, 4, same, "verify record 3"},
		{"all records of a run removed", func(th *thief) { th.exec(`DELETE FROM records WHERE run = 'run_1'`) }, 4, same, "run_1"},
		{"swapped", func(th *thief) {
			th.exec(`UPDATE records SET seq = CASE seq WHEN 2 THEN -3 WHEN 3 THEN -2 END WHERE run = 'run_1' AND seq IN (2, 3)`)
			th.exec(`UPDATE records SET seq = -seq WHERE seq < 0`)
		}, 4, same, "verify record 2"},
		{"another run's records", func(th *thief) {
			th.exec(`DELETE FROM records WHERE run = 'run_2'`)
			th.exec(`UPDATE records SET run = 'run_2' WHERE run = 'run_3'`)
		}, 4, same, "another run's"},
		{"row's head changed", func(th *thief) { th.exec(`UPDATE runs SET head = zeroblob(32) WHERE id = 'run_2'`) }, 4, same, "another hash"},
		{"row's number raised", func(th *thief) { th.exec(`UPDATE runs SET seq = seq + 1 WHERE id = 'run_2'`) }, 4, same, "the tail is missing"},
		{"row's number lowered", func(th *thief) { th.exec(`UPDATE runs SET seq = seq - 1 WHERE id = 'run_2'`) }, 4, same, "goes on behind"},
		{"decision cut, row set back", func(th *thief) { th.cutTail("run_3", 1) }, 4, same, "run_3"},
		{"decision cut, row and inbox set back", func(th *thief) {
			th.cutTail("run_3", 1)
			th.exec(`UPDATE requests SET state = 'pending', decided_by = '', decided_at = NULL, use_by = NULL WHERE run = 'run_3'`)
		}, 4, 0, "commit MAC"},
		{"decision forged with a right chain", func(th *thief) { th.forgeApproval() }, 4, 0, "commit MAC"},
		{"MAC missing", func(th *thief) { th.exec(`UPDATE runs SET mac = '' WHERE id = 'run_2'`) }, 4, 0, "commit has no MAC"},
		{"MAC malformed", func(th *thief) { th.exec(`UPDATE runs SET mac = 'k.!!' WHERE id = 'run_2'`) }, 4, same, "MAC is malformed"},
		{"MAC of another run", func(th *thief) {
			th.exec(`UPDATE runs SET mac = coalesce(nullif((SELECT mac FROM runs WHERE id = 'run_3'), ''), 'k.AA') WHERE id = 'run_2'`)
		}, 4, same, "run_2"},
		{"every MAC missing, and the key memory", func(th *thief) {
			th.exec(`UPDATE runs SET mac = ''`)
			th.db.Exec(`DELETE FROM keys`)
		}, 4, 0, "commit has no MAC"},
		{"key memory missing", func(th *thief) {
			th.db.Exec(`DELETE FROM keys`)
		}, 4, 0, "key memory was taken away"},
		{"inbox says approved", func(th *thief) { th.exec(`UPDATE requests SET state = 'approved' WHERE id = 'req_2_1_0'`) }, 4, same,
			"the inbox says approved, the log says pending"},
		{"inbox says denied by another", func(th *thief) { th.exec(`UPDATE requests SET decided_by = 'ann' WHERE id = 'req_4_1_0'`) }, 4, same, "another decider"},
		{"inbox names another digest", func(th *thief) { th.exec(`UPDATE requests SET digest = '00' WHERE id = 'req_2_1_0'`) }, 4, same, "another digest"},
		{"inbox names another tool", func(th *thief) { th.exec(`UPDATE requests SET tool = 'clock' WHERE id = 'req_2_1_0'`) }, 4, same, "another run, call, tool"},
		{"request hidden", func(th *thief) { th.exec(`DELETE FROM requests WHERE id = 'req_2_1_0'`) }, 4, same, "holds 0 of the 1 requests"},
		{"run's row removed", func(th *thief) { th.exec(`DELETE FROM runs WHERE id = 'run_2'`) }, 4, same, "the run is gone"},
		{"marked corrupt", func(th *thief) { th.exec(`UPDATE runs SET corrupt = 'somebody said so' WHERE id = 'run_2'`) }, 4, same, "somebody said so"},
		{"two runs broken", func(th *thief) {
			th.flip("payload", "run = 'run_1' AND seq = 2")
			th.flip("payload", "run = 'run_2' AND seq = 2")
		}, 4, same, "2 findings"},
		// What needs an anchor outside the store, and is said not to be shown.
		{"run taken away whole", func(th *thief) {
			for _, table := range []string{"records", "requests"} {
				th.exec(`DELETE FROM ` + table + ` WHERE run = 'run_2'`)
			}
			th.exec(`DELETE FROM runs WHERE id = 'run_2'`)
		}, 0, same, "Not shown: that no run was taken away whole"},
	}
}

// keysIf are the keys where the store is keyed.
func keysIf(th *thief, keys *sign.Keyring) *sign.Keyring {
	var n int
	if err := th.db.QueryRow(`SELECT count(*) FROM keys`).Scan(&n); err != nil {
		th.t.Fatal(err)
	}
	if n == 0 {
		return nil
	}
	return keys
}

func steal(t *testing.T, path string, tamper func(*thief)) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	tamper(&thief{t, path, db})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// said is what a command wrote, and its exit code.
type said struct {
	code     int
	out, err string
}

// commanded runs the command in this process, with a secret or without.
func commanded(t *testing.T, secret string, args ...string) said {
	t.Helper()
	t.Setenv(sign.SecretEnv, secret)
	if secret == "" {
		os.Unsetenv(sign.SecretEnv) // Setenv puts it back as it was
	}
	var out, err bytes.Buffer
	e := &env{in: strings.NewReader(""), out: &out, err: &err, getenv: func(string) string { return "" }, now: time.Now}
	code := execute(context.Background(), e, args)
	return said{code, out.String(), err.String()}
}

func verified(t *testing.T, path, secret string, args ...string) said {
	t.Helper()
	return commanded(t, secret, append([]string{"verify", "--store", "sqlite:" + path}, args...)...)
}

// F171: exit 1 is for a check that could not be made; what is broken counts
// first.
func TestF171_VerifyThatCouldNotRun(t *testing.T) {
	keys, err := sign.Parse(testSecret)
	if err != nil {
		t.Fatal(err)
	}
	path := logged(t, keys)
	for _, c := range []struct {
		name, secret string
		args         []string
		want         int
		says         string
	}{
		{"wrong key", otherSecret, nil, exitFailed, "holds another"},
		{"no key", "", nil, exitFailed, "--without-key"},
		{"no key is meant", "", []string{"--without-key"}, exitDone, "Signatures were not"},
		{"a key that is not used", testSecret, []string{"--without-key"}, exitDone, "Signatures were not"},
		{"no secret at all", "short", nil, exitFailed, sign.SecretEnv},
		{"another space", testSecret, []string{"--space", "other"}, exitDone, "There is no run here"},
		{"a rotated key", otherSecret + "," + testSecret, nil, exitDone, "Every record is as a holder"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := verified(t, path, c.secret, c.args...)
			if got.code != c.want || !strings.Contains(got.out+got.err, c.says) {
				t.Errorf("exit %d, want %d and %q\n%s%s", got.code, c.want, c.says, got.out, got.err)
			}
		})
	}
	t.Run("broken counts before a missing key", func(t *testing.T) {
		steal(t, path, func(th *thief) { th.flip("payload", "run = 'run_1' AND seq = 2") })
		for _, secret := range []string{"", otherSecret, testSecret} {
			if got := verified(t, path, secret); got.code != exitUnproven {
				t.Errorf("secret %q: exit %d\n%s%s", secret, got.code, got.out, got.err)
			}
		}
	})
	if got := verified(t, path+".missing", testSecret); got.code != exitFailed || !strings.Contains(got.err, "there is no file") {
		t.Errorf("missing file: exit %d: %s", got.code, got.err)
	}
}

// A file whose pages are damaged is not what a store wrote, wherever SQLite
// finds out.
func TestF171_VerifyOfADamagedFile(t *testing.T) {
	path := logged(t, nil)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func([]byte) []byte{
		"cut in half": func(b []byte) []byte { return b[:len(b)/2] },
		"first page":  func(b []byte) []byte { return slices.Concat(bytes.Repeat([]byte{0xAA}, 4096), b[4096:]) },
		"middle pages": func(b []byte) []byte {
			return slices.Concat(b[:8192], bytes.Repeat([]byte{0xAA}, len(b)-16384), b[len(b)-8192:])
		},
	} {
		t.Run(name, func(t *testing.T) {
			broken := filepath.Join(t.TempDir(), "ringi.db")
			if err := os.WriteFile(broken, damage(bytes.Clone(whole)), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := verified(t, broken, ""); got.code != exitUnproven {
				t.Errorf("exit %d\n%s%s", got.code, got.out, got.err)
			}
		})
	}
}

func TestVerifyAsJSON(t *testing.T) {
	keys, err := sign.Parse(testSecret)
	if err != nil {
		t.Fatal(err)
	}
	path := logged(t, keys)
	got := verified(t, path, testSecret, "--json")
	var r verifyReport
	if err := json.Unmarshal([]byte(got.out), &r); err != nil || got.code != exitDone {
		t.Fatalf("exit %d: %v\n%s%s", got.code, err, got.out, got.err)
	}
	if !r.Keyed || !r.Signed || r.Runs != 4 || r.Requests != 5 || r.Decisions != 4 || len(r.Broken) != 0 || r.Proves == "" {
		t.Errorf("report %+v", r)
	}
	steal(t, path, func(th *thief) { th.exec(`UPDATE runs SET corrupt = '` + "\u202e" + `evil' WHERE id = 'run_2'`) })
	got = verified(t, path, testSecret, "--json")
	if err := json.Unmarshal([]byte(got.out), &r); err != nil || got.code != exitUnproven {
		t.Fatalf("exit %d: %v\n%s%s", got.code, err, got.out, got.err)
	}
	if len(r.Broken) != 1 || r.Broken[0].RunID != "run_2" {
		t.Errorf("report %+v", r)
	}
	if strings.Contains(got.out+got.err, "\u202e") {
		t.Errorf("raw text of a row:\n%s%s", got.out, got.err)
	}
}

// A log that does not verify is shown and decided by no command: exit 4.
func TestBrokenRunsAreExit4Everywhere(t *testing.T) {
	path := logged(t, nil)
	steal(t, path, func(th *thief) { th.flip("payload", "run = 'run_2' AND seq = 2") })
	store := "sqlite:" + path
	for _, args := range [][]string{
		{"show", "req_2_1_0"}, {"deny", "req_2_1_0"}, {"edit", "req_2_1_0", "--input", "{}"}, {"take-back", "req_2_1_0"}, {"cancel", "run_2"},
	} {
		if got := commanded(t, "", append(args, "--store", store)...); got.code != exitUnproven {
			t.Errorf("%q: exit %d\n%s%s", args, got.code, got.out, got.err)
		}
	}
	got := commanded(t, "", "pending", "--store", store)
	if got.code != exitDone || strings.Contains(got.out, "req_2_1_0") || !strings.Contains(got.err, "req_2_1_0") {
		t.Errorf("pending: exit %d\n%s%s", got.code, got.out, got.err)
	}
}

// More runs than a page holds are all checked.
// What is broken in another space is found, unless one is named.
func TestF170_VerifyGoesThroughEverySpace(t *testing.T) {
	keys, err := sign.Parse(testSecret)
	if err != nil {
		t.Fatal(err)
	}
	path, _ := staged(t, keys, "refund", "two")
	for _, space := range []string{"a", "zoo"} {
		s, err := newStageIn(space, path, keys, 0) // run_1 again, of another space
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.run("refund"); err != nil {
			t.Fatal(err)
		}
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
	}
	got := verified(t, path, testSecret)
	if got.code != exitDone || !strings.Contains(got.out, "Checked in all 3 spaces of store") || !strings.Contains(got.out, ": 4 runs, ") ||
		!strings.Contains(got.out, "5 requests") {
		t.Errorf("intact: %+v", got)
	}
	for _, space := range []string{"default", "a"} {
		got := verified(t, path, testSecret, "--space", space)
		if got.code != exitDone || !strings.Contains(got.out, "Checked in space "+space+" of store") {
			t.Errorf("%s: %+v", space, got)
		}
	}

	steal(t, path, func(th *thief) { th.flip("payload", "space = 'zoo' AND run = 'run_1' AND seq = 2") })
	got = verified(t, path, testSecret)
	if got.code != exitUnproven || !strings.HasPrefix(got.out, "BROKEN run_1 in space zoo: ") || strings.Count(got.out, "BROKEN") != 1 ||
		!strings.Contains(got.err, "first: run run_1 in space zoo: ") {
		t.Errorf("broken: %+v", got)
	}
	var report verifyReport
	got = verified(t, path, testSecret, "--json")
	if err := json.Unmarshal([]byte(got.out), &report); err != nil || got.code != exitUnproven || len(report.Broken) != 1 ||
		report.Broken[0].Space != "zoo" || !slices.Equal(report.Spaces, []string{"a", "default", "zoo"}) || report.Runs != 4 {
		t.Errorf("broken, as JSON: %+v, %v", got, err)
	}
	if got := verified(t, path, testSecret, "--space", "default"); got.code != exitDone {
		t.Errorf("another space: %+v", got)
	}

	// Its runs are gone, its inbox is not.
	steal(t, path, func(th *thief) { th.exec(`DELETE FROM runs WHERE space = 'zoo'`) })
	if got := verified(t, path, testSecret); got.code != exitUnproven || !strings.Contains(got.out, "BROKEN run_1 in space zoo: the run is gone") {
		t.Errorf("a space without its runs: %+v", got)
	}
}

func TestVerifyGoesThroughEveryPage(t *testing.T) {
	path, _ := staged(t, nil, "read")
	s, err := newStage(path, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	for range 1001 {
		if _, err := s.run("read"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	steal(t, path, func(th *thief) { th.flip("payload", "run = 'run_1' AND seq = 1") }) // the last one
	got := verified(t, path, "")
	if got.code != exitUnproven || !strings.Contains(got.out, "1002 runs") || !strings.Contains(got.out, "run_1:") {
		t.Errorf("exit %d\n%s%s", got.code, got.out, got.err)
	}
}

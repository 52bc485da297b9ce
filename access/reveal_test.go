package access

import (
	"errors"
	"slices"
	"testing"

	"github.com/ringi-dev/ringi"
)

// S-31: who had a masked value shown stands among the changes; where it cannot
// be recorded that is an error.
func TestS31_RevealedIsRecorded(t *testing.T) {
	h := newHouse(t, Options{})
	u := h.add(t, "ana", RoleApprover)
	w, _ := h.enterAs(t, u.ID)
	if err := h.NoteReveal(ctx, w.Principal, "req_1", []string{"iban", "pin"}); err != nil {
		t.Fatal(err)
	}
	auditor := person("local:olga", RoleAuditor)
	all, err := h.Changes(ctx, auditor, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(c Change) bool { return c.What == "request.revealed" })
	if i < 0 {
		t.Fatalf("not recorded: %+v", all)
	}
	last := all[i]
	if last.By != u.ID || last.Auth != AuthLink || last.Target != "req_1" || last.Detail != "iban pin" {
		t.Errorf("recorded %+v", last)
	}
	h.db.Close()
	if err := h.NoteReveal(ctx, w.Principal, "req_1", nil); !errors.Is(err, ringi.ErrNotRecorded) {
		t.Errorf("without a database: %v", err)
	}
}

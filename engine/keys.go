package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/sign"
)

// This file rotates keys: what a store still holds of one, how it is taken off
// the store's list, and what is said of a run whose key is gone.

// KeyUse says what a store holds of one key that it has used.
type KeyUse struct {
	ID string `json:"id"`
	// Here is set where this process has the key, Signs where it signs with it.
	Here  bool `json:"here"`
	Signs bool `json:"signs"`
	// Open counts what needs the key to go on; Holds names it, the first 100.
	Open  int       `json:"open"`
	Holds []KeyHold `json:"holds,omitempty"`
	// Ended counts ended runs that only this key can authenticate.
	Ended int `json:"ended"`
}

// KeyHold is something that cannot go on without a key.
type KeyHold struct {
	Space string `json:"space"`
	RunID string `json:"run_id"`
	// RequestID is empty where it is the run's own commit.
	RequestID string `json:"request_id,omitempty"`
	Why       string `json:"why"`
}

func (h KeyHold) String() string {
	name := "run " + h.RunID
	if h.RequestID != "" {
		name = "request " + h.RequestID + " of " + name
	}
	return name + " in space " + h.Space + " (" + h.Why + ")"
}

// maxHolds bounds what is named; the rest is counted.
const maxHolds = 100

// KeyHeldError refuses to retire a key, and says what still needs it.
type KeyHeldError struct {
	Key string
	// Open counts, Holds names the first 100 of them.
	Open  int
	Holds []KeyHold
}

func (e *KeyHeldError) Error() string {
	const named = 3
	var names []string
	for _, h := range e.Holds[:min(named, len(e.Holds))] {
		names = append(names, h.String())
	}
	text := fmt.Sprintf("it is still needed by %s", strings.Join(names, ", "))
	if more := e.Open - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// NoKeyError says that a run cannot be authenticated: what signed it is a key
// that this process does not have. Its chain is whole; who wrote it is not
// shown. It wraps ringi.ErrNoKey.
type NoKeyError struct {
	Key string
	// RetiredAt and RetiredBy are set for a key that Engine.RetireKey took off
	// the store's list. The note is the store's, and no key protects it.
	RetiredAt time.Time
	RetiredBy string
}

func (e *NoKeyError) Error() string {
	text := fmt.Sprintf("signed with key %s, which is not here", e.Key)
	if !e.RetiredAt.IsZero() {
		text += fmt.Sprintf("; %s retired it on %s", e.RetiredBy, e.RetiredAt.Format(time.RFC3339))
	}
	return text + ": the chain holds, and that a holder of the key wrote it cannot be shown without that key"
}

// Unwrap returns ringi.ErrNoKey.
func (e *NoKeyError) Unwrap() error { return ringi.ErrNoKey }

// Keys says of every key that the store has used what it still holds, over all
// spaces, sorted by id. It reads every run that has not ended.
func (e *Engine) Keys(ctx context.Context) ([]KeyUse, error) {
	used, err := e.store.Keys(ctx)
	if err != nil {
		return nil, fmt.Errorf("read key memory: %w", err)
	}
	by := map[string]*KeyUse{}
	for id := range used {
		by[id] = &KeyUse{ID: id, Here: e.cfg.Keyring.Has(id), Signs: e.cfg.Keyring.SigningID() == id}
	}
	if err := e.keyUses(ctx, by); err != nil {
		return nil, fmt.Errorf("look for uses of keys: %w", err)
	}
	var out []KeyUse
	for _, u := range by {
		out = append(out, *u)
	}
	slices.SortFunc(out, func(a, b KeyUse) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// RetireKey takes a key off the list of those that the store has used, so that
// a process without it may open the store. It is refused with a *KeyHeldError
// while something open needs the key: an unfinished run whose newest commit is
// by it, an open request signed with it, an approval or a call that is not
// done; and for the key that this process signs with, as for the only one.
// ringi.ErrNotFound for a key that the store does not know.
//
// Retire a key once no process signs with it any more: one that does so all
// the same writes runs that the others do not take. The secret is still worth
// keeping. KeyUse.Ended counts the ended runs that nothing else can
// authenticate: without it Verify answers a *NoKeyError for them, and their
// threads take no new run. A keyring may hold a retired key in second place.
//
// The store notes who retired it, and when.
func (e *Engine) RetireKey(ctx context.Context, id string, by ringi.Principal) (KeyUse, error) {
	u, err := e.retire(ctx, id, by)
	if err != nil {
		return u, fmt.Errorf("retire key %s: %w", id, err)
	}
	return u, nil
}

func (e *Engine) retire(ctx context.Context, id string, by ringi.Principal) (KeyUse, error) {
	u := KeyUse{ID: id, Here: e.cfg.Keyring.Has(id), Signs: e.cfg.Keyring.SigningID() == id}
	if err := e.mayWrite(); err != nil {
		return u, err
	}
	if by.IsZero() {
		return u, ringi.ErrNoPrincipal
	}
	used, err := e.store.Keys(ctx)
	if err != nil {
		return u, fmt.Errorf("read key memory: %w", err)
	}
	check, known := used[id]
	switch {
	case !known:
		return u, fmt.Errorf("%w among the keys of this store", ringi.ErrNotFound)
	case u.Signs:
		return u, errors.New("this process signs with it: put another key first")
	}
	at, err := e.now(ctx)
	if err != nil {
		return u, err
	}
	if err := e.unused(ctx, &u); err != nil {
		return u, err
	}
	if err := e.store.ForgetKey(ctx, id); err != nil {
		return u, err
	}
	// A process that signs with it may have begun something meanwhile: look
	// again, and take it back.
	if err := e.unused(ctx, &u); err != nil {
		back := e.store.RememberKey(context.WithoutCancel(ctx), id, check)
		return u, errors.Join(err, back)
	}
	note, err := json.Marshal(retirement{At: at, By: by.ID})
	if err == nil {
		err = e.store.SetFlag(ctx, retiredFlag+id, string(note))
	}
	if err != nil {
		return u, fmt.Errorf("it is off the list, and who did it is not noted: %w", err)
	}
	e.log.Warn("key is retired", "key", id, "by", by.ID, "ended_runs", u.Ended)
	return u, nil
}

// retirement is what the store notes of a key that was retired, under a flag.
type retirement struct {
	At time.Time `json:"at"`
	By string    `json:"by"`
}

const retiredFlag = "retired_key/"

// unused counts anew what a key holds, and refuses where that is anything.
func (e *Engine) unused(ctx context.Context, u *KeyUse) error {
	u.Open, u.Holds, u.Ended = 0, nil, 0
	if err := e.keyUses(ctx, map[string]*KeyUse{u.ID: u}); err != nil {
		return err
	}
	if u.Open > 0 {
		return &KeyHeldError{Key: u.ID, Open: u.Open, Holds: u.Holds}
	}
	return nil
}

// keyUses goes through the runs of every space.
func (e *Engine) keyUses(ctx context.Context, by map[string]*KeyUse) error {
	spaces, err := e.store.Spaces(ctx)
	if err != nil {
		return fmt.Errorf("list spaces: %w", err)
	}
	for _, space := range spaces {
		q := ringi.RunQuery{Space: space, Limit: 1000}
		for {
			rows, err := e.store.Runs(ctx, q)
			if err != nil {
				return fmt.Errorf("list runs: %w", err)
			}
			for i := range rows {
				if err := e.keyUsesOf(ctx, &rows[i], by); err != nil {
					return err
				}
			}
			if len(rows) < q.Limit {
				break
			}
			q.After = rows[len(rows)-1].ID
		}
	}
	return nil
}

// keyUsesOf adds what one run holds. A run that is corrupt, or was written
// without a key, does not go on with any key.
func (e *Engine) keyUsesOf(ctx context.Context, row *ringi.RunRow, by map[string]*KeyUse) error {
	kid, _, _ := strings.Cut(row.MAC, ".")
	u := by[kid]
	switch {
	case row.Status.Final():
		if u != nil {
			u.Ended++
		}
		return nil
	case row.Corrupt != "" || row.MAC == "":
		return nil
	case u != nil:
		u.hold(row, "", "it is "+string(row.Status)+", and its newest commit is by this key")
	}
	s, err := e.load(ctx, row.Space, row.ID)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ringi.ErrCorrupt) || errors.Is(err, errErased) || errors.Is(err, ringi.ErrNotFound):
		return nil
	case err != nil: // whatever it may hold, it may hold
		for _, other := range by {
			if other != u {
				other.hold(row, "", fmt.Sprintf("it cannot be read: %v", err))
			}
		}
		return nil
	}
	for _, r := range s.requests {
		why := r.needed()
		if why == "" {
			continue
		}
		for id := range r.keyIDs() {
			if u := by[id]; u != nil {
				u.hold(row, r.ev.Request, why)
			}
		}
	}
	return nil
}

func (u *KeyUse) hold(row *ringi.RunRow, request, why string) {
	u.Open++
	if len(u.Holds) < maxHolds {
		u.Holds = append(u.Holds, KeyHold{Space: row.Space, RunID: row.ID, RequestID: request, Why: why})
	}
}

// needed says why the signatures of a request will be looked at again; empty
// where nothing more comes of it.
func (r *request) needed() string {
	switch {
	case r.state == ringi.Pending:
		return "it is pending"
	case r.state == ringi.Granted:
		return "its approval is not spent"
	case r.call.result == nil && (r.call.request == r || r.call.outcome == r):
		return "its call has no result yet"
	}
	return ""
}

// keyIDs are the keys that a request and its answer name.
func (r *request) keyIDs() map[string]bool {
	return map[string]bool{keyIDOf(r.ev.Signature): true, keyIDOf(r.answerSignature()): true}
}

// answerSignature is the signature of whatever answer a request has.
func (r *request) answerSignature() string {
	switch {
	case r.decided != nil:
		return r.decided.Signature
	case r.settled != nil:
		return r.settled.Signature
	}
	return ""
}

// keyIDOf is the key that a signature names; empty for what is no signature.
func keyIDOf(signature string) string {
	id, err := sign.SignatureKeyID(signature)
	if err != nil {
		return ""
	}
	return id
}

// keyGone says of a signature, or of a run's MAC, whose key is not here.
func (e *Engine) keyGone(ctx context.Context, kid string) error {
	gone := &NoKeyError{Key: kid}
	text, err := e.store.Flag(ctx, retiredFlag+kid)
	if err != nil {
		return fmt.Errorf("read what is known of key %s: %w", kid, err)
	}
	var note retirement
	if json.Unmarshal([]byte(text), &note) == nil { // a note that is none says nothing
		gone.RetiredAt, gone.RetiredBy = note.At, note.By
	}
	return gone
}

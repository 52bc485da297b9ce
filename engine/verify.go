package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/audit"
	"github.com/ringi-dev/ringi/sign"
)

// Verification says what the check of one run proves.
type Verification struct {
	RunID   string `json:"run_id"`
	Records int    `json:"records"`
	// Erased counts payloads that were removed; their chain is whole.
	Erased int `json:"erased,omitempty"`
	// Requests and Decisions count the signatures that were checked.
	Requests  int `json:"requests"`
	Decisions int `json:"decisions"`
	// Signed is set where commit, requests and decisions were checked with a
	// key; without one the chain alone is.
	Signed bool `json:"signed"`
	// Broken says what is wrong; empty for an intact run.
	Broken string `json:"broken,omitempty"`
}

// Verify checks one run: its chain and commitments, and, with a key, the MAC
// of its newest commit and every signature of a request and a decision. What
// is broken is told in the Verification; an error means that the check itself
// could not be made.
func (e *Engine) Verify(ctx context.Context, runID string) (Verification, error) {
	v := Verification{RunID: runID, Signed: e.cfg.Keyring != nil}
	stored, err := e.store.Load(ctx, e.cfg.Space, runID)
	if err != nil {
		return v, fmt.Errorf("verify run %s: %w", runID, err)
	}
	report := audit.VerifyRun(e.storeID, stored.Row.Space, runID, stored.Records, stored.Row.Head, stored.Row.Seq)
	v.Records, v.Erased = report.Records, report.Erased
	if report.Broken != nil {
		v.Broken = report.Broken.Error()
		return v, nil
	}
	if err := e.checkMAC(&stored.Row); errors.Is(err, errNoMAC) {
		v.Broken = "commit has no MAC" // a keyed store has written none without
		return v, nil
	} else if errors.Is(err, sign.ErrRetired) {
		kid, _, _ := strings.Cut(stored.Row.MAC, ".")
		return v, fmt.Errorf("verify run %s: %w", runID, e.keyGone(ctx, kid)) // it could not be checked
	} else if errors.Is(err, ringi.ErrNoKey) {
		return v, fmt.Errorf("verify run %s: %w", runID, err)
	} else if err != nil {
		v.Broken = "commit MAC: " + err.Error()
		return v, nil
	}
	if v.Erased > 0 {
		return v, nil // what was erased cannot be folded; the chain is whole
	}
	s, err := e.fold(stored)
	if err != nil {
		v.Broken = err.Error()
		return v, nil
	}
	if err := e.verifySignatures(ctx, s, &v); errors.Is(err, ringi.ErrNoKey) {
		return v, fmt.Errorf("verify run %s: %w", runID, err)
	} else if err != nil {
		v.Broken = err.Error()
	}
	return v, nil
}

// verifySignatures checks every request and decision of a run.
func (e *Engine) verifySignatures(ctx context.Context, s *state, v *Verification) error {
	a := &activation{e: e, s: s}
	for _, r := range s.requests {
		if err := e.verifyRequest(s, r); err != nil {
			if errors.Is(err, ringi.ErrNoKey) {
				v.Signed = false
				return nil
			}
			if errors.Is(err, sign.ErrRetired) {
				return e.keyGone(ctx, keyIDOf(r.ev.Signature))
			}
			return fmt.Errorf("request %s: %w", r.ev.Request, err)
		}
		v.Requests++
		if err := a.verifyAnswer(r); errors.Is(err, sign.ErrRetired) {
			return e.keyGone(ctx, keyIDOf(r.answerSignature()))
		} else if err != nil {
			return fmt.Errorf("decision on request %s: %w", r.ev.Request, err)
		}
		if r.decided != nil || r.settled != nil {
			v.Decisions++
		}
	}
	return nil
}

// verifyAnswer checks the signature of whatever answer a request has.
func (a *activation) verifyAnswer(r *request) error {
	k := a.e.cfg.Keyring
	if d := r.decided; d != nil && d.Answer == ringi.Approve && d.Bytes != r.blind(a.e.inputOf(r)) {
		return errors.New("the bytes are not those of the request")
	}
	if d := r.decided; d != nil && k != nil {
		return k.VerifyDecision(a.e.tuple(r, d.Answer, d.Bytes, d.Reason, d.By, d.At), d.Signature)
	}
	if d := r.settled; d != nil && k != nil {
		return k.VerifyDecision(a.e.tuple(r, d.Answer, r.blind(ringi.Input(d.Result)), d.Reason, d.By, d.At), d.Signature)
	}
	return nil
}

// Judge answers what policy says of a call in a run that would start so, by
// the very code of a run: the input check, the offer, every rung, floor and
// rule. Nothing is recorded.
func (e *Engine) Judge(ctx context.Context, call ringi.ToolCall, start ringi.RunStart) (ringi.Verdict, error) {
	runtime, err := ringi.EncodeRuntime(start.Runtime)
	if err != nil {
		return ringi.Verdict{}, err
	}
	msgs, err := given(start.Messages, start.By)
	if err != nil {
		return ringi.Verdict{}, err
	}
	a := &activation{e: e, parent: parentOf(ctx)}
	a.s = &state{id: "run_judge", space: e.cfg.Space, start: &ringi.RunStarted{By: start.By, Zone: e.cfg.Zone, Groups: start.Groups,
		AllGroups: start.Groups == nil, Tools: start.Tools, AllTools: start.Tools == nil, Limits: e.limits, Unattended: start.Unattended,
		Deciders: e.cfg.Deciders, FourEyes: string(e.cfg.FourEyes), Messages: msgs, Runtime: runtime}}
	a.inherit(a.s.start)
	a.s.start.Initiators = a.initiators(a.s.start)
	a.setInfo()
	a.prepareMessages()
	st, err := a.prepare(ctx, 1, a.msgs)
	if err != nil {
		return ringi.Verdict{}, err
	}
	j := ringi.JudgedCall{ID: "call_judge", ModelID: call.ModelID, Tool: call.Tool, Input: call.Input}
	judges := a.judging(st)
	judges.judge(ctx, &j, 0)
	return j.Verdict, nil
}

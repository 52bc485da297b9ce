package main

import (
	"context"
	"errors"

	"github.com/ringi-dev/ringi"
)

// verifyAtServer asks a server to check the runs that the token may see, or
// one. The server has the store and the key: what it says is what it found.
func (e *env) verifyAtServer(ctx context.Context, address, run string) error {
	d, err := e.serverDesk(ctx, address)
	if err != nil {
		return err
	}
	v := &verifier{e: e, space: d.space(), report: verifyReport{Store: address, Spaces: []string{d.space()}, Signed: true, Keyed: true,
		Broken: []finding{}, Unproven: []finding{}, Unchecked: []finding{}}}
	v.steps = newSteps(e, "run")
	err = v.eachAtServer(ctx, d, run)
	v.steps.stop()
	if err != nil {
		return err
	}
	if err := v.print(); err != nil {
		return err
	}
	return v.verdict()
}

func (v *verifier) eachAtServer(ctx context.Context, d *serverDesk, run string) error {
	if run != "" {
		return v.oneAtServer(ctx, d, run)
	}
	q := ringi.RunQuery{Limit: 1000}
	for {
		rows, err := d.Runs(ctx, q)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := v.oneAtServer(ctx, d, row.ID); err != nil {
				return err
			}
			v.steps.step()
		}
		if len(rows) < q.Limit {
			return nil
		}
		q.After = rows[len(rows)-1].ID
	}
}

// oneAtServer notes what the server says of a run. What it refuses to answer at
// all ends the command: a report of half the runs is none.
func (v *verifier) oneAtServer(ctx context.Context, d *serverDesk, run string) error {
	got, err := d.Verify(ctx, run)
	r := &v.report
	switch {
	case errors.Is(err, ringi.ErrCorrupt):
		v.broken(run, "%v", err)
		return nil
	case errors.Is(err, ringi.ErrNoKey):
		r.Unproven = append(r.Unproven, finding{v.space, run, err.Error()})
		return nil
	case err != nil:
		return err
	}
	r.Runs++
	r.Records += got.Records
	r.Erased += got.Erased
	r.Requests += got.Requests
	r.Decisions += got.Decisions
	r.Signed, r.Keyed = r.Signed && got.Signed, r.Keyed && got.Signed
	if got.Broken != "" {
		v.broken(run, "%s", got.Broken)
	}
	return nil
}

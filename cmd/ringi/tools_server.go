package main

import (
	"context"

	"github.com/ringi-dev/ringi"
)

// showServerTools asks a server what a run of an agent would be offered.
func (e *env) showServerTools(ctx context.Context, address string, f toolsFlags) error {
	if f.admin || f.zone != "" {
		return usagef("--admin and --zone are for --tools: at a server the token says who starts the run, the agent has its zone")
	}
	d, err := e.serverDesk(ctx, address)
	if err != nil {
		return err
	}
	run := ringi.RunInfo{Agent: f.agent, Groups: f.groups}
	if f.unattended {
		run.Unattended = ringi.PerTool
	}
	offer, err := d.Offered(ctx, run)
	if err != nil {
		return err
	}
	withheld, err := d.Withheld(ctx, f.agent)
	if err != nil {
		return err
	}
	r := toolsReport{Offered: []offeredTool{}, Refused: append([]ringi.Refusal{}, offer.Refused...), Unattended: withheld, Undeclared: []string{}}
	for _, t := range offer.Tools {
		r.Offered = append(r.Offered, offeredTool{t.Name, t.Effect, t.Group, t.DataClass, t.AdminOnly})
		if t.Effect == "" {
			r.Undeclared = append(r.Undeclared, t.Name)
		}
	}
	if e.json {
		return e.printJSON(r)
	}
	return e.printTools(r)
}

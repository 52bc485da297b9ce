package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/policy"
)

// mayDecide is policy's word on who may give an answer, with four eyes meant
// for people, and teams as they are now, where the engine knows them.
//
// Errors: those of policy.MayDecide, and another where it cannot be told now
// who is who: then nobody approves.
func (e *Engine) mayDecide(ctx context.Context, rule policy.DecideRule, by ringi.Principal, answer ringi.Answer, proposedBy string) error {
	if rule.FourEyes && answer != ringi.Deny {
		ids := append(slices.Clone(rule.Initiators), by.ID)
		if proposedBy != "" {
			ids = append(ids, proposedBy)
		}
		var err error
		if rule.People, err = e.people(ctx, ids); err != nil {
			return fmt.Errorf("decide: %w", err)
		}
	}
	by, err := e.inTeams(ctx, rule.Deciders, by)
	if err != nil {
		return fmt.Errorf("decide: %w", err)
	}
	return policy.MayDecide(rule, by, answer, proposedBy)
}

// inTeams is a person with the teams that he is in now, where they count.
func (e *Engine) inTeams(ctx context.Context, deciders ringi.Deciders, by ringi.Principal) (ringi.Principal, error) {
	if e.cfg.Members == nil || by.Kind != ringi.Person || len(deciders.Teams) == 0 || slices.Contains(deciders.People, by.ID) {
		return by, nil
	}
	teams, known, err := e.cfg.Members.TeamsOf(ctx, by.ID)
	if err != nil {
		return by, fmt.Errorf("find teams: %w", err)
	}
	if known {
		by.Teams = teams
	}
	return by, nil
}

// noDecider reports whether nobody is left who may approve. Where it cannot be
// told who is who the question goes out: who answers is looked at again.
func (e *Engine) noDecider(ctx context.Context, rule policy.DecideRule) bool {
	if rule.FourEyes {
		ids := append(slices.Clone(rule.Initiators), rule.Deciders.People...)
		for _, team := range rule.Deciders.Teams {
			ids = append(ids, e.cfg.Teams[team]...)
		}
		var err error
		if rule.People, err = e.people(ctx, ids); err != nil {
			e.log.Warn("four eyes: the question goes out unchecked", "error", err)
			return false
		}
	}
	return policy.NoDecider(rule, e.cfg.Teams)
}

// people are the persons behind ids; nil where the engine knows nobody.
func (e *Engine) people(ctx context.Context, ids []string) (map[string]string, error) {
	if e.cfg.Persons == nil {
		return nil, nil
	}
	persons, err := e.cfg.Persons.Persons(ctx, ids)
	if err == nil && len(persons) != len(ids) {
		err = fmt.Errorf("%d answers for %d ids", len(persons), len(ids))
	}
	if err != nil {
		return nil, fmt.Errorf("find persons: %w", err)
	}
	out := make(map[string]string, len(ids))
	for i, id := range ids {
		if id != "" {
			out[id] = persons[i]
		}
	}
	return out, nil
}

package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/ringi-dev/ringi"
)

// Observer is told what happens in a run. Observers observe: nothing that they
// return or change counts, and a panic is logged and forgotten. Functions are
// called in the run's own goroutine, in order, but ToolStart and ToolEnd of
// reads, which may run at once.
type Observer struct {
	Start     func(ctx context.Context, run ringi.RunInfo)
	StepStart func(ctx context.Context, run ringi.RunInfo, step int)
	ToolStart func(ctx context.Context, run ringi.RunInfo, call ringi.ToolCall)
	ToolEnd   func(ctx context.Context, run ringi.RunInfo, result ringi.ToolResult)
	StepEnd   func(ctx context.Context, run ringi.RunInfo, step int, usage ringi.Usage)
	// End is called once an activation: when the run ended, or waits.
	End func(ctx context.Context, run ringi.RunInfo, result ringi.Result)
}

// StepInfo is what PrepareStep and stop conditions are told.
type StepInfo struct {
	Run ringi.RunInfo
	// Step is the step to come, counted from 1; for a stop condition the one
	// that ended.
	Step  int
	Usage ringi.Usage
	// Messages are a copy of those of the conversation so far.
	Messages []ringi.Message
	// Calls and Results are those of the step that ended.
	Calls   []ringi.ToolCall
	Results []ringi.ToolResult
}

// StepPlan is what a step is prepared to. The zero value changes nothing.
type StepPlan struct {
	// Tools narrows the offer to these names; nil leaves it. A name that is
	// not in the offer adds nothing.
	Tools []string
	// Approval tightens: it joins the floor for this step's calls.
	Approval ringi.Approval
	// Model and Zone take the place of the engine's for this step. A Model
	// with a zero Zone counts as the engine's own zone.
	Model ringi.Model
	Zone  ringi.TrustZone
	// System, where it is set, takes the place of the system prompt.
	System *string
	// Messages, where they are set, are sent in place of the conversation. The
	// digest of the prompt that was sent is in the log.
	Messages []ringi.Message
}

// PrepareStep may narrow tools and tighten approval before a step, never
// widen. An error or a panic fails the run; it may be asked again for the same
// step after a restart, so it must have no effects.
type PrepareStep func(ctx context.Context, info StepInfo) (StepPlan, error)

// StopWhen ends a run, completed, after a step for which it holds.
type StopWhen func(info StepInfo) bool

// StopAfterSteps holds after n steps.
func StopAfterSteps(n int) StopWhen {
	return func(i StepInfo) bool { return i.Step >= n }
}

// StopOnTool holds after a step that called the tool.
func StopOnTool(name string) StopWhen {
	return func(i StepInfo) bool {
		return slices.ContainsFunc(i.Calls, func(c ringi.ToolCall) bool { return c.Tool == name })
	}
}

// tell calls one function of every observer, recovered.
func (a *activation) tell(f func(o *Observer)) {
	for i := range a.e.cfg.Observers {
		func() {
			defer func() {
				if p := recover(); p != nil {
					a.e.log.Error("observer panicked", "run", a.s.id, "panic", fmt.Sprint(p))
				}
			}()
			f(&a.e.cfg.Observers[i])
		}()
	}
}

func (a *activation) tellStart(ctx context.Context) {
	if len(a.e.cfg.Observers) == 0 {
		return
	}
	a.tell(func(o *Observer) {
		if o.Start != nil {
			o.Start(ctx, cloneInfo(a.info))
		}
	})
}

func (a *activation) tellStepStart(ctx context.Context, step int) {
	if len(a.e.cfg.Observers) == 0 {
		return
	}
	a.tell(func(o *Observer) {
		if o.StepStart != nil {
			o.StepStart(ctx, cloneInfo(a.info), step)
		}
	})
}

func (a *activation) tellToolStart(ctx context.Context, c ringi.ToolCall) {
	if len(a.e.cfg.Observers) == 0 {
		return
	}
	a.tell(func(o *Observer) {
		if o.ToolStart != nil {
			o.ToolStart(ctx, cloneInfo(a.info), c)
		}
	})
}

func (a *activation) tellToolEnd(ctx context.Context, r *ringi.ToolResult) {
	if len(a.e.cfg.Observers) == 0 {
		return
	}
	a.tell(func(o *Observer) {
		if o.ToolEnd != nil {
			o.ToolEnd(ctx, cloneInfo(a.info), *r)
		}
	})
}

func (a *activation) tellStepEnd(ctx context.Context, t *turn) {
	if len(a.e.cfg.Observers) == 0 {
		return
	}
	a.tell(func(o *Observer) {
		if o.StepEnd != nil {
			o.StepEnd(ctx, cloneInfo(a.info), t.ev.Step, t.ev.Usage)
		}
	})
}

func (a *activation) tellEnd(ctx context.Context, r *ringi.Result) {
	if len(a.e.cfg.Observers) == 0 {
		return
	}
	a.tell(func(o *Observer) {
		if o.End != nil {
			o.End(ctx, cloneInfo(a.info), *r)
		}
	})
}

package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ringi-dev/ringi"
)

// DefaultTimeout is how long an approval function may take.
const DefaultTimeout = 2 * time.Second

// maxReason bounds a function's reason, in bytes: the model and the log get it.
const maxReason = 8 << 10

// needsFunc is rung 4 as a function of the input.
type needsFunc = func(context.Context, ringi.ToolCall) (bool, error)

// Ask asks rungs 1 to 4 of the approval ladder in order, until one has an
// opinion: the generic function, the tool's function, the tool's status, and
// the tool's own NeedsApproval (true asks a person; false is no opinion, the
// rule follows). It returns the zero Verdict where none has one. needs is the
// hook beside the handler; nil where there is none. Names are exact.
//
// A function runs on a goroutine of its own, under ctx and timeout (0 means
// [DefaultTimeout]). One that fails, panics, answers with an unknown status or
// does not answer in time denies; one that ignores its context is left behind,
// and its late answer is dropped. The reason of such a denial says what went
// wrong without the function's own words, since the model reads it; the words
// go to [WithFaultFunc]. Where ctx itself ended the denial is not policy's
// word: look at ctx.Err() before recording it.
//
// The source of a verdict is set here, whatever a function returns.
func Ask(ctx context.Context, a ringi.Approval, needs func(context.Context, ringi.ToolCall) (bool, error), c ringi.CallInfo, timeout time.Duration) ringi.Verdict {
	v := askSettings(ctx, &a, &c, timeout, &ladder)
	if v.Status != "" {
		return v
	}
	if v := toolOpinion(&c.Tool); v.Status != "" || needs == nil {
		return v
	}
	return askNeeds(ctx, needs, c, timeout)
}

// AskFloor asks the floor: rungs 1 to 3 of its own settings, as [Ask] does,
// and then require, the names that an operator declared approval-bound: for
// those the answer is user-approval at least. Sources begin with "floor".
func AskFloor(ctx context.Context, floor ringi.Approval, require []string, c ringi.CallInfo, timeout time.Duration) ringi.Verdict {
	v := askSettings(ctx, &floor, &c, timeout, &floorLadder)
	return Strictest(v, operatorWord(require, c.Call.Tool))
}

// rungs names the sources of one ladder.
type rungs struct{ generic, toolFunc, toolStatus string }

var (
	ladder      = rungs{ringi.SourceFunc, ringi.SourceToolFunc, ringi.SourceToolStatus}
	floorLadder = rungs{floorFunc, floorToolFunc, floorToolStatus}
)

// askSettings takes pointers for speed alone: what a function is told is a copy
// of its own.
func askSettings(ctx context.Context, a *ringi.Approval, c *ringi.CallInfo, timeout time.Duration, r *rungs) ringi.Verdict {
	if c.Tool.Name != c.Call.Tool {
		return fault(ctx, r.generic, "the call and the tool that is judged differ", fmt.Errorf("call names %q, tool is %q", c.Call.Tool, c.Tool.Name))
	}
	if a.Func != nil {
		if v := askFunc(ctx, a.Func, *c, timeout, r.generic); v.Status != "" {
			return v
		}
	}
	own, ok := a.Tools[c.Call.Tool]
	if !ok {
		return ringi.Verdict{}
	}
	if own.Func != nil {
		if v := askFunc(ctx, own.Func, *c, timeout, r.toolFunc); v.Status != "" {
			return v
		}
	}
	return statusOpinion(own, r.toolStatus)
}

// statusOpinion is rung 3.
func statusOpinion(own ringi.ToolApproval, source string) ringi.Verdict {
	if own.Status == "" {
		return ringi.Verdict{}
	}
	return refuseUnknown(ringi.Verdict{Status: own.Status, Source: source, Reason: own.Reason})
}

// operatorWord is what require_approval says of a tool.
func operatorWord(require []string, name string) ringi.Verdict {
	for _, n := range require {
		if strings.EqualFold(n, name) { // names are unique whatever the case: this only tightens
			return ringi.Verdict{Status: ringi.UserApproval, Source: ringi.SourceOperator, Reason: "the operator declares the tool approval-bound"}
		}
	}
	return ringi.Verdict{}
}

func askFunc(ctx context.Context, f ringi.ApprovalFunc, c ringi.CallInfo, timeout time.Duration, source string) ringi.Verdict {
	v, err := bounded(ctx, timeout, func(ctx context.Context) (ringi.Verdict, error) { return f(ctx, c) })
	if err != nil {
		return fault(ctx, source, failure(err), err)
	}
	v.Source = source
	v.Reason = boundReason(v.Reason)
	if checked := refuseUnknown(v); checked != v {
		return fault(ctx, source, "the approval function gave an unknown status", errors.New(checked.Reason))
	}
	if v.Status == "" {
		return ringi.Verdict{}
	}
	return v
}

// needsApproval is the word of a tool's own function.
var needsApproval = ringi.Verdict{Status: ringi.UserApproval, Source: ringi.SourceNeeds, Reason: "the tool says that this call needs approval"}

func askNeeds(ctx context.Context, needs needsFunc, c ringi.CallInfo, timeout time.Duration) ringi.Verdict {
	yes, err := bounded(ctx, timeout, func(ctx context.Context) (bool, error) { return needs(ctx, c.Call) })
	switch {
	case err != nil:
		return fault(ctx, ringi.SourceNeeds, failure(err), err)
	case yes:
		return needsApproval
	}
	return ringi.Verdict{}
}

var (
	errPanicked = errors.New("approval function panicked")
	errLate     = errors.New("approval function did not answer in time")
	errExited   = errors.New("approval function ended its goroutine")
)

// failure is the sentence that a model may read.
func failure(err error) string {
	switch {
	case errors.Is(err, errPanicked), errors.Is(err, errExited):
		return "the approval function broke down"
	case errors.Is(err, errLate):
		return "the approval function did not answer in time"
	}
	return "the approval function failed"
}

// bounded runs f on a goroutine of its own. The channel has room for the
// answer, so that a late one is dropped and its goroutine ends.
func bounded[T any](ctx context.Context, timeout time.Duration, f func(context.Context) (T, error)) (T, error) {
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	type answer struct {
		v   T
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		a := answer{err: errExited} // stays where f calls runtime.Goexit
		defer func() {
			if p := recover(); p != nil {
				a = answer{err: fmt.Errorf("%w: %v", errPanicked, p)}
			}
			answers <- a
		}()
		v, err := f(ctx)
		a = answer{v, err}
	}()
	select {
	case a := <-answers:
		return a.v, a.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("%w: %w", errLate, context.Cause(ctx))
	}
}

type faultKey struct{}

// WithFaultFunc returns a context whose [Ask] and [AskFloor] tell f of every
// approval function that failed: the source of the rung, and the error with
// the function's own words, which belong in a log and never before a model. f
// is called on the asking goroutine.
func WithFaultFunc(ctx context.Context, f func(source string, err error)) context.Context {
	return context.WithValue(ctx, faultKey{}, f)
}

// fault denies, and tells the log why.
func fault(ctx context.Context, source, reason string, err error) ringi.Verdict {
	if tell, ok := ctx.Value(faultKey{}).(func(string, error)); ok && tell != nil {
		tell(source, err)
	}
	return ringi.Verdict{Status: ringi.Denied, Source: source, Reason: reason}
}

// boundReason keeps a reason storable: valid UTF-8, and not a book.
func boundReason(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxReason {
		return s
	}
	cut := maxReason
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut]
}

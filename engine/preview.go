package engine

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ringi-dev/ringi"
)

// A preview runs tool code before anybody allowed the call. This file is the
// only one that does, it holds no grant, and it asks the registry for hooks
// alone: a preview reads, and never writes.

const (
	previewTimeout = 5 * time.Second
	previewBytes   = 64 << 10
)

// preview shows what a call would do. Where that fails, the request says that
// there is no preview, and why: never an empty one.
func (a *activation) preview(ctx context.Context, k *ask) {
	hook := a.e.reg.Hooks(k.judged.Tool).Preview
	if hook == nil || k.kind == ringi.KindOutcome || k.kind == ringi.KindInput || k.kind == ringi.KindApprovalAndInput {
		return
	}
	call := ringi.ToolCall{ID: k.callID, ModelID: k.judged.ModelID, Tool: k.judged.Tool, Input: k.input}
	p, err := bounded(ctx, previewTimeout, func(ctx context.Context) (ringi.Preview, error) { return hook(ctx, call) })
	switch {
	case err != nil:
		k.noView = "no preview: " + errText(err)
	case len(p.Text) > previewBytes:
		k.noView = "no preview: it is larger than 64 KiB"
	case !utf8.ValidString(p.Text) || !utf8.ValidString(p.Format) || !utf8.ValidString(p.Precondition):
		k.noView = "no preview: it is not valid UTF-8"
	case p.Precondition != "" && a.e.reg.Hooks(k.judged.Tool).Check == nil:
		k.noView = "no preview: the tool gives a precondition and has no check for it"
	case p.Text == "" && p.Precondition == "":
		k.noView = "no preview: it is empty"
	default:
		p.Format = strings.ToLower(p.Format)
		k.preview = &p
	}
}

// bounded runs a user's function on a goroutine of its own, recovered, with a
// time limit. One that ignores its context is left, and its late answer is
// dropped.
func bounded[T any](ctx context.Context, limit time.Duration, f func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	type answer struct {
		v   T
		err error
	}
	done := make(chan answer, 1)
	go func() {
		out := answer{err: errExited}
		defer func() {
			if p := recover(); p != nil {
				out.err = fmt.Errorf("panic: %v", p)
			}
			done <- out
		}()
		out.v, out.err = f(ctx)
	}()
	select {
	case out := <-done:
		return out.v, out.err
	case <-ctx.Done():
		var zero T
		return zero, ctx.Err()
	}
}

package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi"
)

const chatLong = `Talk with an agent of the configuration, at the terminal. Where it has to ask,
you see the whole call and decide: approve, deny with a reason, edit in $EDITOR,
respond in the tool's place, or leave it for later and decide elsewhere.

Without a configuration it is the demo's agent: no key, no network.
An empty line ends the talk; --thread goes on with it.`

func newChatCommand(e *env) *cobra.Command {
	var name, thread string
	cmd := &cobra.Command{
		Use:     "chat",
		Short:   "Talk with an agent, and approve at the terminal",
		Long:    chatLong,
		Example: "  ringi chat\n  ringi chat --agent office --thread thr_01k…",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if e.json {
				return usagef("chat is for people: `ringi run --json` is for scripts")
			}
			t, err := e.talk(cmd.Context(), cmd, name)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, t.end()) }()
			return t.chat(cmd.Context(), e, thread)
		},
	}
	f := cmd.Flags()
	f.StringVar(&name, "agent", "", "the agent; needed where there are several")
	f.StringVar(&thread, "thread", "", "go on with this conversation (default: a new one)")
	serverFlags(cmd)
	return cmd
}

// chat is one message after another, each a run of the same thread.
func (t *talking) chat(ctx context.Context, e *env, thread string) error {
	d := t.dialogue(e)
	if t.demo {
		e.tell("No configuration: this is the demo's agent, a script. What happens is forgotten at the end.\nIt knows, for instance:\n")
		for _, s := range scenarios() {
			e.tell("  %s\n", s.Text)
		}
	}
	next := t.lines(e)
	for {
		res, err := t.open(ctx, d, thread)
		if err != nil {
			return err
		}
		if res == nil {
			text, err := next(ctx)
			if errors.Is(err, io.EOF) || err == nil && strings.TrimSpace(text) == "" {
				return nil
			}
			if err != nil {
				return err
			}
			res, err = d.start(ctx, ringi.RunStart{Thread: thread, By: t.by, Messages: []ringi.Message{ringi.User(text)}})
			if res, err = d.finish(ctx, res, err); err != nil {
				return interrupted(err, res)
			}
		}
		if thread == "" {
			thread = res.Thread
			e.tell("(conversation %s)\n", thread)
		}
		if res.Status.Waiting() {
			return t.waits(e, res)
		}
		if err := res.Err(); err != nil {
			e.tell("%s\n", err) // the conversation goes on
		}
	}
}

// open goes on with a run of the thread that has not ended; nil where there is
// none.
func (t *talking) open(ctx context.Context, d *dialogue, thread string) (*ringi.Result, error) {
	if thread == "" {
		return nil, nil
	}
	rows, err := t.agent.engine.Runs(ctx, ringi.RunQuery{Thread: thread, Limit: 1})
	if err != nil || len(rows) == 0 || rows[0].Status.Final() {
		return nil, err
	}
	d.tell("Going on with run %s of this conversation.\n", rows[0].ID)
	res, err := d.resume(ctx, rows[0].ID)
	return d.finish(ctx, res, err)
}

// lines reads what the person types, one message a line; from a pipe too.
func (t *talking) lines(e *env) func(context.Context) (string, error) {
	if e.interactive() {
		return func(ctx context.Context) (string, error) {
			p, err := e.asks("")
			if err != nil {
				return "", err
			}
			text, err := p.line(ctx, "\nYou: ")
			if errors.Is(err, errNothingDecided) { // the end of input
				return "", io.EOF
			}
			return text, err
		}
	}
	in := bufio.NewReader(e.in)
	return func(context.Context) (string, error) {
		text, err := in.ReadString('\n')
		if err != nil && text == "" {
			return "", err
		}
		text = strings.TrimRight(text, "\r\n")
		e.say("\nYou: %s\n", text)
		return text, nil
	}
}

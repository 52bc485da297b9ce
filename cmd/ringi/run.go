package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi"
)

const runLong = `Run an agent of the configuration once, and print what it says: for scripts and
cron. Where it has to ask a person, the command ends with exit code 3 and names
the requests: a server over the same data goes on with the run once they are
decided.

With --unattended it never waits. per_tool offers the agent only what surely
asks nobody; per_call offers also what depends on the call, and refuses the calls
that would ask. What was withheld is reported.`

func newRunCommand(e *env) *cobra.Command {
	var name, thread, unattended string
	cmd := &cobra.Command{
		Use:   "run PROMPT|-",
		Short: "Run an agent once, for scripts and cron",
		Long:  runLong,
		Example: "  ringi run \"Which orders of today are late?\" --agent office --unattended per_tool\n" +
			"  ringi run - --json < task.txt",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			mode := ringi.Unattended(unattended)
			if mode != "" && mode != ringi.PerTool && mode != ringi.PerCall {
				return usagef("unknown value %q of --unattended: say per_tool or per_call", unattended)
			}
			prompt := args[0]
			if prompt == "-" {
				var err error
				if prompt, err = e.given("-"); err != nil {
					return err
				}
			}
			if prompt == "" {
				return usagef("an empty prompt asks for nothing")
			}
			return e.runOnce(cmd, name, ringi.RunStart{Thread: thread, Unattended: mode, Messages: []ringi.Message{ringi.User(prompt)}})
		},
	}
	f := cmd.Flags()
	f.StringVar(&name, "agent", "", "the agent; needed where there are several")
	f.StringVar(&thread, "thread", "", "go on with this conversation (default: a new one)")
	f.StringVar(&unattended, "unattended", "", "ask nobody: per_tool or per_call")
	serverFlags(cmd)
	return cmd
}

func (e *env) runOnce(cmd *cobra.Command, name string, start ringi.RunStart) (err error) {
	t, err := e.talk(cmd.Context(), cmd, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.end()) }()
	start.By = t.by
	res, err := t.agent.engine.Run(cmd.Context(), start)
	if err != nil {
		return interrupted(err, res)
	}
	if e.json {
		if err := e.printJSON(res); err != nil {
			return err
		}
	} else if res.Text != "" {
		e.say("%s\n", plainText(res.Text))
	}
	for _, w := range res.Withheld {
		e.tell("withheld: %s: %s%s\n", w.Tool, string(w.Answer), plain(because(w.Reason)))
	}
	if res.Status.Waiting() {
		return t.waits(e, res)
	}
	return res.Err()
}

// interrupted says of a run that was stopped where it stands.
func interrupted(err error, res *ringi.Result) error {
	if res != nil && errors.Is(err, context.Canceled) {
		return errors.Join(errors.New("run "+res.RunID+" is left as it stands: a server over the same data goes on with it"), err)
	}
	return err
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + string(plainText(reason)) + ")"
}

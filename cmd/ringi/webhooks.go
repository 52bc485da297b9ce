package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi/webhook"
)

func newWebhooksCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "webhooks",
		Short: "List the receivers of webhooks and their dead letters, retry and test",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usagef("say ringi webhooks list, dead [NAME], retry NAME [MESSAGE], or test NAME")
		},
	}
	cmd.AddCommand(newWebhooksListCommand(e), newWebhooksDeadCommand(e), newWebhooksRetryCommand(e), newWebhooksTestCommand(e))
	return cmd
}

// overWebhooks runs a command on the webhooks of the configured server, which
// may be running. Only who sends reads their secrets.
func (e *env) overWebhooks(cmd *cobra.Command, sends bool, do func(context.Context, *webhook.Outbox) error) (err error) {
	file, _ := cmd.Flags().GetString("config")
	c, err := e.readConfig(file, typedFlags(cmd))
	if err != nil {
		return err
	}
	data, err := e.dataFolder(c)
	if err != nil {
		return err
	}
	if _, err := os.Stat(data); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no server has been started over %s yet: `ringi serve` makes it", data)
	}
	endpoints := c.receivers()
	if sends {
		if endpoints, err = e.endpoints(c); err != nil {
			return err
		}
	}
	h, err := openHooks(cmd.Context(), filepath.Join(data, webhookFile), c, webhook.Options{Endpoints: endpoints, Logger: e.logger(c)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	return do(cmd.Context(), h.Outbox)
}

func newWebhooksListCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List receivers, and how many messages wait, have arrived, or are dead letters",
		Example: "  ringi webhooks list",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.overWebhooks(cmd, false, func(ctx context.Context, b *webhook.Outbox) error {
				all, err := b.List(ctx)
				if err != nil {
					return err
				}
				if e.json {
					return e.printJSON(struct {
						Webhooks []webhook.Status `json:"webhooks"`
					}{append([]webhook.Status{}, all...)})
				}
				t := table{{"NAME", "STATE", "WAITING", "DELIVERED", "DEAD", "NEXT", "ERROR"}}
				for _, s := range all {
					next := ""
					if !s.Next.IsZero() {
						next = s.Next.Local().Format(time.DateTime)
					}
					t = append(t, []any{s.Name, webhookState(s), s.Waiting, s.Delivered, s.Dead, next, s.Error})
				}
				e.say("%s", t.lay())
				return nil
			})
		},
	}
	serverFlags(cmd)
	return cmd
}

func webhookState(s webhook.Status) string {
	switch {
	case !s.DisabledAt.IsZero():
		return "disabled: " + s.DisabledWhy
	case !s.Configured:
		return "not configured"
	case !s.Enrolled:
		return "begins with the server"
	}
	return "good"
}

func newWebhooksDeadCommand(e *env) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:     "dead [NAME]",
		Short:   "List messages that were given up, the newest first",
		Example: "  ringi webhooks dead\n  ringi webhooks dead audit --limit 10",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.overWebhooks(cmd, false, func(ctx context.Context, b *webhook.Outbox) error {
				name := ""
				if len(args) > 0 {
					name = args[0]
				}
				all, err := b.Dead(ctx, name, limit)
				if err != nil {
					return err
				}
				if e.json {
					return e.printJSON(struct {
						Dead []webhook.Letter `json:"dead"`
					}{append([]webhook.Letter{}, all...)})
				}
				t := table{{"RECEIVER", "MESSAGE", "TYPE", "RUN", "TRIES", "GIVEN UP", "ERROR"}}
				for _, l := range all {
					t = append(t, []any{l.Endpoint, l.ID, string(l.Type), l.RunID, l.Attempts, l.EndedAt.Local().Format(time.DateTime), l.Error})
				}
				e.say("%s", t.lay())
				return nil
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 100, "at most so many, up to 1,000")
	serverFlags(cmd)
	return cmd
}

const webhooksRetryLong = `Have the server send dead letters again, from the first try on: the one that is
named, or all of the receiver's. Without a message it also enables a receiver
that has answered 410 and so was disabled.`

func newWebhooksRetryCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "retry NAME [MESSAGE]",
		Short:   "Send dead letters again, and enable a receiver that was disabled",
		Long:    webhooksRetryLong,
		Example: "  ringi webhooks retry audit\n  ringi webhooks retry audit msg_01…_7_decided",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.overWebhooks(cmd, false, func(ctx context.Context, b *webhook.Outbox) error {
				id := ""
				if len(args) > 1 {
					id = args[1]
				}
				n, err := b.Retry(ctx, args[0], id)
				if err != nil {
					return err
				}
				if e.json {
					return e.printJSON(struct {
						Retried int `json:"retried"`
					}{n})
				}
				e.say("The server will send %d again to %s.\n", n, args[0])
				return nil
			})
		},
	}
	serverFlags(cmd)
	return cmd
}

func newWebhooksTestCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "test NAME",
		Short:   "Send one signed message of type webhook.test to a receiver, now and once",
		Example: "  ringi webhooks test audit",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.overWebhooks(cmd, true, func(ctx context.Context, b *webhook.Outbox) error {
				status, err := b.SendTest(ctx, args[0])
				if err != nil {
					return err
				}
				if e.json {
					return e.printJSON(struct {
						Status int `json:"status"`
					}{status})
				}
				e.say("%s took it: status %d.\n", args[0], status)
				return nil
			})
		},
	}
	serverFlags(cmd)
	return cmd
}

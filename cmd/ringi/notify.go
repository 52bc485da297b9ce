package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/notify"
)

func newNotifyCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "notify",
		Short: "Try how people are told that requests wait",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return usagef("say ringi notify test --to USER") },
	}
	cmd.AddCommand(newNotifyTestCommand(e))
	return cmd
}

const notifyTestLong = `Send a test to each address of a person, and say what became of each. A person
chooses his addresses himself, on the page Notices of the inbox.

Exit code 1 says that one of them failed, or that there is none.`

func newNotifyTestCommand(e *env) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:     "test --to USER",
		Short:   "Send a test to each address of a person",
		Long:    notifyTestLong,
		Example: "  ringi notify test --to ana",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if to == "" {
				return usagef("to whom? Say --to USER")
			}
			if !strings.Contains(to, ":") {
				to = access.LocalID(to)
			}
			return e.overDirectory(cmd, func(ctx context.Context, d *directory, c *config) error { return e.tryNotices(ctx, d, c, to) })
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "the person's id")
	serverFlags(cmd)
	return cmd
}

func (e *env) tryNotices(ctx context.Context, d *directory, c *config, user string) error {
	if _, err := d.User(ctx, user); err != nil {
		return err
	}
	data, err := e.dataFolder(c)
	if err != nil {
		return err
	}
	n, err := e.openNotices(ctx, c, filepath.Clean(data), func(what string, err error) { e.tell("ringi: %s: %s\n", plain(what), err.Error()) })
	if err != nil {
		return err
	}
	defer n.close()
	// Of a test there is no request, and so neither store nor agents.
	dispatcher, err := notify.New(notify.Options{Book: n.book, Store: noRequests{}, Service: noService{}, Directory: d.Directory, Channels: n.channels, PublicURL: c.base()})
	if err != nil {
		return err
	}
	tried, err := dispatcher.Try(ctx, user)
	if err != nil {
		return err
	}
	return e.showTried(user, tried)
}

func (e *env) showTried(user string, tried []notify.Tried) error {
	type result struct {
		Channel notify.Channel `json:"channel"`
		Name    string         `json:"name"`
		Sent    bool           `json:"sent"`
		Error   string         `json:"error,omitempty"`
	}
	out, failed := []result{}, 0
	rows := table{{"CHANNEL", "ADDRESS", "RESULT"}}
	for _, t := range tried {
		r, said := result{Channel: t.Channel, Name: t.Name, Sent: t.Err == nil}, "sent"
		if t.Err != nil {
			failed++
			r.Error = t.Err.Error()
			said = r.Error
		}
		out, rows = append(out, r), append(rows, []any{string(t.Channel), t.Name, said})
	}
	if e.json {
		if err := e.printJSON(map[string]any{"user": user, "tried": out}); err != nil {
			return err
		}
	} else if len(out) > 0 {
		e.say("%s", rows.lay())
	}
	switch {
	case len(out) == 0:
		return fmt.Errorf("there is no way to reach %s yet: he chooses one on the page Notices of the inbox", user)
	case failed > 0:
		return fmt.Errorf("%d of %d addresses of %s failed", failed, len(out), user)
	}
	return nil
}

// noRequests is a store without any.
type noRequests struct{}

func (noRequests) Requests(context.Context, ringi.RequestQuery) ([]ringi.RequestRow, error) {
	return nil, nil
}

func (noRequests) Request(context.Context, string, string) (ringi.RequestRow, error) {
	return ringi.RequestRow{}, ringi.ErrNotFound
}

// noService is a service without requests.
type noService struct{}

func (noService) Request(context.Context, string) (ringi.ApprovalRequest, error) {
	return ringi.ApprovalRequest{}, ringi.ErrNotFound
}

func (noService) Reassign(context.Context, string, ringi.Deciders, ringi.Principal, string) (ringi.Settled, error) {
	return ringi.Settled{}, ringi.ErrNotFound
}

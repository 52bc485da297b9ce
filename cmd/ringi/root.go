package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi/internal/escape"
)

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, e *env, args []string) int {
	root := newRootCommand(e)
	root.SetArgs(args)
	root.SetIn(e.in)
	root.SetOut(e.out)
	root.SetErr(e.err)
	err := root.ExecuteContext(ctx)
	if err != nil {
		e.warnf("ringi: %s\n", escape.Text(err.Error()))
	}
	return exitCode(err)
}

func newRootCommand(e *env) *cobra.Command {
	root := &cobra.Command{
		Use:           "ringi",
		Short:         "No tool call runs that nobody allowed",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&e.store, "store", "", "the store: memory, or sqlite:FILE (default: RINGI_STORE)")
	flags.StringVar(&e.space, "space", "default", "the space of the store to work in")
	flags.BoolVar(&e.json, "json", false, "write one JSON document")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usagef("%w", err) })
	root.AddCommand()
	return root
}

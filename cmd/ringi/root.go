package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

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
	if err != nil && !e.started {
		err = usagef("%w", err) // nothing ran: the line was not understood
	}
	code, sentence := exitCode(err)
	if err != nil {
		e.report(err, code, sentence)
	}
	return code
}

// report tells an error once: as a sentence, or with --json as one document.
func (e *env) report(err error, code int, sentence string) {
	if e.json {
		writeJSON(e.err, struct {
			Error string `json:"error"`
			Exit  int    `json:"exit"`
			Hint  string `json:"hint,omitempty"`
		}{err.Error(), code, sentence})
		return
	}
	// Further lines stand indented: an error may quote what somebody else wrote.
	e.tell("ringi: %s\n", plain(strings.ReplaceAll(escape.Text(err.Error()), "\n", "\n       ")))
	switch {
	case sentence != "":
		e.tell("%s\n", sentence)
	case !e.started:
		e.tell("`ringi --help` lists the commands.\n")
	}
}

const rootLong = `Ringi is an agent loop in which no tool call runs that nobody allowed: policy
decides, people approve, and what was approved is exactly what runs, once.

This command lists and settles the requests of runs that wait, from another
process than the one that runs them, and checks the log: over the file of a
store (--store), or at a server (--server, with a token in RINGI_TOKEN).

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 waiting for a person,
4 verification failed.`

const rootExample = `  ringi try                                        see it work: no key, no network
  ringi pending --store sqlite:ringi.db            what waits for a person
  ringi show req_01… --store sqlite:ringi.db       exactly what would run
  ringi approve req_01… --store sqlite:ringi.db    show it, ask, and record the answer
  ringi deny req_01… --reason "not this customer"  the model reads the reason
  ringi verify --store sqlite:ringi.db             check every run's log`

func newRootCommand(e *env) *cobra.Command {
	root := &cobra.Command{
		Use:           "ringi",
		Short:         "No tool call runs that nobody allowed",
		Long:          rootLong,
		Example:       rootExample,
		Version:       version(),
		Args:          noSuchCommand,
		SilenceErrors: true,
		SilenceUsage:  true,

		SuggestionsMinimumDistance: 2,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	flags := root.PersistentFlags()
	flags.StringVar(&e.store, "store", "", "the store: sqlite:FILE (default $RINGI_STORE)")
	flags.StringVar(&e.server, "server", "", "a server in place of a store: https://HOST[:PORT] (default $RINGI_SERVER), with the token in $RINGI_TOKEN")
	flags.StringVar(&e.tokenFile, "token-file", "", "a file with the token for --server, that only you may read")
	flags.StringVar(&e.space, "space", "default", "the space of the store to work in")
	flags.BoolVar(&e.json, "json", false, "write one JSON document")
	flags.DurationVar(&e.pause, "wait-before-prompt", time.Second, "how long a request is shown before the question")
	flags.Lookup("wait-before-prompt").Hidden = true // for tests
	root.AddCommand(
		newTryCommand(e),
		newPendingCommand(e), newShowCommand(e),
		newApproveCommand(e), newDenyCommand(e), newEditCommand(e), newFillCommand(e), newRespondCommand(e),
		newOutcomeCommand(e), newTakeBackCommand(e), newCancelCommand(e),
		newWithdrawCommand(e), newReassignCommand(e), newExtendCommand(e), newRunsCommand(e),
		newVerifyCommand(e), newDoctorCommand(e), newStoreCommand(e), newKeysCommand(e), newClockCommand(e), newReplayCommand(e), newToolsCommand(e),
		newServeCommand(e), newDemoCommand(e), newRunCommand(e), newChatCommand(e), newUserCommand(e), newTokenCommand(e), newNotifyCommand(e), newTeamCommand(e), newWebhooksCommand(e),
	)
	root.SetHelpCommand(newHelpCommand())
	markStarted(e, root)
	return root
}

// newHelpCommand is cobra's own, but that an unknown word is an error.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) > 0 {
				err = fmt.Errorf("unknown command %q", rest[0])
			}
			if err != nil {
				return err
			}
			return about.Help()
		},
	}
}

// noSuchCommand refuses a first word that is no command, and names the nearest.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return fmt.Errorf("unknown command %q; the nearest is %s", args[0], near[0])
	}
	return fmt.Errorf("unknown command %q", args[0])
}

// markStarted notes that a command runs: an error before that is one of usage.
func markStarted(e *env, c *cobra.Command) {
	if run := c.RunE; run != nil {
		c.RunE = func(cmd *cobra.Command, args []string) error {
			e.started = true
			return run(cmd, args)
		}
	}
	for _, sub := range c.Commands() {
		markStarted(e, sub)
	}
}

// released is the version of a release: scripts/release sets it as it links.
var released string

// version is the release's, or the module's with the commit where the build
// knows it.
func version() string {
	if released != "" {
		return released
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := []string{info.Main.Version}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			v = append(v, s.Value[:12])
		}
	}
	return strings.Join(v, " ")
}

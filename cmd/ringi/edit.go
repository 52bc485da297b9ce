package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/sign"
)

func newEditCommand(e *env) *cobra.Command {
	var input, digest string
	cmd := &cobra.Command{
		Use:   "edit REQUEST [--input JSON|FILE|-]",
		Short: "Propose other input; it is checked, and asked for anew",
		Example: "  ringi edit req_01k… --store sqlite:ringi.db                 in $EDITOR\n" +
			"  ringi edit req_01k… --input '{\"order_id\":\"A-1017\",\"amount\":2000}'",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			open := !cmd.Flags().Changed("input")
			if open && !e.interactive() {
				return usagef("no input, and no terminal for an editor: say --input JSON, --input FILE, or --input - for standard input")
			}
			text, err := e.givenObject(input)
			if err != nil {
				return err
			}
			return e.propose(cmd.Context(), args[0], digest, func(r ringi.ApprovalRequest, by ringi.Principal) (ringi.Decision, error) {
				if open {
					if text, err = e.edited(cmd.Context(), r); err != nil {
						return ringi.Decision{}, err
					}
				}
				return r.Edit(by, json.RawMessage(text)), nil
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&input, "input", "", "the whole input: JSON, a file, or - for standard input")
	f.StringVar(&digest, "digest", "", "the digest of the request that is meant; another one is refused as stale")
	return cmd
}

// edited opens a request's input in the person's editor. What comes back is
// without the blanks that made it readable; numbers and texts keep their bytes.
func (e *env) edited(ctx context.Context, r ringi.ApprovalRequest) (string, error) {
	if r.State != ringi.Pending || !r.Allows(ringi.Edit) {
		return "{}", nil // Decide refuses it, and says why
	}
	var before bytes.Buffer
	if err := json.Indent(&before, []byte(r.Call.Input), "", "  "); err != nil {
		return "", fmt.Errorf("lay out input: %w", err)
	}
	before.WriteByte('\n')
	after, err := e.edit(ctx, before.Bytes())
	if err != nil {
		return "", err
	}
	if bytes.Equal(after, before.Bytes()) {
		return "", fmt.Errorf("%w: the input is as it was", errNothingDecided)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, after); err != nil {
		return "", fmt.Errorf("%w: the edited input is no JSON: %w", errNothingDecided, err)
	}
	return out.String(), nil
}

// edit runs the editor over a file that only this user reads, and removes it.
func (e *env) edit(ctx context.Context, text []byte) ([]byte, error) {
	dir, err := os.MkdirTemp("", "ringi-edit-") // mode 0700
	if err != nil {
		return nil, fmt.Errorf("make file to edit: %w", err)
	}
	defer os.RemoveAll(dir)
	name := dir + string(os.PathSeparator) + "input.json"
	if err := os.WriteFile(name, text, 0o600); err != nil {
		return nil, fmt.Errorf("make file to edit: %w", err)
	}
	editor := e.editor()
	// A shell reads $EDITOR, as git and others do: it may hold arguments.
	cmd := exec.CommandContext(ctx, "sh", "-c", editor+` "$@"`, editor, name)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.in, e.err, e.err
	cmd.Env = withoutSecret(os.Environ())
	if err := cmd.Run(); err != nil {
		return nil, errors.Join(errNothingDecided, fmt.Errorf("run editor: %w", err))
	}
	after, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read edited file: %w", err)
	}
	return after, nil
}

func (e *env) editor() string {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if v := e.getenv(name); v != "" {
			return v
		}
	}
	return "vi"
}

// withoutSecret keeps the signing key and the token from a child process (S-10).
func withoutSecret(environ []string) []string {
	var out []string
	for _, v := range environ {
		if !strings.HasPrefix(v, sign.SecretEnv+"=") && !strings.HasPrefix(v, tokenEnv+"=") {
			out = append(out, v)
		}
	}
	return out
}

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/escape"
	"github.com/ringi-dev/ringi/policy"
)

// toolsFlags are the flags of ringi tools.
type toolsFlags struct {
	tools      string
	admin      bool
	groups     []string
	zone       string
	unattended bool
	agent      string
}

// newToolsCommand makes ringi tools: what a run would be offered, and why not
// more.
func newToolsCommand(e *env) *cobra.Command {
	var f toolsFlags
	cmd := &cobra.Command{
		Use:   "tools --tools FILE | --agent NAME --server URL",
		Short: "Show what a run would be offered, and why not more",
		Long: "Show which tools of a file a run would be offered, which gate refuses each of the\n" +
			"others, what each is for a caller without an approval step, and which tools do\n" +
			"not say what they do to the world. At a server it shows the tools of an agent,\n" +
			"and what a run of the token's would be offered.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("groups") {
				f.groups = nil
			}
			return e.showTools(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.tools, "tools", "", "the tools, a JSON array of definitions")
	flags.BoolVar(&f.admin, "admin", false, "who starts the run is an admin")
	flags.StringVar(&f.agent, "agent", "", "with --server: the agent whose tools are shown; needed where there are several")
	flags.StringSliceVar(&f.groups, "groups", nil, "the run's tool groups, comma separated (default all)")
	flags.StringVar(&f.zone, "zone", "", "the model's trust zone: local, private_hosted, external_eu, external_global (default none, so no ceiling)")
	flags.BoolVar(&f.unattended, "unattended", false, "nobody can be asked: only what runs without a person is offered")
	return cmd
}

// toolsReport is what ringi tools found, and its JSON.
type toolsReport struct {
	Offered []offeredTool   `json:"offered"`
	Refused []ringi.Refusal `json:"refused"`
	// Unattended is what each registered name is for a caller without an
	// approval step, offered or not.
	Unattended []ringi.Withheld `json:"unattended"`
	// Undeclared tools are judged as reads and run as non-idempotent writes.
	Undeclared []string `json:"undeclared"`
}

type offeredTool struct {
	Name      string          `json:"name"`
	Effect    ringi.Effect    `json:"effect,omitempty"`
	Group     string          `json:"group,omitempty"`
	DataClass ringi.DataClass `json:"data_class,omitempty"`
	AdminOnly bool            `json:"admin_only,omitempty"`
}

func (e *env) showTools(ctx context.Context, f toolsFlags) error {
	if f.tools == "" {
		address, err := e.serverAddress()
		if err != nil {
			return err
		}
		if address != "" {
			return e.showServerTools(ctx, address, f)
		}
	}
	if e.server != "" {
		return usagef("--tools and --server: say one of them")
	}
	if f.agent != "" {
		return usagef("--agent is for --server")
	}
	if f.tools == "" {
		return usagef("no tools: say --tools FILE")
	}
	if z := ringi.TrustZone(f.zone); z != "" && !z.Known() {
		return usagef("unknown trust zone %q: say local, private_hosted, external_eu or external_global", f.zone)
	}
	tools, err := readTools(f.tools)
	if err != nil {
		return err
	}
	reg := ringi.NewRegistry()
	if err := registerTools(reg, tools, runsNowhere); err != nil {
		return err
	}
	report := reportTools(reg, f)
	if e.json {
		return e.printJSON(report)
	}
	return e.printTools(report)
}

// reportTools asks the same gates and the same filter as a run does.
func reportTools(reg *ringi.Registry, f toolsFlags) toolsReport {
	run := ringi.RunInfo{By: ringi.Principal{ID: "cli", Kind: ringi.Person, Admin: f.admin}, Groups: f.groups}
	offer := policy.Gates{Registry: reg}.Offer(run, ringi.TrustZone(f.zone), nil)
	var names []string
	for _, t := range reg.Tools() {
		names = append(names, t.Name)
	}
	filter := policy.Unattended(reg, ringi.Approval{}, ringi.Approval{}, nil, policy.RuleOptions{})
	r := toolsReport{Offered: []offeredTool{}, Refused: offer.Refused, Unattended: filter.Explain(names), Undeclared: reg.Undeclared()}
	runs := filter.Unattended(offer.Names())
	for _, t := range offer.Tools {
		if !f.unattended || slices.Contains(runs, t.Name) {
			r.Offered = append(r.Offered, offeredTool{t.Name, t.Effect, t.Group, t.DataClass, t.AdminOnly})
		}
	}
	if r.Refused == nil {
		r.Refused = []ringi.Refusal{}
	}
	if r.Undeclared == nil {
		r.Undeclared = []string{}
	}
	return r
}

// printTools writes one line a tool under a heading a question.
func (e *env) printTools(r toolsReport) error {
	w := tabwriter.NewWriter(e.out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "Offered (%d)\n", len(r.Offered))
	for _, t := range r.Offered {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", t.Name, cmp.Or(string(t.Effect), "effect undeclared"),
			cmp.Or(string(t.DataClass), "class undeclared"), escape.Line(t.Group))
	}
	if len(r.Refused) > 0 {
		fmt.Fprintf(w, "\nRefused (%d)\n", len(r.Refused))
		for _, t := range r.Refused {
			fmt.Fprintf(w, "  %s\t%s\t%s\n", t.Tool, t.Reason, escape.Line(t.Detail))
		}
	}
	fmt.Fprintf(w, "\nFor a caller without an approval step\n")
	for _, t := range r.Unattended {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", t.Tool, t.Answer, escape.Line(t.Reason))
	}
	if len(r.Undeclared) > 0 {
		fmt.Fprintf(w, "\nEffect undeclared: judged as a read, run as a non-idempotent write\n  %s\n", strings.Join(r.Undeclared, ", "))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

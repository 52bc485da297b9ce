package policy_test

import (
	"context"
	"fmt"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/policy"
)

// An editor's dialog that runs one task has nobody to ask. It narrows its
// offer to the tools that never pause, and can say what it does without.
func ExampleUnattended() {
	registry := ringi.NewRegistry()
	run := func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) { return ringi.ToolResult{}, nil }
	for _, tool := range []ringi.Tool{
		{Name: "read_page", Effect: ringi.ReadOnly},
		{Name: "update_page", Effect: ringi.IdempotentWrite},
		{Name: "fetch_url", Effect: ringi.ReadOnly},
		{Name: "search", Remote: &ringi.Remote{Server: "search.example"}},
	} {
		if err := registry.Add(tool, run); err != nil {
			fmt.Println(err)
			return
		}
	}
	floor := []string{"fetch_url"} // an operator's require_approval

	names := policy.Gates{Registry: registry}.Offer(ringi.RunInfo{}, ringi.ZoneLocal, nil).Names()
	filter := policy.Unattended(registry, ringi.Approval{}, ringi.Approval{}, floor, policy.RuleOptions{})
	fmt.Println(filter.Unattended(names))
	for _, w := range filter.Explain(append(names, "serach")) {
		fmt.Printf("%s: %s (%s)\n", w.Tool, w.Answer, w.Reason)
	}
	// Output:
	// [read_page]
	// read_page: runs (nothing in the rule applies to the tool)
	// update_page: asks (effect is a write (idempotent_write))
	// fetch_url: asks (the operator declares the tool approval-bound)
	// search: asks (nobody judged the remote tool's server)
	// serach: unknown (no tool of this name is registered)
}

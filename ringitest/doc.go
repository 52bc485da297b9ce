// Package ringitest lets you test your own policy, your own tools and a
// restart without a model, a network or a clock.
//
//	v := ringitest.Judge(t, cfg, "pay", `{"to":"bob","amount":100001}`, Session{Role: "admin"})
//
// gives the verdict of a run for one call, by the engine's own code. For a
// whole run there are:
//
//   - [Script], a model that answers by script, and goes on after a restart;
//   - [Answers] and [ApproveAll], an approver that answers by script;
//   - [Engine], an engine over a memory store with a fixed clock and fixed ids;
//   - [Restart], the same engine as another process: nothing in memory
//     survives, and what the old one still does is refused;
//   - [Effects], which counts what handlers did, over every restart;
//   - [Crashes], which runs a scenario again for every point at which its
//     process can die;
//   - [Faults], a store whose commits fail, also after they were made.
//
// It needs package testing and nothing else. A scripted model may also play one
// in an example; a scripted approver is nobody, and belongs in tests alone.
package ringitest

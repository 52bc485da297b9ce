package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
	"github.com/ringi-dev/ringi/sign"
	"github.com/ringi-dev/ringi/store/sqlite"
)

// The agent's process has tools and a model. Another one has the store and the
// key, and is enough to decide.
func Example_twoProcesses() {
	ctx := context.Background()
	agent, agentStore := openAgent()
	defer agentStore.Close()
	res, err := agent.Run(ctx, ringi.RunStart{Messages: []ringi.Message{ringi.User("Refund order A-1017.")}})
	check(err)
	fmt.Println("agent:", res.Status) // the run is in the file, and this process may end

	inboxStore, err := sqlite.Open(file, sqlite.Options{})
	check(err)
	defer inboxStore.Close()
	inbox, err := engine.New(engine.Config{Store: inboxStore, Keyring: keys}) // no tools, no model
	check(err)
	waiting, err := inbox.Requests(ctx, ringi.RequestQuery{})
	check(err)
	request := waiting.Requests[0]
	fmt.Println("inbox:", request.Call.Tool, request.Call.Input, "-", request.Verdict.Reason)
	ana := ringi.Principal{ID: "ana", Name: "Ana", Kind: ringi.Person, Auth: "login"}
	settled, err := inbox.Decide(ctx, request.Approve(ana)) // or .Deny(ana, "why"), .Edit(ana, input)
	check(err)
	fmt.Println("inbox:", settled.Request.State, "by", settled.Request.DecidedBy)

	res, err = agent.Resume(ctx, res.RunID)
	check(err)
	fmt.Println("agent:", res.Status, "-", res.Results[0].Output, "-", res.Text)
	_, err = inbox.Decide(ctx, request.Approve(ana))
	fmt.Println("again:", err)
	// Output:
	// agent: waiting_for_approval
	// inbox: refund {"id":"A-1017"} - effect is a write (non_idempotent_write)
	// inbox: approved by ana
	// agent: completed - refunded A-1017 - Done.
	// again: decide request req_0001_1_0: request req_0001_1_0 is already decided (spent) by Ana
}

// openAgent is the process that has tools and a model.
func openAgent() (*engine.Engine, *sqlite.Store) {
	tools := ringi.NewRegistry()
	refund := func(ctx context.Context, in struct {
		ID string `json:"id"`
	}) (string, error) {
		return "refunded " + in.ID, nil
	}
	ringi.MustAddTool(tools, ringi.Tool{Name: "refund", Effect: ringi.NonIdempotentWrite}, refund)
	store, err := sqlite.Open(file, sqlite.Options{})
	check(err)
	model := ringitest.Script(ringitest.Calls(ringitest.Call("refund", `{"id":"A-1017"}`)), ringitest.Text("Done."))
	var ids ringitest.IDs
	e, err := engine.New(engine.Config{Registry: tools, Model: model, Store: store, Keyring: keys, NewID: ids.New})
	check(err)
	return e, store
}

// Where the example's store lies (TestMain makes the folder), and its key.
var (
	file    string
	keys, _ = sign.New(make([]byte, sign.MinSecret)) // in a program: sign.FromEnv()
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "ringi-example-")
	check(err)
	file = filepath.Join(dir, "agent.db")
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

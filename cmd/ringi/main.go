// Command ringi lists, shows and settles the requests of agents that wait for
// a person, verifies their log, and tries it all out without a key or network.
//
// main.go and root.go are the way in, exit.go is the one table from error to
// exit code, env.go what every command works with, wire.go the only file that
// names concrete stores. Every subcommand has a file of its own.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := execute(ctx, osEnv(), os.Args[1:])
	stop()
	os.Exit(code)
}

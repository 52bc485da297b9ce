package main
import "github.com/spf13/cobra"
func newTryCommand(e *env) *cobra.Command { return &cobra.Command{Use:"try"} }

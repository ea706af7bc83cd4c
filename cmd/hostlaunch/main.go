// Command hostlaunch looks at this machine with the eyes of the library:
//
//	go run ./cmd/hostlaunch doctor    what of CUDA works here, and what to do about the rest
//	go run ./cmd/hostlaunch demo      a pipeline to watch, with or without a GPU
//	go run ./cmd/hostlaunch bench     what host functions, tasks, graphs and copies cost here
//	go run ./cmd/hostlaunch trace     what is in a trace, and pictures of it
//
// Every command says more with --help, and --version says what was built.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

func main() { os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr)) }

// execute runs the command that args name, and returns the exit status: that of the command, or 1 if it failed or was misused.
func execute(args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	var status exitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	}
	fmt.Fprintln(stderr, "hostlaunch:", err)
	return 1
}

// exitStatus ends the command with a status of its own, when all has been said.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "hostlaunch",
		Short:         "Looks at CUDA on this machine, by way of the library github.com/hostlaunch/cuda",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       thisBuild().String(),
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.AddCommand(newDoctor(), newDemo(), newBench(), newTrace())
	return root
}

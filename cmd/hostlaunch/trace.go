package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/timeline"
)

func newTrace() *cobra.Command {
	var o traceOutputs
	cmd := &cobra.Command{
		Use:   "trace FILE",
		Short: "Says what is in a trace, and draws it",
		Long: `trace reads a trace, as demo --trace or encoding/json writes it, and prints what it adds up to: how busy each stream was, and how long
operations of each kind and name took. FILE may be -, which is the standard input. A form may go to -, which is the standard
output; the text goes to the standard error then.`,
		Example: "  hostlaunch demo --trace demo.json\n  hostlaunch trace demo.json --html demo.html --svg demo.svg",
		Args: func(_ *cobra.Command, args []string) error {
			switch len(args) {
			case 0:
				return errors.New("trace needs the name of a file, or - for the standard input")
			case 1:
				return nil
			}
			return fmt.Errorf("trace reads one file, and not %d", len(args))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return trace(args[0], o, cmd)
		},
	}
	cmd.Flags().StringVar(&o.html, "html", "", "write a page with the timeline to this file")
	cmd.Flags().StringVar(&o.chrome, "chrome", "", "write events for ui.perfetto.dev and chrome://tracing to this file")
	cmd.Flags().StringVar(&o.dot, "dot", "", "write what waits for what to this file, in Graphviz's language")
	cmd.Flags().StringVar(&o.svg, "svg", "", "write the same to this file, as a picture")
	return cmd
}

// trace reads the trace of a file, and prints and draws it.
func trace(name string, o traceOutputs, cmd *cobra.Command) error {
	files, err := o.open(cmd.OutOrStdout(), cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer files.close()
	t, err := readTrace(name, cmd.InOrStdin())
	if err != nil {
		return err
	}
	if err := printSummary(files.text, t); err != nil {
		return err
	}
	return files.write(t)
}

func readTrace(name string, stdin io.Reader) (*cuda.Trace, error) {
	if name == "-" {
		return timeline.ReadTrace(stdin)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := timeline.ReadTrace(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/picture"
	"github.com/hostlaunch/cuda/timeline"
)

func newTrace() *cobra.Command {
	var o traceOutputs
	cmd := &cobra.Command{
		Use:   "trace FILE",
		Short: "Says what is in a trace, and draws it",
		Long: `trace reads a trace, as demo --trace or encoding/json writes it, and prints what it adds up to: how busy each stream was, and how long
operations of each kind and name took. FILE may be -, which is the standard input.`,
		Example: "  hostlaunch demo --trace demo.json\n  hostlaunch trace demo.json --html demo.html --svg demo.svg",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := readTrace(args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			if err := printSummary(cmd.OutOrStdout(), t); err != nil {
				return err
			}
			return o.write(t)
		},
	}
	cmd.Flags().StringVar(&o.html, "html", "", "write a page with the timeline to this file")
	cmd.Flags().StringVar(&o.chrome, "chrome", "", "write events for ui.perfetto.dev and chrome://tracing to this file")
	cmd.Flags().StringVar(&o.dot, "dot", "", "write what waits for what to this file, in Graphviz's language")
	cmd.Flags().StringVar(&o.svg, "svg", "", "write the same to this file, as a picture")
	return cmd
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

// traceOutputs are the files that a trace is written to, in each form; "" is none.
type traceOutputs struct {
	html, chrome, dot, svg, json string
}

func (o traceOutputs) any() bool { return o != traceOutputs{} }

func (o traceOutputs) write(t *cuda.Trace) error {
	for _, f := range []struct {
		name  string
		write func(io.Writer, *cuda.Trace) error
	}{
		{o.html, timeline.WriteHTML}, {o.chrome, timeline.WriteChrome}, {o.dot, timeline.WriteDOT}, {o.svg, writeSVG}, {o.json, writeJSON},
	} {
		if f.name == "" {
			continue
		}
		if err := writeFile(f.name, func(w io.Writer) error { return f.write(w, t) }); err != nil {
			return err
		}
	}
	return nil
}

// writeFile makes a file of what write writes. One that could not be written whole is removed.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	err = write(f)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		os.Remove(name)
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func writeSVG(w io.Writer, t *cuda.Trace) error {
	var dot strings.Builder
	if err := timeline.WriteDOT(&dot, t); err != nil {
		return err
	}
	return picture.SVG(w, dot.String())
}

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/picture"
	"github.com/hostlaunch/cuda/timeline"
)

// traceOutputs are the files that a trace is written to, in each form: "" is none, and "-" is the standard output.
type traceOutputs struct {
	html, chrome, dot, svg, json string
}

// output is a file for a trace, which is open before there is one.
type output struct {
	name   string
	next   string // what to do with it
	write  func(io.Writer, *cuda.Trace) error
	f      *os.File // nil is the standard output
	remove bool     // unless it is written whole, since nothing of before is in it
}

// outputs are the files of a command, and where its text goes.
type outputs struct {
	list         []*output
	stdout, text io.Writer
}

// open opens the files, so that what cannot be written is told before anything runs. What they hold stays until they are written.
// The text goes to stderr if a trace goes to stdout.
func (o traceOutputs) open(stdout, stderr io.Writer) (*outputs, error) {
	all := &outputs{stdout: stdout, text: stdout}
	for _, out := range []*output{
		{name: o.html, next: "open it in a browser", write: timeline.WriteHTML},
		{name: o.chrome, next: "open it with ui.perfetto.dev", write: timeline.WriteChrome},
		{name: o.dot, write: timeline.WriteDOT},
		{name: o.svg, write: writeSVG},
		{name: o.json, next: "hostlaunch trace reads it", write: writeJSON},
	} {
		switch {
		case out.name == "":
			continue
		case out.name != "-":
			if err := out.open(); err != nil {
				all.close()
				return nil, err
			}
		case all.text == stderr:
			all.close()
			return nil, errors.New("only one form of the trace can go to the standard output")
		default:
			all.text = stderr
		}
		all.list = append(all.list, out)
	}
	return all, nil
}

// write writes t to all files, and says so.
func (o *outputs) write(t *cuda.Trace) error {
	for len(o.list) > 0 {
		out := o.list[0]
		if out.f == nil {
			if err := out.write(o.stdout, t); err != nil {
				return fmt.Errorf("the standard output: %w", err)
			}
		} else if err := out.fill(t); err != nil {
			return fmt.Errorf("%s: %w", out.name, err)
		} else {
			fmt.Fprintln(o.text, strings.TrimSuffix("wrote "+out.name+"; "+out.next, "; "))
		}
		o.list = o.list[1:]
	}
	return nil
}

// close closes the files that were not written, and removes those that hold nothing of before.
func (o *outputs) close() {
	for _, out := range o.list {
		if out.f == nil {
			continue
		}
		out.f.Close()
		if out.remove {
			os.Remove(out.name)
		}
	}
	o.list = nil
}

func (o *output) open() (err error) {
	_, err = os.Lstat(o.name)
	o.remove = os.IsNotExist(err)
	o.f, err = os.OpenFile(o.name, os.O_WRONLY|os.O_CREATE, 0o666)
	return err
}

// fill puts t in place of what is in the file.
func (o *output) fill(t *cuda.Trace) error {
	info, err := o.f.Stat()
	if err != nil {
		return err
	}
	if info.Mode().IsRegular() { // others cannot be cut
		if err := o.f.Truncate(0); err != nil {
			return err
		}
		entry, err := os.Lstat(o.name)
		o.remove = err == nil && entry.Mode().IsRegular() // a link may be /dev/stdout
	}
	if err := o.write(o.f, t); err != nil {
		return err
	}
	return o.f.Close()
}

func writeSVG(w io.Writer, t *cuda.Trace) error {
	var dot strings.Builder
	if err := timeline.WriteDOT(&dot, t); err != nil {
		return err
	}
	return picture.SVG(w, dot.String())
}

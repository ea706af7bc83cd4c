package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hostlaunch/cuda/internal/bench/rig"
	"github.com/hostlaunch/cuda/libcuda"
)

// benchOptions are bench's flags.
type benchOptions struct {
	rounds, largest int
	only, floor     string
	quick, asJSON   bool
	plots           string
}

func newBench() *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measures host functions, tasks, graphs and copies on the GPU, or on the software device",
		Long: `bench measures what host functions in their modes, tasks, graphs' host nodes and copies cost on this machine. Each figure is the median
of several rounds, fewer for copies of more than 1 GiB. Copies go between the device and the host in three ways: with pinned memory, with
ordinary memory as the library stages it, and with ordinary memory as the driver does by itself (Direct).

With --floor a C++ program measures the same by calling the driver itself, in turn with the library. "auto" compiles it from the source
in this repository if nvcc is there; any other value is the compiled program.

With --plots a folder gets plots as well: of the rates of copies by size, and of the times. --plots=pictures,png makes PNG and not SVG.

HOSTLAUNCH_DRIVER=nvidia or =software decides where it runs; unset, on the GPU if there is one. Figures of the software device say nothing
of a GPU's.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.quick && !cmd.Flags().Changed("largest") {
				o.largest = 1
			}
			return bench(o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().IntVar(&o.rounds, "rounds", 9, "how often to repeat each measurement")
	cmd.Flags().IntVar(&o.largest, "largest", 256, "the largest copy, in MiB; with --quick 1, unless it is given")
	cmd.Flags().StringVar(&o.only, "only", "", "a regular expression: measure only what has such a name")
	cmd.Flags().StringVar(&o.floor, "floor", "", "a C++ program to compare with: auto, or its path")
	cmd.Flags().BoolVar(&o.quick, "quick", false, "a twentieth of the repetitions, and copies up to 1 MiB: a look, not a measurement")
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "print the figures as JSON")
	cmd.Flags().StringVar(&o.plots, "plots", "", "a folder for plots")
	return cmd
}

// figures are what bench prints. Its JSON form is for programs: names are not changed, only added to.
type figures struct {
	Device  string   `json:"device"`
	Driver  string   `json:"driver"` // nvidia or software
	CUDA    string   `json:"cuda"`
	Calls   string   `json:"calls"` // how the driver is called: cgo, purego or none
	Rounds  int      `json:"rounds"`
	Figures []figure `json:"figures"`
	Quick   bool     `json:"quick"`
	Largest int      `json:"largest_mib"` // the limit of copies' sizes
}

// figure is one measurement's median.
type figure struct {
	Name  string   `json:"name"`
	Title string   `json:"title"`
	Unit  string   `json:"unit"` // ns or GB/s
	Value float64  `json:"value"`
	Floor *float64 `json:"floor,omitempty"` // the C++ program's
	Copy  *copied  `json:"copy,omitempty"`
}

// copied says what a figure in GB/s is the rate of.
type copied struct {
	Direction string `json:"direction"` // up (to the device) or down
	Way       string `json:"way"`       // pinned, staged or direct
	Bytes     int    `json:"bytes"`
}

// measurement is one thing to measure.
type measurement struct {
	name, title, unit string
	floor             string // what the C++ program calls it, which answers in ns; "" if it has nothing like it
	measure           func() (float64, error)
	copy              *copied
}

func bench(o benchOptions, stdout, stderr io.Writer) error {
	which, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("--only: %w", err)
	}
	if o.rounds < 1 || o.largest < 1 {
		return errors.New("--rounds and --largest must be 1 or more")
	}
	if o.largest > mostMiB {
		return fmt.Errorf("--largest is in MiB, and at most %d", mostMiB)
	}
	to, err := newPlots(o.plots)
	if err != nil {
		return err
	}
	r := &benchRig{o: o}
	list := r.measurements()
	if only := slices.DeleteFunc(slices.Clone(list), func(m measurement) bool { return !which.MatchString(m.name) }); len(only) > 0 {
		list = only
	} else {
		return fmt.Errorf("--only: no measurement has such a name; there are: %s", names(list))
	}
	if err := to.prepare(); err != nil {
		return err
	}
	drv, dev, err := openDevice(stderr)
	if err != nil {
		return err
	}
	defer drv.Close()
	f, err := startFloor(o.floor, stderr)
	if err != nil {
		return err
	}
	defer f.stop()
	if err := r.start(dev); err != nil {
		return err
	}
	out := figures{dev.Name(), drv.Name(), drv.Version().String(), libcuda.Build, o.rounds, []figure{}, o.quick, o.largest}
	if out.Figures, err = measureAll(list, o.rounds, f, stderr); err != nil {
		return err
	}
	if err := to.draw(&out); err != nil {
		return err
	}
	if o.asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		return e.Encode(out)
	}
	return out.print(stdout)
}

// rounds is how often m is measured if n is asked for: very large copies less often, since they would take minutes.
func (m *measurement) rounds(n int) int {
	const moved, fewest = 16 << 30, 3
	if m.copy == nil {
		return n
	}
	return min(n, max(moved/m.copy.Bytes, fewest))
}

// measureAll takes the medians, library and floor in turn. The first round warms up.
func measureAll(list []measurement, rounds int, f *floor, stderr io.Writer) ([]figure, error) {
	steps, all := 0, []figure{}
	for _, m := range list {
		steps += m.rounds(rounds) + 1
	}
	bar := newBar(stderr, steps)
	for _, m := range list {
		bar.Describe(m.name)
		var ours, theirs []float64
		for i := range m.rounds(rounds) + 1 {
			x, err := m.measure()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.name, err)
			}
			y, err := f.ask(m)
			if err != nil {
				return nil, err
			}
			if i > 0 {
				ours, theirs = append(ours, x), append(theirs, y)
			}
			if err := bar.Add(1); err != nil {
				return nil, err
			}
		}
		result := figure{Name: m.name, Title: m.title, Unit: m.unit, Value: rig.Median(ours), Copy: m.copy}
		if f != nil && m.floor != "" {
			y := rig.Median(theirs)
			if m.copy != nil {
				y = float64(m.copy.Bytes) / y
			}
			result.Floor = &y
		}
		all = append(all, result)
	}
	return all, nil
}

func (f *figures) print(w io.Writer) error {
	quick := ""
	if f.Quick {
		quick = fmt.Sprintf("; --quick: a twentieth of the repetitions, copies up to %d MiB", f.Largest)
	}
	p := &page{w: w}
	p.printf("%s (%s driver, CUDA %s, called through %s), medians of %d rounds%s\n\n", f.Device, f.Driver, f.CUDA, f.Calls, f.Rounds, quick)
	p.table(f.rows())
	return p.err
}

// rows are the table, which has a column for the C++ program if that measured anything.
func (f *figures) rows() [][]string {
	rows := [][]string{{"name", "what", "here"}}
	compared := slices.ContainsFunc(f.Figures, func(x figure) bool { return x.Floor != nil })
	if compared {
		rows[0] = append(rows[0], "C++ beside it")
	}
	for _, x := range f.Figures {
		row := []string{x.Name, x.Title, x.text(x.Value)}
		switch {
		case x.Floor != nil:
			row = append(row, x.text(*x.Floor))
		case compared:
			row = append(row, "-")
		}
		rows = append(rows, row)
	}
	return rows
}

func (x *figure) text(v float64) string {
	if x.Unit == "ns" {
		return rounded(int64(v)).String()
	}
	return fmt.Sprintf("%.2f %s", v, x.Unit)
}

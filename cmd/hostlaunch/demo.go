package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"text/tabwriter"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/hostlaunch/cuda"
)

// demoOptions are demo's flags.
type demoOptions struct {
	batches, count, every int
	compute               time.Duration
	outputs               traceOutputs
}

// mostBatches is what can be queued without the memory for it being missed.
const mostBatches = 1_000_000

func newDemo() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Runs a pipeline on the GPU, or on the software device, and shows how far it is",
		Long: `demo queues a whole pipeline at once and then only watches it. For each batch a graph is launched (a kernel that takes its time,
one that changes the data, and a host node), the data is copied into an ordinary slice, and a host function checks every
number of it. After every few batches a task copies the data back to the device from another stream before the next batch may begin.
Nothing waits for the GPU until all of it is done. With --timeline or --trace it is traced meanwhile: a page shows what ran when.
Either may go to -, the standard output; the text goes to the standard error then.

HOSTLAUNCH_DRIVER=nvidia or =software decides where it runs; unset, on the GPU if there is one.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.batches < 1 || o.count < 1 || o.every < 1 || o.compute < 0 {
				return fmt.Errorf("--batches, --count and --every must be 1 or more, and --compute not negative")
			}
			if o.batches > mostBatches || int64(o.count) > math.MaxUint32 {
				return fmt.Errorf("--batches is at most %d, and --count at most %d", mostBatches, math.MaxUint32)
			}
			return demo(o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().IntVar(&o.batches, "batches", 200, "batches to run")
	cmd.Flags().IntVar(&o.count, "count", 1<<18, "numbers of 4 bytes in a batch")
	cmd.Flags().IntVar(&o.every, "every", 10, "a task after so many batches")
	cmd.Flags().DurationVar(&o.compute, "compute", 5*time.Millisecond, "how long the first kernel of a batch takes")
	cmd.Flags().StringVar(&o.outputs.html, "timeline", "", "write a page with the timeline to this file")
	cmd.Flags().StringVar(&o.outputs.json, "trace", "", "write the trace to this file, which hostlaunch trace reads")
	return cmd
}

// demo runs the pipeline and prints what it did. The progress goes to stderr, if that is a terminal.
func demo(o demoOptions, stdout, stderr io.Writer) error {
	files, err := o.outputs.open(stdout, stderr)
	if err != nil {
		return err
	}
	defer files.close()
	drv, dev, err := openDevice(stderr)
	if err != nil {
		return err
	}
	defer drv.Close()
	fmt.Fprintf(files.text, "on %v (%s driver, CUDA %v)\n", dev, drv.Name(), drv.Version())
	written, err := traced(drv, files)
	if err != nil {
		return err
	}
	p, err := newPipeline(dev, o)
	if err != nil {
		return err
	}
	start := time.Now()
	for i := range o.batches {
		if err := p.queue(i); err != nil {
			return err
		}
	}
	queued := time.Since(start)
	if err := p.watch(stderr); err != nil {
		return err
	}
	took := time.Since(start)
	if err := p.summary(files.text, queued, took); err != nil {
		return err
	}
	return errors.Join(p.verdict(), written())
}

// traced begins to trace drv if that is to be written anywhere, which written does at the end.
func traced(drv *cuda.Driver, files *outputs) (written func() error, err error) {
	if len(files.list) == 0 {
		return func() error { return nil }, nil
	}
	tracer, err := drv.StartTrace()
	if err != nil {
		return nil, err
	}
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		t, err := tracer.Stop(ctx)
		if err != nil {
			return err
		}
		return files.write(t)
	}, nil
}

// watch shows the batches as they end, and then waits for the stream, once.
func (p *pipeline) watch(stderr io.Writer) error {
	bar := newBar(stderr, p.o.batches)
	for ended := 0; ended < p.o.batches; ended++ {
		if err := <-p.ended; err != nil {
			return err
		}
		bar.Describe(fmt.Sprintf("%d replays, %d tasks, %.0f MB copied", p.replays.Load(), p.tasks.Load(), float64(p.copied.BytesDone())/1e6))
		if err := bar.Add(1); err != nil {
			return err
		}
	}
	return p.s.Sync()
}

// newBar makes a progress bar, which nobody sees unless w is a terminal.
func newBar(w io.Writer, n int) *progressbar.ProgressBar {
	f, ok := w.(*os.File)
	return progressbar.NewOptions(n, progressbar.OptionSetWriter(w), progressbar.OptionSetVisibility(ok && term.IsTerminal(int(f.Fd()))),
		progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true), progressbar.OptionThrottle(50*time.Millisecond),
		progressbar.OptionFullWidth(), progressbar.OptionOnCompletion(func() { fmt.Fprintln(w) }))
}

func (p *pipeline) summary(w io.Writer, queued, took time.Duration) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "batches\t%d, each checked by a host function\n", p.checked.Load())
	fmt.Fprintf(t, "numbers\t%d, of which %d were wrong\n", p.checked.Load()*int64(p.o.count), p.wrong.Load())
	fmt.Fprintf(t, "replays of the graph\t%d\n", p.replays.Load())
	fmt.Fprintf(t, "tasks\t%d\n", p.tasks.Load())
	fmt.Fprintf(t, "copied to slices\t%d of %d bytes\n", p.copied.BytesDone(), p.copied.BytesTotal())
	fmt.Fprintf(t, "queued in\t%v\n", rounded(queued.Nanoseconds()))
	fmt.Fprintf(t, "done in\t%v, of which kernels had to take %v\n", rounded(took.Nanoseconds()), time.Duration(p.o.batches)*p.o.compute)
	return t.Flush()
}

// verdict is an error if something was left out or came out of order.
func (p *pipeline) verdict() error {
	n := int64(p.o.batches)
	if p.wrong.Load() != 0 || p.checked.Load() != n || p.replays.Load() != n || p.tasks.Load() != n/int64(p.o.every) {
		return fmt.Errorf("the pipeline's results are wrong: that is a fault of this library or of the driver; please report it")
	}
	return nil
}

// Command bench compares host functions of this library with a C++ program that calls the driver itself, side by side in one
// run, and prints a table of ratios. It needs a GPU:
//
//	nvcc -O3 -o floor internal/bench/floor/floor.cpp -lcuda
//	go run ./internal/bench -floor ./floor -ptx internal/testkernels/kernels.ptx
//
// Without -floor it prints the library's own figures. Each measurement is repeated, library and floor in turn, and the medians
// are compared.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"os/exec"
	"slices"
	"strings"

	"github.com/hostlaunch/cuda/libcuda"
)

func main() {
	log.SetFlags(0)
	floorPath := flag.String("floor", "", "the compiled floor.cpp to compare with")
	ptx := flag.String("ptx", "", "the file kernels.ptx, for the floor")
	rounds := flag.Int("rounds", 15, "how often to repeat each measurement")
	flag.Parse()
	if err := run(*floorPath, *ptx, *rounds); err != nil {
		log.Fatal(err)
	}
}

func run(floorPath, ptx string, rounds int) error {
	drv, err := libcuda.Open()
	if err != nil {
		return err
	}
	defer drv.Close()
	b, err := newBench(drv)
	if err != nil {
		return err
	}
	ask := func(string) (float64, error) { return math.NaN(), nil }
	if floorPath != "" {
		f, err := startFloor(floorPath, ptx)
		if err != nil {
			return err
		}
		defer f.stop()
		ask = f.ask
	}
	tasks, err := newTaskBench(b)
	if err != nil {
		return err
	}
	fmt.Printf("%s, CUDA %v, %s build, medians of %d rounds\n\n", b.dev.Name(), drv.Version(), libcuda.Build, rounds)
	fmt.Print("| host functions | Go | C++ | ratio |\n|---|---|---|---|\n")
	for _, m := range append(b.measurements(), tasks.measurements()...) {
		ours, floor, ratio, err := compare(m, ask, rounds)
		if err != nil {
			return err
		}
		fmt.Printf("| %s | %.0f ns | %.0f ns | %.2f |\n", m.title, ours, floor, ratio)
	}
	if err := b.allocations(); err != nil {
		return err
	}
	return tasks.report()
}

// measurement is one figure, in ns: ours by measure, and the floor's by its name.
type measurement struct {
	name, title string
	measure     func() (float64, error)
}

// compare measures both in turn and returns the medians, and that of the ratios pair by pair, which hold when the machine's
// speed drifts. The first round warms up.
func compare(m measurement, ask func(string) (float64, error), rounds int) (ours, floor, ratio float64, err error) {
	var a, b, r []float64
	for i := range rounds + 1 {
		x, err := m.measure()
		if err != nil {
			return 0, 0, 0, fmt.Errorf("%s: %w", m.name, err)
		}
		y, err := ask(m.name)
		if err != nil {
			return 0, 0, 0, fmt.Errorf("floor: %s: %w", m.name, err)
		}
		if i > 0 {
			a, b, r = append(a, x), append(b, y), append(r, x/y)
		}
	}
	return median(a), median(b), median(r), nil
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// floor is the running C++ program.
type floor struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startFloor(path, ptx string) (*floor, error) {
	cmd := exec.Command(path, ptx)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &floor{cmd, in, bufio.NewReader(out)}, cmd.Start()
}

func (f *floor) ask(name string) (ns float64, err error) {
	if _, err := fmt.Fprintln(f.in, name); err != nil {
		return 0, err
	}
	_, err = fmt.Fscanln(f.out, &ns)
	return ns, err
}

func (f *floor) stop() {
	f.in.Close()
	f.cmd.Wait()
}

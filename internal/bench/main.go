// Command bench compares host functions and copies of this library with a C++ program that calls the driver itself, side by
// side in one run, and prints tables. It needs a GPU:
//
//	nvcc -O3 -o floor internal/bench/floor/floor.cpp -lcuda
//	go run ./internal/bench -floor ./floor -ptx internal/testkernels/kernels.ptx
//
// Without -floor it prints the library's own figures. Each measurement is repeated, library and floor in turn, and the medians
// are compared. The environment's HOSTLAUNCH_STAGING sets how copies are staged, as in
// "chunk=8M,least=256K,slots=12,threads=8,threadsup=12,each=512K,part=2M,ring=256M,small=64K,down=512K,up=512K".
package main

import (
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"regexp"
	"runtime/pprof"

	"github.com/hostlaunch/cuda/internal/bench/rig"
	"github.com/hostlaunch/cuda/libcuda"
)

func main() {
	log.SetFlags(0)
	floorPath := flag.String("floor", "", "the compiled floor.cpp to compare with")
	ptx := flag.String("ptx", "", "the file kernels.ptx, for the floor")
	var o choice
	flag.IntVar(&o.rounds, "rounds", 15, "how often to repeat each measurement")
	flag.IntVar(&o.largest, "largest", 4096, "the largest copy, in MiB")
	only := flag.String("only", "", "a regular expression: measure only what has such a name; \"copies\" is that of the copies")
	sizes := flag.String("sizes", "", "a regular expression: the sizes of copies in the tables, as in \"^(64 KiB|1 MiB)$\"")
	ways := flag.String("ways", "", "a regular expression: the tables and columns of copies, as in \"memory to device: Go, (a slice|pinned)\"")
	profile := flag.String("cpuprofile", "", "a file to write a CPU profile to")
	flag.Parse()
	if *profile != "" {
		stop, err := startProfile(*profile)
		if err != nil {
			log.Fatal(err)
		}
		defer stop()
	}
	var err error
	if o.which, err = regexp.Compile(*only); err != nil {
		log.Fatal(err)
	}
	if o.sizes, err = regexp.Compile(*sizes); err != nil {
		log.Fatal(err)
	}
	if o.ways, err = regexp.Compile(*ways); err != nil {
		log.Fatal(err)
	}
	if err := run(*floorPath, *ptx, o); err != nil {
		log.Fatal(err)
	}
}

// choice is what to measure, and how.
type choice struct {
	rounds, largest    int
	which, sizes, ways *regexp.Regexp
}

func run(floorPath, ptx string, o choice) error {
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
		f, err := rig.StartFloor(floorPath, ptx, nil)
		if err != nil {
			return err
		}
		defer f.Stop()
		ask = f.Ask
	}
	fmt.Printf("%s, CUDA %v, %s build, medians of %d rounds\n\n", b.Dev.Name(), drv.Version(), libcuda.Build, o.rounds)
	if err := b.functions(ask, o); err != nil || !o.which.MatchString("copies") {
		return err
	}
	c, err := newCopies(b, o)
	if err != nil {
		return err
	}
	return c.run(ask)
}

// functions prints the table of host functions and tasks.
func (b *bench) functions(ask func(string) (float64, error), o choice) error {
	tasks, err := newTaskBench(b)
	if err != nil {
		return err
	}
	defer tasks.close()
	fmt.Print("| host functions | Go | C++ | ratio |\n|---|---|---|---|\n")
	for _, m := range append(b.measurements(), tasks.measurements()...) {
		if !o.which.MatchString(m.name) {
			continue
		}
		ours, floor, ratio, err := compare(m, ask, o.rounds)
		if err != nil {
			return err
		}
		fmt.Printf("| %s | %.0f ns | %.0f ns | %.2f |\n", m.title, ours, floor, ratio)
	}
	if err := b.allocations(); err != nil || !o.which.MatchString("tasks") {
		return err
	}
	return tasks.report()
}

// startProfile profiles the processor until stop is called.
func startProfile(path string) (stop func(), err error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		f.Close()
	}, nil
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
			return 0, 0, 0, err
		}
		if i > 0 {
			a, b, r = append(a, x), append(b, y), append(r, x/y)
		}
	}
	return rig.Median(a), rig.Median(b), rig.Median(r), nil
}

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/hostlaunch/cuda/internal/bench/rig"
	"github.com/hostlaunch/cuda/internal/testkernels"
)

// floorSource is the C++ program, in this repository.
const floorSource = "internal/bench/floor/floor.cpp"

// floor is the C++ program, running, and the folder of its files. A nil floor measures nothing.
type floor struct {
	*rig.Floor
	dir string
}

// startFloor starts the program that --floor names: "" is none, and "auto" is compiled first.
func startFloor(program string, stderr io.Writer) (*floor, error) {
	if program == "" {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "hostlaunch")
	if err != nil {
		return nil, err
	}
	f := &floor{dir: dir}
	if err := f.start(program, stderr); err != nil {
		f.stop()
		return nil, err
	}
	return f, nil
}

func (f *floor) start(program string, stderr io.Writer) error {
	ptx := filepath.Join(f.dir, "kernels.ptx")
	if err := os.WriteFile(ptx, testkernels.PTX, 0o644); err != nil {
		return err
	}
	if program == "auto" {
		program = filepath.Join(f.dir, "floor")
		if err := compileFloor(program, stderr); err != nil {
			return err
		}
	}
	running, err := rig.StartFloor(program, ptx, stderr)
	if err != nil {
		return fmt.Errorf("--floor: %w", err)
	}
	f.Floor = running
	return nil
}

func compileFloor(program string, stderr io.Writer) error {
	if _, err := os.Stat(floorSource); err != nil {
		return fmt.Errorf("--floor=auto compiles %s, which is not here; run it in this repository, or compile it and give its path", floorSource)
	}
	nvcc, err := exec.LookPath("nvcc")
	if err != nil {
		return errors.New("--floor=auto needs nvcc of the CUDA toolkit on the PATH")
	}
	cmd := exec.Command(nvcc, "-O3", "-o", program, floorSource, "-lcuda")
	cmd.Stdout, cmd.Stderr = stderr, stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("nvcc: %w", err)
	}
	return nil
}

// ask has the program measure m, if it can.
func (f *floor) ask(m measurement) (ns float64, err error) {
	if f == nil || m.floor == "" {
		return 0, nil
	}
	ns, err = f.Ask(m.floor)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, syscall.EPIPE):
		return 0, fmt.Errorf("--floor: the program ended before it answered: %w", err)
	case err != nil:
		return 0, fmt.Errorf("--floor: %w", err)
	}
	return ns, nil
}

// stop ends the program and removes its files.
func (f *floor) stop() {
	if f == nil {
		return
	}
	if f.Floor != nil {
		f.Stop()
	}
	os.RemoveAll(f.dir)
}

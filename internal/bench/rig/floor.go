package rig

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Floor is the compiled floor.cpp, running: a C++ program that calls the driver itself. It reads the name of a measurement and answers
// with ns.
type Floor struct {
	in         io.WriteCloser
	out        *bufio.Reader
	complaints strings.Builder
	wait       func() error // for its end, after which complaints are whole
}

// StartFloor starts program, which loads the kernels of the file ptx. What it complains of goes to stderr too, unless that is nil.
func StartFloor(program, ptx string, stderr io.Writer) (*Floor, error) {
	cmd := exec.Command(program, ptx)
	f := &Floor{wait: sync.OnceValue(cmd.Wait)}
	cmd.Stderr, cmd.WaitDelay = &f.complaints, time.Second
	if stderr != nil {
		cmd.Stderr = io.MultiWriter(&f.complaints, stderr)
	}
	var err error
	if f.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	f.out = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return f, nil
}

// Ask has the program measure what has the name. The error of a program that has died has its complaints.
func (f *Floor) Ask(name string) (ns float64, err error) {
	const unknown = -1
	if _, err = fmt.Fprintln(f.in, name); err == nil {
		_, err = fmt.Fscanln(f.out, &ns)
	}
	switch {
	case err != nil:
		f.Stop()
		return 0, fmt.Errorf("the C++ program: %s: %w (%v; it said %q)", name, err, f.wait(), strings.TrimSpace(f.complaints.String()))
	case ns == unknown:
		return 0, fmt.Errorf("the C++ program has no measurement %s", name)
	}
	return ns, nil
}

// Stop ends the program.
func (f *Floor) Stop() {
	f.in.Close()
	f.wait()
}

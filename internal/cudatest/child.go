package cudatest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// childVariable names, for a child process, the case that it is to run.
const childVariable = "HOSTLAUNCH_CHILD_CASE"

// childLimit ends a child that hangs. Opening the NVIDIA driver takes a second or two.
const childLimit = 60 * time.Second

// parent runs a case in a process of its own and checks how that ends.
func parent(t *testing.T, cfg Config, c Case) {
	open(t, cfg).Close()                                                       // skips here rather than there
	ctx, cancel := context.WithTimeout(t.Context(), childLimit+10*time.Second) // its own limit is over when it exits
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+cfg.Test+"$", "-test.v", "-test.timeout="+childLimit.String())
	cmd.Env = append(os.Environ(), childVariable+"="+c.ID+"/"+c.Name)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	status := ""
	if err != nil {
		status = err.Error()
	}
	if status != c.Exit {
		t.Errorf("the process ended with %q, want %q", status, c.Exit)
	}
	if t.Failed() || testing.Verbose() {
		t.Logf("output of the process:\n%s", out.String())
	}
	if c.Exit != "" && !bytes.Contains(out.Bytes(), []byte(lastWords)) {
		t.Errorf("the process did not say %q before its end", lastWords)
	}
}

// lastWords must be in the output of a child that is to end badly.
const lastWords = "host function leaver"

// runChild runs the case that a child process is to run, and reports whether this is one.
func runChild(t *testing.T, cfg Config) bool {
	name := os.Getenv(childVariable)
	if name == "" {
		return false
	}
	for _, c := range Cases() {
		if c.ID+"/"+c.Name == name {
			c.Run(&T{T: t, cfg: cfg})
			return true
		}
	}
	panic(fmt.Sprintf("no case %s", name))
}

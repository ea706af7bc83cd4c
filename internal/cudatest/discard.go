package cudatest

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/hostlaunch/cuda"
)

// discard is a logger for cases that provoke what is logged.
var discard = slog.New(slog.DiscardHandler)

// exitLike ends the process as the NVIDIA driver's does after a Goexit.
func exitLike(p *cuda.PanicError) {
	fmt.Fprintf(os.Stderr, "cuda: host function %s, enqueued at %s: %v\n", p.Name, p.Site, p.Value)
	os.Exit(2)
}

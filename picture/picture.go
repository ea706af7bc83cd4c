// Package picture makes pictures of graphs in Graphviz's language: of Graph.DOT, of the DOT of a softcuda.Report, of timeline.WriteDOT.
// Graphviz itself is in the program, as WebAssembly; nothing needs to be installed. It is a package of its own since that costs a
// program some megabytes, and at its start half a second, or 20 milliseconds where an earlier start left the compiled form in the folder
// hostlaunch of os.UserCacheDir. While the program's packages are initialised, TMPDIR may lead there.
package picture

import (
	"fmt"
	"io"

	"github.com/hostlaunch/cuda/picture/internal/cache"
)

func init() { cache.Restore() }

// SVG writes the graph that dot describes to w as an SVG image. What is no graph in Graphviz's language is an error that says near what;
// so is w's. It may be called from many goroutines; they take turns. On js/wasm it is errors.ErrUnsupported.
func SVG(w io.Writer, dot string) error {
	if err := scan(dot); err != nil {
		return fmt.Errorf("picture: %w", err)
	}
	image, err := render(dot)
	if err != nil {
		return fmt.Errorf("picture: %w", err)
	}
	if _, err := io.WriteString(w, image); err != nil {
		return fmt.Errorf("picture: %w", err)
	}
	return nil
}

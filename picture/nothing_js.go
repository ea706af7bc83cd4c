package picture

import (
	"errors"
	"fmt"
)

// render does nothing: what Graphviz is run with looks for fonts in a way that this platform has not.
func render(string) (string, error) {
	return "", fmt.Errorf("no Graphviz here: %w", errors.ErrUnsupported)
}

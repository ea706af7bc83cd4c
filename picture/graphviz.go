//go:build !js

package picture

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"

	"github.com/goccy/go-graphviz"
)

// one lets one goroutine at a time into Graphviz, which has one memory for the whole program.
var one sync.Mutex

// lineNumber is left out of Graphviz's errors, since it goes on counting from one text to the next.
var lineNumber = regexp.MustCompile(` in line \d+`)

func render(dot string) (string, error) {
	one.Lock()
	defer one.Unlock()
	graph, err := graphviz.ParseBytes([]byte(dot))
	if err != nil {
		return "", errors.New(strings.TrimSpace(lineNumber.ReplaceAllString(err.Error(), "")))
	}
	if graph == nil {
		return "", errors.New("there is no graph in the text")
	}
	defer graph.Close()
	ctx := context.Background()
	g, err := graphviz.New(ctx)
	if err != nil {
		return "", err
	}
	defer g.Close()
	var image strings.Builder
	err = g.Render(ctx, graph, graphviz.SVG, &image)
	return image.String(), err
}

package timeline

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/hostlaunch/cuda"
)

// WriteHTML writes t as one page that needs nothing else: a timeline to zoom, search and follow dependencies in, and the totals. The
// page fetches nothing and says so to the browser (Content-Security-Policy); it draws only what is visible, so that traces of some
// 100,000 operations stay smooth. Its address may lead somewhere: #show=1200,1500 to that part of the time, in microseconds; #select=7 to
// the operation with that ID, or =name to the first with that name, and &width=300 to so much time around it. It is an error if t is nil or contradicts itself, or if w fails.
func WriteHTML(w io.Writer, t *cuda.Trace) error {
	if err := check(t); err != nil {
		return err
	}
	if err := page.Execute(w, newPageContents(t)); err != nil {
		return fmt.Errorf("timeline: %w", err)
	}
	return nil
}

//go:embed page
var pageFiles embed.FS

// scripts are the page's script, in this order.
var scripts = []string{"data.js", "view.js", "draw.js", "overview.js", "details.js", "search.js", "input.js"}

var page = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"short": short, "class": kindClass, "digits": digits,
	"percent": func(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }, "size": size,
}).ParseFS(pageFiles, "page/page.html"))

// pageContents are what page.html is filled with.
type pageContents struct {
	Trace      *cuda.Trace
	Began      string
	Style      template.CSS
	Script     template.JS
	Data       *pageData
	Kinds      []pageKind
	Streams    []pageStream
	Operations []OperationTotal
	More       int // operations that are not listed
}

// pageKind is an entry of the legend.
type pageKind struct {
	Kind  cuda.TraceKind
	Count int
}

type pageStream struct {
	StreamTotal
	Name, Group string
}

// mostOperations bounds the table of totals.
const mostOperations = 200

func newPageContents(t *cuda.Trace) *pageContents {
	s := summarize(t)
	kinds := kindsOf(t)
	p := &pageContents{Trace: t, Style: template.CSS(pageFile("page.css")), Data: newPageData(t, kinds), Kinds: kinds, Operations: s.Operations}
	if !t.Began.IsZero() {
		p.Began = t.Began.Format("2006-01-02 15:04:05 MST")
	}
	var script strings.Builder
	for _, name := range scripts {
		script.WriteString(pageFile(name))
	}
	p.Script = template.JS(script.String())
	for _, total := range s.Streams {
		stream := t.Streams[total.Stream]
		p.Streams = append(p.Streams, pageStream{total, stream.Name, deviceGroup(stream.Device)})
	}
	if n := len(p.Operations); n > mostOperations {
		p.Operations, p.More = p.Operations[:mostOperations], n-mostOperations
	}
	return p
}

func pageFile(name string) string {
	text, err := pageFiles.ReadFile("page/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}

// kindOrder is the order of the legend: device work, host code, what orders them.
var kindOrder = []cuda.TraceKind{
	cuda.TraceKernel, cuda.TraceGraph, cuda.TraceCopy, cuda.TraceMemset, cuda.TraceHost, cuda.TraceNode, cuda.TraceTask, cuda.TraceNative,
	cuda.TraceCallback, cuda.TraceMemOp, cuda.TraceRecord, cuda.TraceWait, cuda.TraceSync,
}

// kindsOf are the kinds that occur in t, and how often.
func kindsOf(t *cuda.Trace) (kinds []pageKind) {
	counts := map[cuda.TraceKind]int{}
	var others []cuda.TraceKind
	for i := range t.Spans {
		k := t.Spans[i].Kind
		if counts[k]++; counts[k] == 1 && kindClass(k) == otherClass {
			others = append(others, k)
		}
	}
	for _, k := range append(kindOrder[:len(kindOrder):len(kindOrder)], others...) {
		if counts[k] > 0 {
			kinds = append(kinds, pageKind{k, counts[k]})
		}
	}
	return kinds
}

const otherClass = "k-other"

// kindClass is the CSS class of a kind.
func kindClass(k cuda.TraceKind) string {
	for _, known := range kindOrder {
		if k == known {
			return "k-" + strings.ReplaceAll(string(k), " ", "-")
		}
	}
	return otherClass
}

// short is d to three digits.
func short(d time.Duration) string {
	f, unit := float64(d), "ns"
	for _, next := range []string{"µs", "ms", "s"} {
		if f < 1000 {
			break
		}
		f, unit = f/1000, next
	}
	return digits(f) + " " + unit
}

// digits is f to three digits, or more before the point.
func digits(f float64) string {
	if f >= 1000 {
		return fmt.Sprintf("%.0f", f)
	}
	return strconv.FormatFloat(f, 'g', 3, 64)
}

// size is a number of bytes for people.
func size(n int64) string {
	f, unit := float64(n), "B"
	for _, next := range []string{"kB", "MB", "GB", "TB"} {
		if f < 1000 {
			break
		}
		f, unit = f/1000, next
	}
	return digits(f) + " " + unit
}

package picture_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/picture"
	"github.com/hostlaunch/cuda/softcuda"
	"github.com/hostlaunch/cuda/timeline"
)

// texts are the texts of an SVG image, and how many edges it has.
func texts(t *testing.T, dot string) (list []string, edges int) {
	t.Helper()
	var b strings.Builder
	if err := picture.SVG(&b, dot); err != nil {
		t.Fatalf("%v\n%s", err, dot)
	}
	d := xml.NewDecoder(strings.NewReader(b.String()))
	inText := false
	for {
		token, err := d.Token()
		if err == io.EOF {
			return list, edges
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
		switch x := token.(type) {
		case xml.StartElement:
			inText = x.Name.Local == "text"
			for _, a := range x.Attr {
				if a.Name.Local == "class" && a.Value == "edge" {
					edges++
				}
			}
		case xml.EndElement:
			inText = false
		case xml.CharData:
			if inText {
				list = append(list, string(x))
			}
		}
	}
}

func wantTexts(t *testing.T, list []string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, w) }) {
			t.Errorf("%q is not in %q", w, list)
		}
	}
}

// TestGraph: a graph of the software device, with a host function, a kernel and a graph within.
func TestGraph(t *testing.T) {
	drv := softcuda.New(softcuda.Options{})
	defer drv.Close()
	dev, err := drv.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := dev.NewGraph()
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	if _, err := inner.AddNode(cuda.HostParams(func() {}, cuda.Name(`in the "child" <graph>`))); err != nil {
		t.Fatal(err)
	}
	g, err := dev.NewGraph()
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	first, err := g.AddNode(cuda.HostParams(func() {}, cuda.Name("first")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.AddNode(cuda.ChildGraphParams(inner), first); err != nil {
		t.Fatal(err)
	}
	var dot strings.Builder
	if err := g.DOT(&dot); err != nil {
		t.Fatal(err)
	}
	list, edges := texts(t, dot.String())
	wantTexts(t, list, "first", `in the "child" <graph>`, "picture_test.go")
	if edges != 2 { // one of them ties the graph within to its node
		t.Errorf("%d edges\n%s", edges, dot.String())
	}
}

// TestTrace: what a trace gives as DOT.
func TestTrace(t *testing.T) {
	trace := &cuda.Trace{Streams: []cuda.TraceStream{{Name: "a"}, {Name: "b", Device: 1}}, Spans: []cuda.TraceSpan{
		{ID: 1, Kind: cuda.TraceKernel, Name: "k<1>"}, {ID: 2, Kind: cuda.TraceCopy, Name: "c", Stream: 1, After: []int{1}},
	}}
	var dot strings.Builder
	if err := timeline.WriteDOT(&dot, trace); err != nil {
		t.Fatal(err)
	}
	list, edges := texts(t, dot.String())
	wantTexts(t, list, "kernel k<1>", "copy c", "Device 0: a", "Device 1: b")
	if edges != 1 {
		t.Errorf("%d edges", edges)
	}
}

// TestDeadlock: who waits for whom, as the software device's checker says it.
func TestDeadlock(t *testing.T) {
	check := &softcuda.Check{}
	drv := softcuda.New(softcuda.Options{Check: check})
	defer drv.Close()
	dev, err := drv.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	words, err := dev.AllocPinned(8)
	if err != nil {
		t.Fatal(err)
	}
	defer words.Close()
	var streams [2]*cuda.Stream
	for i := range streams {
		if streams[i], err = dev.NewStream(); err != nil {
			t.Fatal(err)
		}
		if err := streams[i].WaitValue32(words.Word(4*i), cuda.ValueEQ, 1); err != nil {
			t.Fatal(err)
		}
		if err := streams[i].WriteValue32(words.Word(4-4*i), 1); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error)
	go func() { done <- streams[0].Sync() }()
	for deadline := time.Now().Add(10 * time.Second); len(check.Reports()) == 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	atomic.StoreUint32((*uint32)(unsafe.Pointer(&words.Bytes()[0])), 1) // which ends it
	if err := <-done; err != nil || len(check.Reports()) != 1 {
		t.Fatalf("%v, %v", err, check.Reports())
	}
	list, edges := texts(t, check.Reports()[0].DOT)
	wantTexts(t, list, "waits for", "is behind", "wait-value")
	if edges != 4 {
		t.Errorf("%d edges, %q", edges, list)
	}
}

// TestSVGRefuses: what is no graph, and a writer that fails.
func TestSVGRefuses(t *testing.T) {
	for range 2 { // an error leaves nothing behind
		for dot, want := range map[string]string{
			"": "no graph", " \n": "no graph", "// nothing": "no graph", "hello": "no graph", "hello {}": "syntax error near 'hello'",
			"digraph {\n a -> }": "syntax error near '}'", "digraph {\n a -> ; b;\n c;\n }": "syntax error near ';'",
			"\ndigraph {\n": "line 3: the graph's { of line 2", "digraph { }\n}": "line 2: there is more behind the graph: \"}\"", "}": "closes nothing",
			"digraph { a } b": "more behind the graph", "digraph { \n\"a }": "line 2: a string that", "digraph { /* a }": "comment that", "digraph { <b<>": "string in <",
		} {
			var b strings.Builder
			if err := picture.SVG(&b, dot); err == nil || !strings.Contains(err.Error(), want) || b.Len() > 0 {
				t.Errorf("%q: %v, want %q; %d bytes", dot, err, want, b.Len())
			}
			const well = "# a comment's \"\ndigraph { /* { */ \"we\\\"{ll\" -> <<b>x</b>>; } // {\n"
			if list, _ := texts(t, well); !slices.Equal(list, []string{`we"{ll`, "<b>x</b>"}) {
				t.Errorf("after %q: %q", dot, list)
			}
		}
	}
	failed := errors.New("no room")
	if err := picture.SVG(failingWriter{failed}, "digraph { a }"); !errors.Is(err, failed) {
		t.Errorf("writer's error: %v", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// TestSVGAtOnce: goroutines do not mistake each other's graphs.
func TestSVGAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			var b strings.Builder
			if err := picture.SVG(&b, fmt.Sprintf("digraph { node_%d -> b }", i)); err != nil || !strings.Contains(b.String(), fmt.Sprintf(">node_%d<", i)) {
				t.Errorf("%d: %v\n%s", i, err, b.String())
			}
		})
	}
	wg.Wait()
}

// TestCache: the compiled form is kept in the user's own folder, not where others may write, and the program sees its own TMPDIR.
func TestCache(t *testing.T) {
	if os.Getenv("PICTURE_CHILD") != "" {
		fmt.Println("TMPDIR", os.Getenv("TMPDIR"))
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("XDG_CACHE_HOME is Linux's")
	}
	temporary, own := t.TempDir(), t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestCache$")
	cmd.Env = append(os.Environ(), "PICTURE_CHILD=1", "TMPDIR="+temporary, "XDG_CACHE_HOME="+own)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "TMPDIR "+temporary+"\n") {
		t.Errorf("%v\n%s", err, out)
	}
	if list, _ := os.ReadDir(temporary); len(list) > 0 {
		t.Errorf("%s is in the temporary folder", list[0].Name())
	}
	if _, err := os.Stat(filepath.Join(own, "hostlaunch", "go-graphviz")); err != nil {
		t.Error(err)
	}
}

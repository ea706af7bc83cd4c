package softcuda_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

const guidePage = "../docs/testing-without-a-gpu.md"

var updateGuide = flag.Bool("update-guide", false, "rewrite the code and the table of "+guidePage)

// begin send

// send copies one byte to each of the buffers, by way of one pinned buffer.
func send(s *cuda.Stream, staging *cuda.PinnedBuffer, to []*cuda.Buffer, values []byte) error {
	for i, b := range to {
		staging.Bytes()[0] = values[i] // wrong: the copy before may not have been done
		if err := cuda.CopyToDevice(s, b, staging.Bytes()); err != nil {
			return err
		}
	}
	return s.Sync()
}

// end send

// begin test

func testSend(t Tester, drv *cuda.Driver) {
	dev, _ := drv.Device(0)
	s, _ := dev.NewStream()
	staging, _ := dev.AllocPinned(1)
	a, _ := dev.Alloc(1)
	b, _ := dev.Alloc(1)
	defer func() { staging.Close(); a.Close(); b.Close() }()
	if err := send(s, staging, []*cuda.Buffer{a, b}, []byte{1, 2}); err != nil {
		t.Errorf("send: %v", err)
	}
	got := make([]byte, 1)
	if a.ReadAt(got, 0); got[0] != 1 {
		t.Errorf("the first buffer has %d, want 1", got[0])
	}
}

// end test

// Tester is what the guide's test needs of a *testing.T.
type Tester interface {
	Errorf(format string, args ...any)
}

// TestGuideExplored has exploration find the guide's bug.
func TestGuideExplored(t *testing.T) {
	p := &probe{}
	softcuda.Explore(p, 1000, func(p *probe, drv *cuda.Driver) { testSend(p, drv) })
	if !p.failed {
		t.Error("no schedule of a thousand shows the bug")
	}
	t.Log(strings.Join(p.log, "\n"))
}

// TestGuideChecked has the checker find it in the first run, whatever the device does first.
func TestGuideChecked(t *testing.T) {
	for seed := uint64(1); seed < 20; seed++ {
		var check softcuda.Check
		drv := softcuda.New(softcuda.Options{Check: &check, Seed: seed})
		testSend(&probe{}, drv)
		noErr(t, drv.Close())
		if list := check.Reports(); len(list) != 1 || !strings.Contains(list[0].First, "copy") || !strings.Contains(list[0].Second, "the program writes") {
			t.Errorf("seed %d: %v", seed, list)
		}
	}
}

// TestGuidePage compares the page's code and table with the tests.
func TestGuidePage(t *testing.T) {
	page, err := os.ReadFile(guidePage)
	noErr(t, err)
	want := string(page)
	source, err := os.ReadFile("guide_test.go")
	noErr(t, err)
	for _, name := range []string{"send", "test"} {
		code := strings.TrimSpace(between(t, string(source), "// begin "+name+"\n", "// end "+name+"\n"))
		want = replaceBetween(t, want, "<!-- "+name+" -->\n", "<!-- end -->", "```go\n"+strings.ReplaceAll(code, "t Tester", "t *testing.T")+"\n```\n")
	}
	want = replaceBetween(t, want, "<!-- corpus -->\n", "<!-- end -->", corpusTable())
	if want == string(page) {
		return
	}
	if !*updateGuide {
		t.Fatalf("%s is not up to date; go test ./softcuda -run TestGuidePage -update-guide", guidePage)
	}
	noErr(t, os.WriteFile(guidePage, []byte(want), 0o644))
}

// corpusTable lists the programs of the corpus.
func corpusTable() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d wrong programs, each reported with the pair in the table:\n\n| program | first | second |\n|---|---|---|\n", len(wrongPrograms))
	for _, p := range wrongPrograms {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", p.name, p.first, p.second)
	}
	fmt.Fprintf(&b, "\n%d right programs, of which nothing is reported:\n\n", len(rightPrograms))
	for _, p := range rightPrograms {
		fmt.Fprintf(&b, "- %s\n", p.name)
	}
	return b.String()
}

func between(t *testing.T, text, begin, end string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, begin)
	inner, _, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("there is no %q with %q behind it", begin, end)
	}
	return inner
}

func replaceBetween(t *testing.T, text, begin, end, with string) string {
	t.Helper()
	return strings.Replace(text, begin+between(t, text, begin, end)+end, begin+with+end, 1)
}

package timeline_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/timeline"
)

// chromeFile is the JSON object form of the Trace Event Format, as its document describes it.
type chromeFile struct {
	DisplayTimeUnit string         `json:"displayTimeUnit"`
	OtherData       map[string]any `json:"otherData"`
	TraceEvents     []chromeEvent  `json:"traceEvents"`
}

type chromeEvent struct {
	Name, Cat, Ph, Bp string
	Ts, Dur           *float64
	Pid, Tid          *int
	ID                int
	Args              map[string]any
}

func (e chromeEvent) thread() [2]int { return [2]int{*e.Pid, *e.Tid} }

func chromeOf(t *testing.T, trace *cuda.Trace) chromeFile {
	t.Helper()
	var b bytes.Buffer
	if err := timeline.WriteChrome(&b, trace); err != nil {
		t.Fatal(err)
	}
	var file chromeFile
	d := json.NewDecoder(&b)
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestChromeFormat: each event has what the format demands of its phase, threads and processes are named, the slices of a thread do not
// overlap, and arrows begin and end in slices.
func TestChromeFormat(t *testing.T) {
	for name, trace := range map[string]*cuda.Trace{"sample": sample(), "empty": {}, "large": large(3000)} {
		t.Run(name, func(t *testing.T) { checkChrome(t, chromeOf(t, trace)) })
	}
}

func checkChrome(t *testing.T, file chromeFile) {
	if file.DisplayTimeUnit != "ns" {
		t.Errorf("displayTimeUnit %q", file.DisplayTimeUnit)
	}
	named, slicesOf := map[string]bool{}, map[[2]int][]chromeEvent{}
	for _, e := range file.TraceEvents {
		if e.Ts == nil || e.Pid == nil || e.Tid == nil || e.Name == "" || *e.Ts < 0 {
			t.Fatalf("%+v lacks something", e)
		}
		switch e.Ph {
		case "M":
			named[fmt.Sprint(e.Name, e.thread())] = true
		case "X":
			if e.Dur == nil || *e.Dur < 0 || e.Cat == "" {
				t.Errorf("%+v is no complete event", e)
			}
			slicesOf[e.thread()] = append(slicesOf[e.thread()], e)
		case "s", "f":
		default:
			t.Errorf("phase %q", e.Ph)
		}
	}
	for thread, list := range slicesOf {
		for _, want := range []string{fmt.Sprint("thread_name", thread), fmt.Sprint("thread_sort_index", thread), fmt.Sprint("process_name", [2]int{thread[0], 0})} {
			if !named[want] {
				t.Errorf("there is no %s", want)
			}
		}
		slices.SortStableFunc(list, func(a, b chromeEvent) int { return int(math.Copysign(1, *a.Ts-*b.Ts)) })
		for i := 1; i < len(list); i++ {
			if end := *list[i-1].Ts + *list[i-1].Dur; end > *list[i].Ts+1e-6 {
				t.Errorf("%v: %s ends at %v, %s begins at %v", thread, list[i-1].Name, end, list[i].Name, *list[i].Ts)
			}
		}
	}
	checkFlows(t, file.TraceEvents, slicesOf)
}

func checkFlows(t *testing.T, events []chromeEvent, slicesOf map[[2]int][]chromeEvent) {
	begun := map[int]chromeEvent{}
	for _, e := range events {
		if e.Ph != "s" && e.Ph != "f" {
			continue
		}
		inside := slices.ContainsFunc(slicesOf[e.thread()], func(s chromeEvent) bool { return *s.Ts <= *e.Ts && *e.Ts <= *s.Ts+*s.Dur })
		if !inside || e.ID == 0 {
			t.Errorf("arrow %+v at %v is in no slice", e, *e.Ts)
		}
		if e.Ph == "s" {
			if _, ok := begun[e.ID]; ok {
				t.Errorf("two arrows have the id %d", e.ID)
			}
			begun[e.ID] = e
			continue
		}
		s, ok := begun[e.ID]
		if !ok || s.Name != e.Name || s.Cat != e.Cat || *s.Ts > *e.Ts || e.Bp != "e" {
			t.Errorf("arrow %+v does not end %+v", e, s)
		}
		delete(begun, e.ID)
	}
	if len(begun) > 0 {
		t.Errorf("%d arrows do not end", len(begun))
	}
}

// find are the slices of a name and category.
func (f chromeFile) find(cat, name string) (list []chromeEvent) {
	for _, e := range f.TraceEvents {
		if e.Ph == "X" && e.Cat == cat && e.Name == name {
			list = append(list, e)
		}
	}
	return list
}

// names are the processes and threads by their numbers.
func (f chromeFile) name(e chromeEvent) (process, thread string) {
	for _, m := range f.TraceEvents {
		switch {
		case m.Ph != "M" || *m.Pid != *e.Pid:
		case m.Name == "process_name":
			process = m.Args["name"].(string)
		case m.Name == "thread_name" && *m.Tid == *e.Tid:
			thread = m.Args["name"].(string)
		}
	}
	return process, thread
}

// TestChromeContents: what is where, for how long, and with which arguments.
func TestChromeContents(t *testing.T) {
	f := chromeOf(t, sample())
	for _, want := range []struct {
		cat, name, process, thread string
		ts, dur                    float64
		args                       string
	}{
		{"kernel", "produce", "Device 0", "stream 1", 20, 79, "map[clock:device id:1 op:Stream.Launch site:main.go:10]"}, // cut by the next, within the accuracy
		{"host function", "check <all> & \"more\"", "Device 0", "stream 1", 99, 51, "map[clock:host id:2 op:HostLaunch site:main.go:11]"},
		{"copy", "to host", "Device 0", "stream 2", 151, 200, "map[GB/s:20 bytes:4e+06 clock:device id:5 op:CopyToHost site:main.go:14]"},
		{"graph", "batch", "Device 1", "stream 3", 50, 250, "map[clock:device id:6 op:GraphExec.Launch site:main.go:15]"},
		{"node", "replayed", "Device 1", "stream 3 (2)", 100, 20, "map[clock:host id:7 op:HostLaunch parent:6 site:main.go:16]"},
		{"kernel", "endless", "Device 0", "stream 1", 700, 300, "map[clock:device error:device lost id:10 op:Stream.Launch site:main.go:19 unfinished:true]"},
		{"sync", "Stream.Sync", "Host", "waits", 48, 952, "map[clock:host id:12 op:Stream.Sync site:main.go:20 unfinished:true]"},
		{"call", "CopyToHost", "Host", "calls", 22, 8, "map[id:5 kind:copy name:to host site:main.go:14 stream:stream 2]"},
		{"native", "memmove", "Device 1", "stream 3", 620, 1, "map[GB/s:0.5 after:[5 99] bytes:500 clock:device id:14 op:HostCopy site:main.go:22]"},
	} {
		list := f.find(want.cat, want.name)
		if len(list) != 1 {
			t.Errorf("%s %q: %d slices", want.cat, want.name, len(list))
			continue
		}
		e := list[0]
		process, thread := f.name(e)
		if process != want.process || thread != want.thread || *e.Ts != want.ts || *e.Dur != want.dur || fmt.Sprint(e.Args) != want.args {
			t.Errorf("%s %q: %s, %s, %v for %v, %v", want.cat, want.name, process, thread, *e.Ts, *e.Dur, e.Args)
		}
	}
	if len(f.find("host function", "never")) != 0 {
		t.Error("what never ran is drawn")
	}
	if f.OtherData["driver"] != "software" || f.OtherData["accuracy_us"] != 2.0 {
		t.Errorf("otherData %v", f.OtherData)
	}
}

// TestChromeArrows: one from each call to what it queued and ran, one for each dependency that is there.
func TestChromeArrows(t *testing.T) {
	var got []string
	queued := 0
	for _, e := range chromeOf(t, sample()).TraceEvents {
		switch {
		case e.Name == "queued" && e.Ph == "s":
			queued++
		case e.Name == "after":
			process, thread := chromeOf(t, sample()).name(e)
			got = append(got, fmt.Sprintf("%s %.3f %s %s", e.Ph, *e.Ts, process, thread))
		}
	}
	want := []string{
		"s 150.000 Device 0 stream 1", "f 150.999 Device 0 stream 2", // a wait ends when what it waited for does
		"s 350.999 Device 0 stream 2", "f 620.000 Device 1 stream 3",
	}
	if queued != 10 || !slices.Equal(got, want) {
		t.Errorf("%d, %q", queued, got)
	}
}

// large is a trace of n operations on four streams.
func large(n int) *cuda.Trace {
	t := &cuda.Trace{Driver: "software", Version: "13.0", Began: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC), Duration: time.Duration(n+10) * 10 * us}
	kinds := []cuda.TraceKind{cuda.TraceKernel, cuda.TraceCopy, cuda.TraceHost, cuda.TraceGraph}
	for i := range 4 {
		t.Streams = append(t.Streams, cuda.TraceStream{Device: i / 2, Name: fmt.Sprintf("stream %d", i+1)})
	}
	for i := range n {
		at := time.Duration(i) * 10 * us
		s := cuda.TraceSpan{
			ID: i + 1, Kind: kinds[i%4], Name: fmt.Sprintf("op%d", i%7), Op: "Stream.Launch", Site: fmt.Sprintf("main.go:%d", i%100), Stream: i / 3 % 4,
			Enqueued: at, Returned: at + 2*us, Start: at + 10*us, End: at + 10*us + time.Duration(5+i%30)*us, Device: true,
		}
		if i > 10 && i%5 == 0 {
			s.After = []int{i - 9}
		}
		t.Spans = append(t.Spans, s)
	}
	return t
}

package model

import (
	"slices"
	"strings"
	"testing"
)

// streams of the tests: the legacy one, two blocking and two others.
var streams = []Stream{Legacy, Blocking, Blocking, NonBlocking, NonBlocking}

// play applies ops, which answer what the model wants, and NotReady where it leaves that open.
func play(t *testing.T, ops ...Op) (m *State, last Answer) {
	t.Helper()
	m = New(&Program{Streams: streams, Events: 2, Ops: ops})
	for _, o := range ops {
		last = m.Next(o)
		got := last
		if got >= Any {
			got = got.Least()
		}
		if wrong := m.Apply(o, got); wrong != "" {
			t.Fatal(o, wrong)
		}
	}
	return m, last
}

func kernel(s, n int) Op { return Op{Kind: Kernel, S: s, N: n} }
func gate(s, n int) Op   { return Op{Kind: Gate, S: s, N: n} }
func on(k Kind, s, e int) Op {
	return Op{Kind: k, S: s, E: e}
}

func at(k Kind, s, n int) Op { return Op{Kind: k, S: s, N: n} }

// TestGraphOrder: what certainly comes before the marks of a graph, launched once and again behind a kernel.
func TestGraphOrder(t *testing.T) {
	m, _ := play(t, at(Begin, 3, 0), kernel(3, 0), on(Record, 3, 0), on(WaitEvent, 4, 0), kernel(4, 1), kernel(3, 2), Op{Kind: WaitStream, S: 3, O: 4},
		kernel(3, 3), at(End, 3, 0), at(Launch, 3, 0), kernel(4, 4), at(Launch, 4, 0))
	for n, want := range map[int]Set{0: 0, 1: 0b1, 2: 0b1, 3: 0b111, 63: 0b11111, 62: 0b11111 | 1<<63, 60: 0b11111 | 7<<61} {
		if m.After[n] != want {
			t.Errorf("mark %d: behind %b, want %b", n, m.After[n], want)
		}
	}
	if m.Coming(1, 0) != 1 || m.Coming(1, 1) != 62 || m.Coming(1, 2) != 1 || m.Queued() != 9 {
		t.Errorf("mark 1 comes as %d, %d and %d; %d marks", m.Coming(1, 0), m.Coming(1, 1), m.Coming(1, 2), m.Queued())
	}
}

// TestOrder: what certainly comes before the last mark.
func TestOrder(t *testing.T) {
	for name, c := range map[string]struct {
		ops  []Op
		want Set
	}{
		"a stream":                   {[]Op{kernel(3, 0), kernel(3, 1), kernel(3, 2)}, 0b11},
		"two streams":                {[]Op{kernel(3, 0), kernel(4, 1)}, 0},
		"legacy behind blocking":     {[]Op{kernel(1, 0), kernel(2, 1), kernel(3, 2), kernel(0, 3)}, 0b11},
		"blocking behind legacy":     {[]Op{kernel(1, 0), kernel(0, 1), kernel(2, 2)}, 0b11},
		"non-blocking beside legacy": {[]Op{kernel(0, 0), kernel(3, 1)}, 0},
		"an event":                   {[]Op{kernel(3, 0), on(Record, 3, 0), kernel(3, 1), on(WaitEvent, 4, 0), kernel(4, 2)}, 0b1},
		"recorded again":             {[]Op{kernel(3, 0), on(Record, 3, 0), on(WaitEvent, 4, 0), kernel(1, 1), on(Record, 1, 0), kernel(4, 2)}, 0b1},
		"never recorded":             {[]Op{kernel(3, 0), on(WaitEvent, 4, 0), kernel(4, 1)}, 0},
		"an event on legacy":         {[]Op{kernel(1, 0), on(Record, 0, 0), on(WaitEvent, 4, 0), kernel(4, 1)}, 0b1},
		"a stream's wait":            {[]Op{kernel(3, 0), {Kind: WaitStream, S: 4, O: 3}, kernel(4, 1)}, 0b1},
		"closed before legacy":       {[]Op{kernel(1, 0), on(CloseStream, 1, 0), kernel(0, 1)}, 0}, // left open
		"launched":                   {[]Op{at(Begin, 3, 1), kernel(3, 0), kernel(3, 1), at(End, 3, 0), at(Launch, 3, 0), kernel(3, 2)}, 0b11},
		"launched behind":            {[]Op{at(Begin, 3, 1), kernel(3, 5), at(End, 3, 0), kernel(4, 0), at(Launch, 4, 0), kernel(4, 2)}, 0b100001},
		"launched twice":             {[]Op{at(Begin, 3, 1), kernel(3, 0), at(End, 3, 0), at(Launch, 3, 0), at(Launch, 4, 0), kernel(4, 2)}, 0b1 | 1<<63},
		"not launched":               {[]Op{at(Begin, 3, 1), kernel(3, 0), at(End, 3, 0), kernel(3, 2)}, 0},
		"an empty launch":            {[]Op{kernel(3, 0), at(Begin, 4, 1), at(End, 4, 0), at(Launch, 3, 0), kernel(4, 1), at(Launch, 4, 0), kernel(4, 2)}, 0b10},
		"through two events":         {[]Op{kernel(3, 0), on(Record, 3, 0), on(WaitEvent, 1, 0), on(Record, 1, 1), on(WaitEvent, 4, 1), kernel(4, 1)}, 0b1},
	} {
		m, _ := play(t, c.ops...)
		if got := m.After[c.ops[len(c.ops)-1].N]; got != c.want {
			t.Errorf("%s: behind %b, want %b", name, got, c.want)
		}
	}
}

// TestAnswers: what the last call must answer.
func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		ops  []Op
		want Answer
	}{
		"idle":                           {[]Op{on(QueryStream, 3, 0)}, Done},
		"busy or not":                    {[]Op{kernel(3, 0), on(QueryStream, 3, 0)}, Any},
		"after sync":                     {[]Op{kernel(3, 0), on(SyncStream, 3, 0), on(QueryStream, 3, 0)}, Done},
		"gated":                          {[]Op{gate(3, 0), on(QueryStream, 3, 0)}, NotReady},
		"gated elsewhere":                {[]Op{gate(3, 0), on(QueryStream, 4, 0)}, Done},
		"legacy with gated blocking":     {[]Op{gate(1, 0), on(QueryStream, 0, 0)}, NotReady},
		"opened":                         {[]Op{gate(3, 0), {Kind: Open, N: 0}, on(QueryStream, 3, 0)}, Any},
		"sync of a gated stream":         {[]Op{gate(3, 0), on(SyncStream, 3, 0)}, Hangs},
		"sync behind a host function":    {[]Op{{Kind: Host, S: 4}, gate(3, 1), on(SyncStream, 4, 0)}, Hangs},
		"sync beside a gate":             {[]Op{gate(3, 0), kernel(4, 1), on(SyncStream, 4, 0)}, OK},
		"await of blocking behind gate":  {[]Op{gate(0, 0), on(AwaitStream, 1, 0)}, Hangs},
		"event never recorded":           {[]Op{on(QueryEvent, 0, 0)}, Done},
		"event behind a gate":            {[]Op{gate(3, 0), on(Record, 3, 0), on(QueryEvent, 0, 0)}, NotReady},
		"event before a gate":            {[]Op{on(Record, 3, 0), gate(3, 0), on(QueryEvent, 0, 0)}, Any},
		"event after sync of its stream": {[]Op{on(Record, 3, 0), on(SyncStream, 3, 0), on(QueryEvent, 0, 0)}, Done},
		"closed stream":                  {[]Op{on(CloseStream, 3, 0), kernel(3, 0)}, Closed},
		"closed twice":                   {[]Op{on(CloseStream, 3, 0), on(CloseStream, 3, 0)}, OK},
		"legacy after a close":           {[]Op{on(CloseStream, 1, 0), on(QueryStream, 0, 0)}, Any},
		"legacy after another close":     {[]Op{on(CloseStream, 3, 0), on(QueryStream, 0, 0)}, Done},
		"legacy is never closed":         {[]Op{on(CloseStream, 0, 0), kernel(0, 0)}, OK},
		"closed event":                   {[]Op{on(CloseEvent, 0, 1), on(WaitEvent, 3, 1)}, Closed},
		"legacy cannot begin":            {[]Op{at(Begin, 0, 1)}, Unsupported},
		"begun twice":                    {[]Op{at(Begin, 3, 1), at(Begin, 3, 1)}, Capturing},
		"ends":                           {[]Op{at(Begin, 3, 1), at(End, 3, 0)}, OK},
		"never begun":                    {[]Op{at(End, 3, 0)}, Mistaken},
		"unjoined":                       {[]Op{at(Begin, 3, 1), {Kind: WaitStream, S: 4, O: 3}, kernel(4, 0), at(End, 3, 0)}, Unjoined},
		"a fork without work":            {[]Op{at(Begin, 3, 1), {Kind: WaitStream, S: 4, O: 3}, at(End, 3, 0)}, Ended},
		"joined":                         {[]Op{at(Begin, 3, 1), {Kind: WaitStream, S: 4, O: 3}, kernel(4, 0), {Kind: WaitStream, S: 3, O: 4}, at(End, 3, 0)}, OK},
		"joined too early":               {[]Op{at(Begin, 3, 1), {Kind: WaitStream, S: 4, O: 3}, {Kind: WaitStream, S: 3, O: 4}, kernel(4, 0), at(End, 3, 0)}, Unjoined},
		"merge":                          {[]Op{at(Begin, 3, 1), at(Begin, 4, 1), on(Record, 3, 0), on(WaitEvent, 4, 0)}, Merge},
		"after a merge":                  {[]Op{at(Begin, 3, 1), at(Begin, 4, 1), on(Record, 3, 0), on(WaitEvent, 4, 0), at(End, 3, 0)}, Ended},
		"work outside":                   {[]Op{on(Record, 4, 0), at(Begin, 3, 2), on(WaitEvent, 3, 0)}, Isolation},
		"after work outside":             {[]Op{on(Record, 4, 0), at(Begin, 3, 2), on(WaitEvent, 3, 0), at(End, 3, 0)}, Invalidated},
		"a stream outside":               {[]Op{at(Begin, 3, 2), {Kind: WaitStream, S: 3, O: 4}}, Isolation},
		"after a stream outside":         {[]Op{at(Begin, 3, 2), {Kind: WaitStream, S: 3, O: 4}, at(End, 3, 0)}, OK},
		"legacy beside blocking":         {[]Op{at(Begin, 1, 2), kernel(0, 0)}, Implicit},
		"legacy beside non-blocking":     {[]Op{at(Begin, 3, 2), kernel(0, 0)}, OK},
		"unsafe beside global":           {[]Op{at(Begin, 3, 0), on(QueryStream, 4, 0)}, Unsupported},
		"after unsafe beside global":     {[]Op{at(Begin, 3, 0), on(QueryStream, 4, 0), at(End, 3, 0)}, Invalidated},
		"unsafe beside two":              {[]Op{at(Begin, 3, 0), at(Begin, 4, 0), on(QueryEvent, 0, 0), at(End, 3, 0)}, Ended},
		"unsafe beside thread local":     {[]Op{at(Begin, 3, 1), on(QueryStream, 4, 0)}, Done},
		"unsafe within thread local":     {[]Op{at(Begin, 3, 1), {Kind: Within, S: 3, O: 4}}, Unsupported},
		"unsafe within relaxed":          {[]Op{at(Begin, 3, 2), {Kind: Within, S: 3, O: 4}}, Done},
		"a wait beside global":           {[]Op{at(Begin, 3, 0), on(AwaitStream, 4, 0), at(End, 3, 0)}, OK},
		"captured event":                 {[]Op{at(Begin, 3, 2), on(Record, 3, 0), on(QueryEvent, 3, 0)}, CapturedEvent},
		"after a captured event":         {[]Op{at(Begin, 3, 2), on(Record, 3, 0), on(QueryEvent, 3, 0), kernel(3, 0)}, Invalidated},
		"captured event, later":          {[]Op{at(Begin, 3, 2), on(Record, 3, 0), at(End, 3, 0), on(QueryEvent, 3, 0)}, Refused},
		"captured event, spoiled":        {[]Op{at(Begin, 3, 2), on(Record, 3, 0), on(SyncStream, 3, 0), at(End, 3, 0), on(QueryEvent, 3, 0)}, Refused},
		"captured event, recorded anew":  {[]Op{at(Begin, 3, 2), on(Record, 3, 0), at(End, 3, 0), on(Record, 3, 0), on(SyncEvent, 3, 0), on(QueryEvent, 3, 0)}, Done},
		"host function on a fork":        {[]Op{at(Begin, 3, 1), {Kind: WaitStream, S: 4, O: 3}, {Kind: Host, S: 4, N: 0}}, Capturing},
		"launch without a graph":         {[]Op{at(Launch, 3, 0)}, NoGraph},
		"launch while capturing":         {[]Op{at(Begin, 3, 1), at(End, 3, 0), at(Begin, 3, 1), at(Launch, 3, 0)}, Capturing},
		"behind a launch and a gate":     {[]Op{at(Begin, 3, 1), {Kind: Host, S: 3, N: 0}, at(End, 3, 0), at(Launch, 3, 0), gate(4, 1), on(SyncStream, 3, 0)}, Hangs},
		"closed while capturing":         {[]Op{at(Begin, 3, 1), on(CloseStream, 3, 0), kernel(3, 0)}, Closed},
		"ends closed":                    {[]Op{at(Begin, 3, 1), on(CloseStream, 3, 0), at(End, 3, 0)}, OK},
		"a mark used twice":              {[]Op{kernel(3, 0), kernel(4, 0)}, Mistaken},
		"a captured mark used twice":     {[]Op{at(Begin, 3, 1), kernel(3, 0), kernel(3, 0)}, Mistaken},
		"a mark that a launch has taken": {[]Op{at(Begin, 3, 1), kernel(3, 0), at(End, 3, 0), at(Launch, 3, 0), at(Launch, 3, 0), at(Begin, 3, 1), kernel(3, 63)}, Mistaken},
		"opened without a gate":          {[]Op{{Kind: Open, N: 0}}, Mistaken},
	} {
		m, _ := play(t, c.ops[:len(c.ops)-1]...)
		if got := m.Next(c.ops[len(c.ops)-1]); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestCheck: what was seen of kernel 0 -> host 1 -> kernel 2 must fit.
func TestCheck(t *testing.T) {
	m, _ := play(t, kernel(3, 0), Op{Kind: Host, S: 3, N: 1}, kernel(3, 2))
	right := [3]Sight{{Times: 1}, {Times: 1, Host: true, Begin: 1, End: 1}, {Times: 1, Place: 1}}
	for want, change := range map[string]func(s *[3]Sight){
		"":                                 func(*[3]Sight) {},
		"mark 1 came 0 times":              func(s *[3]Sight) { s[1].Times = 0 },
		"mark 2 came 2 times":              func(s *[3]Sight) { s[2].Times = 2 },
		"mark 1 did not come after mark 0": func(s *[3]Sight) { s[1].Begin = 0 },
		"mark 2 did not come after mark 1": func(s *[3]Sight) { s[1].End = 2 },
		"mark 2 did not come after mark 0": func(s *[3]Sight) { s[0].Place, s[2].Place, s[1].Begin, s[1].End = 1, 0, 2, 0 },
		"mark 1 is in the wrong log":       func(s *[3]Sight) { s[1].Host = false },
	} {
		s := right
		change(&s)
		seen := new([Most]Sight)
		copy(seen[:], s[:])
		if got := m.Check(seen); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestKinds: every operation can be written down, and is a call of what it names.
func TestKinds(t *testing.T) {
	var texts []string
	for k := range kinds {
		texts = append(texts, Op{Kind: k, S: 1, O: 2, E: 3, N: 4}.String())
	}
	for _, s := range texts {
		if s == "" || strings.Contains(s, "%") {
			t.Errorf("%q of %q", s, texts)
		}
	}
	if slices.Sort(texts); len(slices.Compact(texts)) != Kinds {
		t.Errorf("written alike: %q", texts)
	}
}

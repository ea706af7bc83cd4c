package timeline

import "github.com/hostlaunch/cuda"

// pageData is what the page's script reads: a trace, by columns, with each text once.
type pageData struct {
	Duration int64         `json:"duration"` // times in nanoseconds
	Kinds    []string      `json:"kinds"`    // names and CSS classes, in turn
	Texts    []string      `json:"texts"`    // the first one is empty
	Streams  []string      `json:"streams"`
	Spans    pageSpans     `json:"spans"`
	After    map[int][]int `json:"after"`  // by indices of spans
	Parent   map[int]int   `json:"parent"` //
	Lanes    []pageLane    `json:"lanes"`
}

// pageSpans has a column for each thing that is known of a span. Names and so on are indices in Texts.
type pageSpans struct {
	ID       []int   `json:"id"`
	Kind     []int   `json:"kind"` // number of the kind
	Name     []int   `json:"name"`
	Op       []int   `json:"op"`
	Site     []int   `json:"site"`
	Error    []int   `json:"error"`
	Stream   []int   `json:"stream"`
	Bytes    []int64 `json:"bytes"`
	Enqueued []int64 `json:"enqueued"`
	Returned []int64 `json:"returned"`
	Start    []int64 `json:"start"`
	End      []int64 `json:"end"`
	Device   []int   `json:"device"` // 1: by the device's clock
}

// pageLane is a lane, whose rows list spans.
type pageLane struct {
	Group string  `json:"group"`
	Name  string  `json:"name"`
	Calls bool    `json:"calls"`
	Rows  [][]int `json:"rows"`
}

// texts numbers strings.
type texts struct {
	list  []string
	known map[string]int
}

func (x *texts) number(s string) int {
	n, ok := x.known[s]
	if !ok {
		n = len(x.list)
		x.known[s] = n
		x.list = append(x.list, s)
	}
	return n
}

func newPageData(t *cuda.Trace, kinds []pageKind) *pageData {
	d := &pageData{Duration: int64(t.Duration), After: map[int][]int{}, Parent: map[int]int{}}
	number := map[cuda.TraceKind]int{}
	for i, k := range kinds {
		number[k.Kind] = i
		d.Kinds = append(d.Kinds, string(k.Kind), kindClass(k.Kind))
	}
	for _, s := range t.Streams {
		d.Streams = append(d.Streams, deviceGroup(s.Device)+", "+s.Name)
	}
	x := &texts{known: map[string]int{}}
	x.number("")
	index := make(map[int]int, len(t.Spans))
	for i := range t.Spans {
		s := &t.Spans[i]
		index[s.ID] = i
		d.Spans.add(s, number[s.Kind], x)
		d.Duration = max(d.Duration, int64(s.Returned), int64(s.End), int64(s.Enqueued), int64(s.Start))
	}
	d.Texts = x.list
	d.link(t, index)
	for _, l := range lanesOf(t) {
		d.Lanes = append(d.Lanes, newPageLane(l))
	}
	return d
}

func (p *pageSpans) add(s *cuda.TraceSpan, kind int, x *texts) {
	device := 0
	if s.Device {
		device = 1
	}
	p.ID = append(p.ID, s.ID)
	p.Kind = append(p.Kind, kind)
	p.Name = append(p.Name, x.number(spanName(s)))
	p.Op = append(p.Op, x.number(s.Op))
	p.Site = append(p.Site, x.number(s.Site))
	p.Error = append(p.Error, x.number(s.Error))
	p.Stream = append(p.Stream, s.Stream)
	p.Bytes = append(p.Bytes, s.Bytes)
	p.Device = append(p.Device, device)
	p.Enqueued = append(p.Enqueued, int64(s.Enqueued))
	p.Returned = append(p.Returned, int64(s.Returned))
	p.Start = append(p.Start, int64(s.Start))
	p.End = append(p.End, int64(s.End))
}

// link notes who waited for whom, and what belongs to what, as far as it is in the trace.
func (d *pageData) link(t *cuda.Trace, index map[int]int) {
	for i := range t.Spans {
		for _, id := range t.Spans[i].After {
			if from, ok := index[id]; ok {
				d.After[i] = append(d.After[i], from)
			}
		}
		if from, ok := index[t.Spans[i].Parent]; ok {
			d.Parent[i] = from
		}
	}
}

func newPageLane(l lane) pageLane {
	p := pageLane{Group: l.group, Name: l.name, Calls: l.calls}
	for _, row := range l.rows {
		list := make([]int, len(row))
		for i, b := range row {
			list[i] = b.span
		}
		p.Rows = append(p.Rows, list)
	}
	return p
}

package main

import (
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hostlaunch/cuda/internal/bench/rig"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// plots are where to draw, and as what: svg or png. With an empty folder nothing is drawn.
type plots struct{ dir, format string }

// newPlots reads --plots: a folder, and perhaps a format behind a comma.
func newPlots(flag string) (plots, error) {
	dir, format, given := strings.Cut(flag, ",")
	if !given {
		format = "svg"
	}
	if format != "svg" && format != "png" {
		return plots{}, fmt.Errorf("--plots: format %q is unknown; take svg or png", format)
	}
	if given && dir == "" {
		return plots{}, fmt.Errorf("--plots names a format and no folder; say --plots=folder,%s", format)
	}
	return plots{dir, format}, nil
}

// The colours are told apart by those who see few.
var (
	blue   = color.RGBA{0x00, 0x72, 0xb2, 0xff}
	orange = color.RGBA{0xd5, 0x5e, 0x00, 0xff}
	green  = color.RGBA{0x00, 0x9e, 0x73, 0xff}
	grey   = color.RGBA{0x70, 0x70, 0x70, 0xff}
)

// prepare makes the folder, if there is to be one.
func (to plots) prepare() error {
	if to.dir == "" {
		return nil
	}
	if err := os.MkdirAll(to.dir, 0o755); err != nil {
		return fmt.Errorf("--plots: %w", err)
	}
	return nil
}

// draw makes the plots that there are figures for.
func (to plots) draw(f *figures) error {
	if to.dir == "" {
		return nil
	}
	for _, d := range []struct{ direction, title string }{{"down", "Device to host"}, {"up", "Host to device"}} {
		p, err := rates(f, d.direction, d.title)
		if err == nil && p != nil {
			err = to.save(p, "copies-"+d.direction, 9*vg.Inch, 5*vg.Inch)
		}
		if err != nil {
			return err
		}
	}
	p, rows, err := times(f)
	if err == nil && p != nil {
		err = to.save(p, "times", 10*vg.Inch, vg.Length(1.2+0.45*float64(rows))*vg.Inch)
	}
	return err
}

func (to plots) save(p *plot.Plot, name string, width, height vg.Length) error {
	if err := p.Save(width, height, filepath.Join(to.dir, name+"."+to.format)); err != nil {
		return fmt.Errorf("--plots: %w", err)
	}
	return nil
}

// newPlot is an empty plot that says where its figures come from.
func newPlot(f *figures, title string) *plot.Plot {
	plot.DefaultFont.Variant, plotter.DefaultFont.Variant = "Sans", "Sans"
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%s\n%s, %s driver, CUDA %s, called through %s", title, f.Device, f.Driver, f.CUDA, f.Calls)
	p.Title.TextStyle.Font.Size = vg.Points(13)
	p.Title.Padding = vg.Points(8)
	p.BackgroundColor = color.White
	return p
}

// rates draws copies' rates by size, nil if there are none.
func rates(f *figures, direction, title string) (*plot.Plot, error) {
	p := newPlot(f, title+": rate by size, medians")
	p.X.Scale, p.X.Tick.Marker, p.X.Label.Text = plot.LogScale{}, sizeTicks{}, "size of the copy"
	p.Y.Label.Text, p.Y.Min = "GB/s", 0
	p.Legend.Top, p.Legend.Left = true, true
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{0xe8}, color.Gray{0xe8}
	p.Add(grid)
	ours := func(x *figure) float64 { return x.Value }
	theirs := func(x *figure) float64 {
		if x.Floor == nil {
			return 0
		}
		return *x.Floor
	}
	lines := 0
	for _, l := range []struct {
		way, title string
		value      func(*figure) float64
		color      color.Color
		dashed     bool
	}{
		{"pinned", "pinned memory", ours, grey, false},
		{"pinned", "pinned memory, C++", theirs, grey, true},
		{"staged", "ordinary memory", ours, blue, false},
		{"direct", "ordinary memory, Direct", ours, orange, false},
		{"direct", "ordinary memory, C++", theirs, orange, true},
	} {
		var points plotter.XYs
		for _, x := range f.Figures {
			if c := x.Copy; c != nil && c.Direction == direction && c.Way == l.way && l.value(&x) > 0 {
				points = append(points, plotter.XY{X: float64(c.Bytes), Y: l.value(&x)})
			}
		}
		if len(points) == 0 {
			continue
		}
		lines++
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width, dots.Color, dots.Shape = l.color, vg.Points(1.8), l.color, draw.CircleGlyph{}
		if l.dashed {
			line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		}
		p.Add(line, dots)
		p.Legend.Add(l.title, line, dots)
	}
	if lines == 0 {
		return nil, nil
	}
	p.X.Min, p.X.Max, p.Y.Max = p.X.Min/1.3, p.X.Max*1.3, p.Y.Max*1.25 // room for labels and the legend
	return p, nil
}

// sizeTicks are the powers of four, by their names.
type sizeTicks struct{}

func (sizeTicks) Ticks(low, high float64) (list []plot.Tick) {
	for n := 1 << 10; float64(n) <= high; n *= 4 {
		if float64(n) >= low {
			list = append(list, plot.Tick{Value: float64(n), Label: rig.SizeName(n)})
		}
	}
	return list
}

// times draws how long things take as bars, nil if nothing was measured, and says how many rows there are.
func times(f *figures) (*plot.Plot, int, error) {
	var names []string
	var ours, theirs plotter.Values
	longest := 0.0
	for _, x := range slices.Backward(f.Figures) { // the first is on top
		if x.Unit != "ns" || x.Value <= 0 {
			continue
		}
		names, ours, theirs = append(names, x.Title), append(ours, x.Value/1e3), append(theirs, 0)
		if x.Floor != nil {
			theirs[len(theirs)-1] = *x.Floor / 1e3
		}
		longest = max(longest, ours[len(ours)-1], theirs[len(theirs)-1])
	}
	if len(names) == 0 {
		return nil, 0, nil
	}
	p := newPlot(f, "Host functions, tasks and graphs: time, medians")
	p.X.Label.Text, p.X.Min, p.X.Max = "microseconds", 0, longest*1.3
	p.NominalY(names...)
	for _, b := range []struct {
		title  string
		values plotter.Values
		color  color.Color
		offset vg.Length
	}{{"this library", ours, blue, vg.Points(5)}, {"C++", theirs, green, vg.Points(-5)}} {
		if slices.Max(b.values) <= 0 {
			continue
		}
		bars, err := plotter.NewBarChart(b.values, vg.Points(9))
		if err != nil {
			return nil, 0, err
		}
		bars.Horizontal, bars.Color, bars.LineStyle.Width, bars.Offset = true, b.color, 0, b.offset
		labels, err := barLabels(b.values)
		if err != nil {
			return nil, 0, err
		}
		labels.Offset = vg.Point{X: vg.Points(4), Y: b.offset}
		p.Add(bars, labels)
		p.Legend.Add(b.title, bars)
	}
	p.Y.Tick.Label.Font.Size = vg.Points(10)
	p.Legend.XOffs, p.Legend.YOffs = vg.Points(-8), vg.Points(4)
	return p, len(names), nil
}

// barLabels are the figures at the bars' ends.
func barLabels(values plotter.Values) (*plotter.Labels, error) {
	at := plotter.XYLabels{}
	for i, v := range values {
		name := ""
		if v > 0 {
			name = fmt.Sprintf("%.*f", max(0, 2-int(math.Floor(math.Log10(v)))), v)
		}
		at.XYs, at.Labels = append(at.XYs, plotter.XY{X: v, Y: float64(i)}), append(at.Labels, name)
	}
	labels, err := plotter.NewLabels(at)
	if err != nil {
		return nil, err
	}
	for i := range labels.TextStyle {
		labels.TextStyle[i].Font.Size, labels.TextStyle[i].YAlign = vg.Points(8), text.YCenter
	}
	return labels, nil
}

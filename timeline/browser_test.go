package timeline_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/timeline"
)

// requireBrowser makes tests fail that lack a browser, rather than being skipped.
const requireBrowser = "HOSTLAUNCH_REQUIRE_BROWSER"

// tab is a page in headless Chromium.
type tab struct {
	*testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string
	requests   []string
}

// open opens the page of a trace in a browser of its own, 1200 by 900 pixels. At the end it checks that the page complained of nothing,
// and fetched nothing.
func open(t *testing.T, trace *cuda.Trace) *tab {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes a while")
	}
	names := []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "headless-shell"}
	at := slices.IndexFunc(names, func(name string) bool { _, err := exec.LookPath(name); return err == nil })
	if at < 0 {
		if os.Getenv(requireBrowser) != "" {
			t.Fatalf("%s is set, and none of %v is there", requireBrowser, names)
		}
		t.Skipf("none of %v is there", names)
	}
	var b bytes.Buffer
	if err := timeline.WriteHTML(&b, trace); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(names[at]), chromedp.NoSandbox, chromedp.WindowSize(1200, 900))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	p := &tab{T: t, ctx: ctx}
	if err := chromedp.Listen(ctx, p.listen); err != nil { // starts the browser
		t.Fatal(err)
	}
	p.ctx, cancel = context.WithTimeout(ctx, time.Minute)
	t.Cleanup(cancel)
	p.do(command(network.Enable, network.EnableParams{}), command(log.Enable, cdp.Empty{}))
	p.do(chromedp.Navigate("file://"+file), chromedp.WaitVisible(chromedp.CSS("#bars .bar")))
	t.Cleanup(p.finish)
	return p
}

func (p *tab) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.complaints = append(p.complaints, fmt.Sprint(e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		p.complaints = append(p.complaints, fmt.Sprintf("console.%s", e.Type))
	case *log.EventEntryAdded:
		p.complaints = append(p.complaints, e.Entry.Text)
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, e.Request.URL)
	}
}

func (p *tab) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.complaints) > 0 {
		p.Errorf("the page complains: %q", p.complaints)
	}
	for _, url := range p.requests {
		if !strings.HasPrefix(url, "file://") && !strings.HasPrefix(url, "data:") || strings.HasPrefix(url, "file://") && !strings.HasSuffix(url, "/page.html") {
			p.Errorf("the page fetches %s", url)
		}
	}
}

// command is an action that only gives the browser one command.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, c, params)
		return chromedp.Void{}, err
	}
}

func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.Fatal(err)
	}
}

// value is what an expression of the page's language gives, once what was asked for has been drawn.
func value[T any](p *tab, expression string) T {
	p.Helper()
	const once = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
	if _, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](once, chromedp.EvalAwaitPromise)); err != nil {
		p.Fatal(err)
	}
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits for an expression to become true.
func (p *tab) until(expression string) {
	p.Helper()
	for range 200 {
		if value[bool](p, expression) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	p.Fatalf("%s never came true; the details are %q", expression, value[string](p, `document.querySelector("#details").innerText`))
}

// bar is an expression for the bar with that text, and place is where its middle is.
func bar(name string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("#bars .bar")].find(g => g.textContent === %q)`, name)
}

func (p *tab) place(name string) (x, y float64) {
	p.Helper()
	at := value[[]float64](p, "(() => { const b = "+bar(name)+`.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()`)
	return at[0], at[1]
}

// shown is the part of the time in view, in microseconds.
func (p *tab) shown() (from, to float64) {
	p.Helper()
	at := value[[]float64](p, `(d => [+d.from / 1e3, +d.to / 1e3])(document.querySelector("#bars").dataset)`)
	return at[0], at[1]
}

func (p *tab) bars() int {
	p.Helper()
	return value[int](p, `document.querySelectorAll("#bars .bar").length`)
}

func mouse(params input.DispatchMouseEventParams) chromedp.Action[chromedp.Void] {
	return command(input.DispatchMouseEvent, params)
}

const shift = int64(chromedp.ModifierShift)

func (p *tab) wheel(x, y, by float64, modifiers int64) {
	p.Helper()
	p.do(mouse(input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseWheel, X: x, Y: y, DeltaX: 1e-3, DeltaY: by, Modifiers: modifiers})) // 0 is left out, and refused
}

func (p *tab) hover(x, y float64) {
	p.Helper()
	p.do(mouse(input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: x, Y: y}))
}

func (p *tab) drag(x1, y, x2 float64, modifiers int64) {
	p.Helper()
	e := input.DispatchMouseEventParams{X: x1, Y: y, Button: input.MouseButtonLeft, Buttons: 1, ClickCount: 1, Modifiers: modifiers}
	for _, step := range []struct {
		kind input.DispatchMouseEventType
		x    float64
	}{
		{input.DispatchMouseEventTypeMousePressed, x1}, {input.DispatchMouseEventTypeMouseMoved, (x1 + x2) / 2},
		{input.DispatchMouseEventTypeMouseMoved, x2}, {input.DispatchMouseEventTypeMouseReleased, x2},
	} {
		e.Type, e.X = step.kind, step.x
		p.do(mouse(e))
	}
}

// TestPageZooms: by wheel, keys, buttons, dragging and pinching; what is drawn follows.
func TestPageZooms(t *testing.T) {
	p := open(t, sample())
	from, to := p.shown()
	if from != -10 || to != 1010 {
		t.Errorf("at first %v to %v is shown", from, to)
	}
	all := p.bars()
	x, y := p.place("rewrite")
	p.wheel(x, y, -600, 0)
	p.until(`document.querySelector("#bars").dataset.to < 900e3`)
	if f, to := p.shown(); f < 100 || p.bars() >= all {
		t.Errorf("after the wheel %v to %v is shown, and %d bars of %d", f, to, p.bars(), all)
	}
	if x2, _ := p.place("rewrite"); x2 < x-200 || x2 > x+200 {
		t.Errorf("what was under the pointer, at %v, is at %v", x, x2)
	}
	p.do(chromedp.Click(chromedp.CSS("#fit")), chromedp.Focus(chromedp.CSS("#bars")))
	for _, step := range []struct {
		key        string
		from, to   float64
		difference string
	}{
		{"+", 194, 806, "narrower"}, {"d", 316.4, 928.4, "later"}, {"a", 194, 806, "earlier"}, {"-", -10, 1010, "wider"}, {"+", 194, 806, ""}, {"0", -10, 1010, "all"},
	} {
		p.do(chromedp.KeyEvent(step.key))
		if f, to := p.shown(); f != step.from || to != step.to {
			t.Errorf("after %q, %v to %v is shown", step.key, f, to)
		}
	}
	p.do(chromedp.Click(chromedp.CSS("#in")))
	if f, to := p.shown(); f != 245 || to != 755 {
		t.Errorf("after the button, %v to %v is shown", f, to)
	}
	_, y = p.place("rewrite")
	p.drag(700, y, 600, 0)
	if f, to := p.shown(); f < 260 || to-f < 509 || to-f > 511 {
		t.Errorf("after dragging, %v to %v is shown", f, to)
	}
	before, _ := p.shown()
	p.drag(600, y, 700, shift)
	if f, to := p.shown(); f <= before || to-f > 100 {
		t.Errorf("after dragging with shift, %v to %v is shown", f, to)
	}
	p.do(chromedp.Click(chromedp.CSS("#fit")))
	p.wheel(x, y, 100, shift) // nowhere to go
	if f, _ := p.shown(); f != -10 {
		t.Errorf("moved to before the beginning: %v", f)
	}
	p.pinch(600, y)
	if f, to := p.shown(); to-f > 600 {
		t.Errorf("after pinching, %v to %v is shown", f, to)
	}
}

// pinch moves two fingers away from x.
func (p *tab) pinch(x, y float64) {
	p.Helper()
	for i, kind := range []input.DispatchTouchEventType{
		input.DispatchTouchEventTypeTouchStart, input.DispatchTouchEventTypeTouchMove, input.DispatchTouchEventTypeTouchMove,
	} {
		first, second, by := 1.0, 2.0, 40*float64(i+1)
		points := []*input.TouchPoint{{X: x - by, Y: y, ID: &first}, {X: x + by, Y: y, ID: &second}}
		p.do(command(input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: kind, TouchPoints: points}))
	}
	p.do(command(input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: input.DispatchTouchEventTypeTouchEnd, TouchPoints: []*input.TouchPoint{}}))
}

// TestPageTells: the pointer and the keys bring up what is known; a selected operation shows what it waited for, and what waited for it.
func TestPageTells(t *testing.T) {
	p := open(t, sample())
	x, y := p.place("to host")
	p.hover(x, y)
	p.until(`!document.querySelector("#tip").hidden`)
	tip := value[string](p, `document.querySelector("#tip").innerText`)
	for _, want := range []string{"to host", "copy", "200 µs", "20 GB/s", "main.go:14", "queued 129 µs before"} {
		if !strings.Contains(tip, want) {
			t.Errorf("the tip lacks %q: %q", want, tip)
		}
	}
	p.hover(600, 5)
	p.until(`document.querySelector("#tip").hidden`)

	p.do(chromedp.MouseClickXY(x, y))
	p.until(`document.querySelector("#details .title")?.textContent === "to host"`)
	details := value[string](p, `document.querySelector("#details").innerText`)
	for _, want := range []string{"CopyToHost", "main.go:14", "4 MB", "20 GB/s", "the device's", "Device 0, stream 2", "151 µs", "memmove"} {
		if !strings.Contains(details, want) {
			t.Errorf("the details lack %q: %q", want, details)
		}
	}
	if n := value[int](p, `document.querySelectorAll("#bars .arrow.behind").length`); n != 1 {
		t.Errorf("%d arrows to what waited", n)
	}
	if n := value[int](p, `document.querySelectorAll("#bars .bar.selected").length`); n != 2 {
		t.Errorf("%d bars are selected, not the operation and its call", n)
	}
	p.do(chromedp.Click(chromedp.CSS("#details .links .behind")))
	p.until(`document.querySelector("#details .title").textContent === "memmove"`)
	if n := value[int](p, `document.querySelectorAll("#bars .arrow.before").length`); n != 1 {
		t.Errorf("%d arrows from what was waited for", n)
	}
	p.do(chromedp.Focus(chromedp.CSS("#bars")), chromedp.KeyEvent(kb.ArrowLeft))
	p.until(`document.querySelector("#said").textContent.startsWith("rewrite, task, Device 1, stream 3, from 310 µs, 290 µs")`)
	p.do(chromedp.KeyEvent(kb.ArrowUp))
	p.until(`document.querySelector("#details .title").textContent === "memset"`)
	p.do(chromedp.KeyEvent(kb.ArrowUp))
	p.until(`document.querySelector("#details .title").textContent === "endless"`)
	if details := value[string](p, `document.querySelector("#details").innerText`); !strings.Contains(details, "device lost") || !strings.Contains(details, "not ended") {
		t.Errorf("how it failed is not told: %q", details)
	}
	p.do(chromedp.KeyEvent(kb.Enter))
	if f, to := p.shown(); f != 260 || to != 1010 {
		t.Errorf("enter shows %v to %v", f, to)
	}
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until(`document.querySelector("#details").hidden`)
}

// TestPageSearches: what matches stays bright, and is gone to; kinds can be hidden.
func TestPageSearches(t *testing.T) {
	p := open(t, sample())
	slash := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "/", Text: "/"} // KeyEvent also types what was handled
	p.do(command(input.DispatchKeyEvent, slash), chromedp.KeyEvent("<ALL>"))
	p.until(`document.querySelector("#hits").textContent === "1 of 14"`)
	if dim, all := value[int](p, `document.querySelectorAll("#bars .bar.dim").length`), p.bars(); dim == 0 || dim != all-2 {
		t.Errorf("%d of %d bars are dimmed", dim, all)
	}
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until(`document.querySelector("#details .title").textContent === 'check <all> & "more"'`)
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until(`document.querySelector("#hits").textContent === "" && !document.querySelector("#bars .dim")`)
	for words, want := range map[string]string{"hostlaunch": "3 of 14", "main.go:1": "10 of 14", "device lost": "1 of 14", "memset": "1 of 14", "zzz": "0 of 14"} {
		p.do(chromedp.Focus(chromedp.CSS("#search")), chromedp.KeyEvent(kb.Escape), chromedp.SendKeys(chromedp.CSS("#search"), words))
		if got := value[string](p, `document.querySelector("#hits").textContent`); got != want {
			t.Errorf("%q: %s, want %s", words, got, want)
		}
	}
	p.do(chromedp.Click(chromedp.CSS(`.find[data-find=batch]`)))
	p.until(`document.querySelector("#hits").textContent === "1 of 14"`)
	p.do(chromedp.Click(chromedp.CSS(".legend .k-task")))
	p.until(`document.querySelector(".legend .k-task").getAttribute("aria-pressed") === "false" && !document.querySelector("#bars .k-task")`)
	p.do(chromedp.Click(chromedp.CSS(".legend .k-task")))
	p.until(`!!document.querySelector("#bars .k-task")`)
}

// TestPageLeads: the page's address says what is shown.
func TestPageLeads(t *testing.T) {
	p := open(t, sample())
	value[string](p, `location.hash = "#show=100,400&select=5"`)
	p.until(`document.querySelector("#details .title")?.textContent === "to host"`)
	if from, to := p.shown(); from != 100 || to != 400 {
		t.Errorf("%v to %v is shown", from, to)
	}
	value[string](p, `location.hash = "#select=rewrite&width=400"`)
	p.until(`document.querySelector("#details .title")?.textContent === "rewrite"`)
	if from, to := p.shown(); from != 255 || to != 655 {
		t.Errorf("%v to %v is shown", from, to)
	}
}

// TestPageIsDark: as the system is, or as the button says.
func TestPageIsDark(t *testing.T) {
	p := open(t, sample())
	const background = `getComputedStyle(document.body).backgroundColor`
	light := value[string](p, background)
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}
	p.do(command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}))
	dark := value[string](p, background)
	p.do(chromedp.Click(chromedp.CSS("#theme")))
	if again := value[string](p, background); dark == light || again != light {
		t.Errorf("light %s, dark %s, light again %s", light, dark, again)
	}
}

// TestPageOfMany: a page with 50,000 operations draws no more than can be seen, and each of them when looked at closely.
func TestPageOfMany(t *testing.T) {
	p := open(t, large(50_000))
	if n := p.bars(); n < 100 || n > 5000 {
		t.Errorf("%d bars are drawn", n)
	}
	p.do(chromedp.Focus(chromedp.CSS("#bars")))
	for range 18 {
		p.do(chromedp.KeyEvent("+"))
	}
	if n := value[int](p, `document.querySelectorAll("#bars .bar:not(.many) text").length`); n < 5 || n > 200 {
		t.Errorf("%d bars with names are drawn", n)
	}
	p.do(chromedp.SendKeys(chromedp.CSS("#search"), "main.go:77"))
	p.until(`document.querySelector("#hits").textContent === "500 of 50000"`)
	took := value[float64](p, `(async () => { const began = performance.now(); document.querySelector("#fit").click(); await new Promise(requestAnimationFrame); return performance.now() - began; })()`)
	if took > 1000 { // about 20 on a slow machine
		t.Errorf("a click takes %v ms", took)
	}
}

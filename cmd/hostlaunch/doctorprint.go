package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// page collects what is printed; its first error is kept.
type page struct {
	w   io.Writer
	err error
}

func (p *page) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// table prints rows with their columns aligned.
func (p *page) table(rows [][]string) {
	t := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintf(t, "  %s\n", strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	if err := t.Flush(); p.err == nil {
		p.err = err
	}
}

// print writes the report for people.
func (r *report) print(w io.Writer) error {
	p := &page{w: w}
	p.printf("hostlaunch doctor: %v\n", r.Build)
	r.Driver.print(p)
	if len(r.Devices) > 0 {
		p.printf("\nDevices\n")
		p.table(deviceRows(r.Devices))
	}
	p.printf("\nSoftware device\n")
	p.table(deviceRows([]deviceReport{r.Software}))
	r.printFeatures(p)
	p.printf("\nSettings\n")
	var rows [][]string
	for _, s := range r.Settings {
		rows = append(rows, []string{s.Name, orDash(s.Value), s.Note})
	}
	p.table(rows)
	p.printf("\nAdvice\n")
	for _, a := range r.Advice {
		p.printf("  - %s\n", a)
	}
	p.printf("\n%s\n", verdicts[r.Status])
	return p.err
}

var verdicts = map[int]string{
	statusWell:   "All well: host functions run on every device.",
	statusNoGPU:  "No usable GPU here (exit status 2). The software device works.",
	statusBroken: "Something that is there does not work (exit status 3); see the advice.",
}

func (d *driverReport) print(p *page) {
	p.printf("\nNVIDIA driver\n")
	if !d.Usable {
		if len(d.Tried) == 0 { // else that says it all, line by line
			p.printf("  not usable: %s\n", d.Error)
		} else {
			p.printf("  not usable: %s\n", d.Code)
		}
		for _, a := range d.Tried {
			p.printf("    %s: %s\n", a.Path, a.Reason)
		}
	} else {
		p.printf("  for CUDA %s, in %s\n", d.CUDA, d.Path)
		if d.File != "" && d.File != d.Path {
			p.printf("  which is the file %s\n", d.File)
		}
	}
	if d.KernelModule != "" {
		p.printf("  kernel module %s\n", d.KernelModule)
	}
}

func deviceRows(list []deviceReport) (rows [][]string) {
	for _, d := range list {
		row := []string{fmt.Sprint(d.Ordinal), orDash(d.Name)}
		if d.Error != "" {
			rows = append(rows, append(row, "FAILED: "+d.Error))
			continue
		}
		rows = append(rows, append(row, fmt.Sprintf("%.1f GiB", gib(d.MemoryBytes)), "compute capability "+d.ComputeCapability,
			fmt.Sprintf("%d host functions ran; launch to Sync: median %v, 99th percentile %v", d.Functions, rounded(d.Latency.Median), rounded(d.Latency.P99))))
	}
	return rows
}

// rounded is a time to three digits.
func rounded(ns int64) time.Duration {
	d := time.Duration(ns)
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

// printFeatures leaves the NVIDIA driver's column out where there is no driver.
func (r *report) printFeatures(p *page) {
	if len(r.Features) == 0 {
		return
	}
	p.printf("\nFeatures that not every driver has\n")
	row := func(name, since, nvidia, software string) []string {
		if !r.Driver.Usable {
			return []string{name, since, software}
		}
		return []string{name, since, nvidia, software}
	}
	rows := [][]string{row("", "since", "NVIDIA driver", "software device")}
	for _, f := range r.Features {
		rows = append(rows, row(f.Name, "CUDA "+f.Since, f.state(f.Available), f.state(f.Software)))
	}
	p.table(rows)
}

// state says whether there is f, and what happens otherwise.
func (f *feature) state(available bool) string {
	if available {
		return "yes"
	}
	return "no: " + f.Without
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

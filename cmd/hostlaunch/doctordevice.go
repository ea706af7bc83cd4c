package main

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/libcuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// deviceReport is a device, and how host functions ran on it.
type deviceReport struct {
	Ordinal           int      `json:"ordinal"`
	Name              string   `json:"name"`
	MemoryBytes       uint64   `json:"memory_bytes"`
	ComputeCapability string   `json:"compute_capability"`
	Functions         int      `json:"host_functions"` // that ran
	Latency           *latency `json:"latency,omitempty"`
	Error             string   `json:"error,omitempty"`
}

// latency is the time from HostLaunch on an idle stream until Sync has returned, in nanoseconds.
type latency struct {
	Median int64 `json:"median_ns"`
	P99    int64 `json:"p99_ns"`
}

const (
	trials     = 200
	warmUp     = 20
	trialLimit = 20 * time.Second
)

// quiet has the library's own log thrown away: doctor says itself what went wrong.
func quiet() cuda.Option { return cuda.Logger(slog.New(slog.NewTextHandler(io.Discard, nil))) }

// tryDevices runs host functions on each device of the NVIDIA driver.
func tryDevices() []deviceReport {
	drv, err := libcuda.Open(quiet())
	if err != nil {
		return []deviceReport{{Error: err.Error()}}
	}
	list := make([]deviceReport, drv.DeviceCount())
	for i := range list {
		list[i] = tryDevice(drv, i)
	}
	return closed(drv, list)
}

// trySoftware runs host functions on a software device, and says which version of CUDA that is.
func trySoftware() (deviceReport, cuda.Version) {
	drv := softcuda.New(softcuda.Options{}, quiet())
	version := drv.Version()
	return closed(drv, []deviceReport{tryDevice(drv, 0)})[0], version
}

// closed closes drv, unless a device does not work: then that could wait forever.
func closed(drv *cuda.Driver, list []deviceReport) []deviceReport {
	if !slices.ContainsFunc(list, func(d deviceReport) bool { return d.Error != "" }) {
		drv.Close()
	}
	return list
}

// tryDevice gives up on a device that takes too long.
func tryDevice(drv *cuda.Driver, ordinal int) deviceReport {
	whole := make(chan deviceReport, 1)
	go func() {
		d := deviceReport{Ordinal: ordinal}
		if err := d.try(drv); err != nil {
			d.Error = err.Error()
		}
		whole <- d
	}()
	select {
	case d := <-whole:
		return d
	case <-time.After(trialLimit):
		return deviceReport{Ordinal: ordinal, Error: fmt.Sprintf("device %d did not run %d host functions within %v", ordinal, trials, trialLimit)}
	}
}

func (d *deviceReport) try(drv *cuda.Driver) error {
	dev, err := drv.Device(d.Ordinal)
	if err != nil {
		return err
	}
	d.Name = dev.Name()
	if d.MemoryBytes, err = dev.TotalMemory(); err != nil {
		return err
	}
	major, minor, err := dev.ComputeCapability()
	if err != nil {
		return err
	}
	d.ComputeCapability = fmt.Sprintf("%d.%d", major, minor)
	s, err := dev.NewStream()
	if err != nil {
		return err
	}
	defer s.Close()
	return d.measure(s)
}

// measure runs host functions one by one.
func (d *deviceReport) measure(s *cuda.Stream) error {
	var ran atomic.Int64
	times := make([]int64, trials)
	for i := range warmUp + trials {
		start := time.Now()
		if err := cuda.HostLaunch(s, func() { ran.Add(1) }); err != nil {
			return err
		}
		if err := s.Sync(); err != nil {
			return err
		}
		times[i%trials] = time.Since(start).Nanoseconds() // those of the first, to warm up, are overwritten
		if n := ran.Load(); n != int64(i)+1 {
			return fmt.Errorf("after Sync %d of %d host functions have run", n, i+1)
		}
	}
	slices.Sort(times)
	d.Functions, d.Latency = trials, &latency{Median: times[trials/2], P99: times[trials*99/100]}
	return nil
}

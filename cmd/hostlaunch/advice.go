package main

import (
	"fmt"
	"slices"
)

// advise says in plain words what to do, the most urgent first.
func (r *report) advise() []string {
	list := slices.Concat(r.adviceOnDriver(), r.adviceOnDevices())
	for _, s := range r.Settings {
		if s.Problem {
			list = append(list, fmt.Sprintf("%s is %q. %s", s.Name, s.Value, s.Note))
		}
	}
	if r.Build.Calls == "purego" {
		list = append(list, "This program was built without cgo. That works as well; with a C compiler (CGO_ENABLED=1) calls of the driver are somewhat cheaper.")
	}
	if len(list) == 0 {
		list = append(list, "Nothing to do.")
	}
	return list
}

// adviceOnDriver goes by HOSTLAUNCH_DRIVER, and leaves the way out to the library, which knows what it has tried.
func (r *report) adviceOnDriver() (list []string) {
	choice := r.setting(driverChoice).Value
	if choice == "software" {
		list = append(list, "Programs that open package anycuda run on the software device, since HOSTLAUNCH_DRIVER is software. Unset it where they are to use a GPU.")
	}
	if r.Driver.Usable {
		if r.Driver.version < 12030 {
			list = append(list, fmt.Sprintf("The driver is for CUDA %v. A newer one brings what the list of features lacks; most of it came with CUDA 12.3 and 12.4.", r.Driver.version))
		}
		return list
	}
	install := "The driver is there and does not start. The system's log (dmesg) and nvidia-smi may say why."
	if r.Driver.advice != "" {
		install = r.Driver.advice + "."
	}
	if choice == "software" {
		install = "For a GPU: " + install
	}
	return append(append(list, install), untilThen[choice]...)
}

// untilThen is what a program without a GPU can do, by HOSTLAUNCH_DRIVER.
var untilThen = map[string][]string{
	"":       {"Until then use the software device: programs that open package anycuda get it by themselves, and all examples and tests run on it."},
	"nvidia": {"Until then unset HOSTLAUNCH_DRIVER, or set it to software: as it is, programs that open package anycuda fail, and do not use the software device."},
}

func (r *report) adviceOnDevices() (list []string) {
	for _, d := range r.Devices {
		if d.Error != "" {
			list = append(list, fmt.Sprintf("Device %d does not run host functions. Check it with nvidia-smi and dmesg; a new process may do, since a device that has failed stays lost to its process.", d.Ordinal))
		}
	}
	if r.Driver.Usable && len(r.Devices) == 0 {
		list = append(list, "The driver is there and sees no GPU. Check that nvidia-smi -L lists one, that CUDA_VISIBLE_DEVICES does not hide it, and that a container was started with --gpus all.")
	}
	if r.Software.Error != "" {
		list = append(list, "The software device does not work. That is a fault of this library: please report it with the output of hostlaunch doctor --json.")
	}
	return list
}

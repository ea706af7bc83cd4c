package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/hostlaunch/cuda"
)

// Exit statuses of doctor, beside 1 for misuse.
const (
	statusWell   = 0
	statusNoGPU  = 2
	statusBroken = 3
)

func newDoctor() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Tells what of CUDA works here, and what to do about the rest",
		Long: `doctor looks for the NVIDIA driver as the library does, lists the devices and what the driver supports, runs real host
functions on every device and on the software device, and gives advice on what it finds.

Exit status:
  0  the NVIDIA driver is usable, and host functions run on every device
  1  doctor was called wrongly
  2  there is no usable NVIDIA driver or GPU; the software device works
  3  something that is there does not work

(go run itself exits with 1 whenever the command's status is not 0.)`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r := examine()
			if asJSON {
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				if err := e.Encode(r); err != nil {
					return err
				}
			} else if err := r.print(cmd.OutOrStdout()); err != nil {
				return err
			}
			if r.Status != statusWell {
				return exitStatus(r.Status)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	return cmd
}

// report is all that doctor finds. Its JSON form is for programs: names are not changed, only added to.
type report struct {
	Status   int            `json:"status"` // the exit status
	Build    buildReport    `json:"build"`
	Driver   driverReport   `json:"driver"`
	Features []feature      `json:"features"`
	Devices  []deviceReport `json:"devices"`
	Software deviceReport   `json:"software"`
	Settings []setting      `json:"settings"`
	Advice   []string       `json:"advice"`
}

// examine finds everything out. The settings come first: opening the driver changes one of them.
func examine() *report {
	r := &report{Build: thisBuild(), Settings: settings(), Devices: []deviceReport{}}
	r.Driver = findDriver()
	if r.Driver.Usable {
		r.Devices = tryDevices()
	}
	var software cuda.Version
	r.Software, software = trySoftware()
	r.Features = features(r.Driver.optional, software)
	r.Status = r.judge()
	r.Advice = r.advise()
	return r
}

// judge is the exit status.
func (r *report) judge() int {
	broken := r.Software.Error != "" || r.setting(driverChoice).Problem
	for _, d := range r.Devices {
		broken = broken || d.Error != ""
	}
	switch {
	case broken:
		return statusBroken
	case len(r.Devices) == 0:
		return statusNoGPU
	}
	return statusWell
}

// setting is the setting of a name.
func (r *report) setting(name string) setting {
	for _, s := range r.Settings {
		if s.Name == name {
			return s
		}
	}
	return setting{}
}

package main

import "os"

func Example() {
	os.Setenv("HOSTLAUNCH_DRIVER", "software")
	main()
	// Output:
	// on Software Device 0, which needs no GPU (software driver, CUDA 13.0)
	// host function: 1 kernel has run before me
	// order: kernel 1, host function 2, kernel 3
}

package main

import "os"

func Example() {
	os.Setenv("HOSTLAUNCH_DRIVER", "software")
	main()
	// Output:
	// between the library's kernels the number is 1
	// the library goes on: 3
}

package main

import "os"

func Example() {
	os.Setenv("HOSTLAUNCH_DRIVER", "software")
	main()
	// Output:
	// task: the number is 1, and should be 5
	// host function: the number is 6
}

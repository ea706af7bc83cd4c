package main

import "os"

func Example() {
	os.Setenv("HOSTLAUNCH_DRIVER", "software")
	main()
	// Output:
	// launch 1: the number is 1
	// launch 2: the number is 3
	// launch 3: the number is 5
	// in the end it is 6
}

package main

import "os"

func Example() {
	os.Setenv("HOSTLAUNCH_DRIVER", "software")
	main()
	// Output:
	// device 0 is done
	// device 1 is done: the number is 2
}

package main

import "os"

func Example() {
	os.Setenv("HOSTLAUNCH_DRIVER", "software")
	main()
	// Output:
	// batch 0: 1048576 numbers, sum 1048576
	// batch 1: 1048576 numbers, sum 2097152
	// batch 2: 1048576 numbers, sum 3145728
	// 12582912 of 12582912 bytes copied
}

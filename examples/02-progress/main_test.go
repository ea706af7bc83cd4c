package main

import "os"

func Example() {
	os.Setenv("HOSTLAUNCH_DRIVER", "software")
	main()
	// Output:
	// batch 0 has ended
	// batch 1 has ended
	// batch 2 has ended
	// batch 3 has ended
	// batch 4 has ended
	// 5 batches
}

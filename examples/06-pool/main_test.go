package main

import "os"

func Example() {
	os.Setenv("HOSTLAUNCH_DRIVER", "software")
	main()
	// Output:
	// batch 0: all are 1
	// batch 1: all are 2
	// batch 2: all are 3
	// batch 3: all are 4
	// batch 4: all are 5
	// batch 5: all are 6
	// 6 batches went through 2 blocks
}

package main

import "os"

func Example() {
	os.Setenv("HOSTLAUNCH_DRIVER", "software")
	main()
	// Output:
	// 48 host functions of 16 streams have run: [3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3]
}

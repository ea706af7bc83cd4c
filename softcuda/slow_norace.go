//go:build !race

package softcuda

// slowness is how much more time the program gets to be the next to do something.
const slowness = 1

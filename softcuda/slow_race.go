//go:build race

package softcuda

// slowness is how much more time the program gets to be the next to do something: the race detector slows it down.
const slowness = 5

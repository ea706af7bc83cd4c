//go:build race

package cudatest

// raceDetector: its own memory grows with what a program has ever done.
const raceDetector = true

//go:build race

package softcuda_test

const raceDetector = true

//go:build !race

package inbox_test

const underRace = false

//go:build race

package schema

// slowness is how much longer the race detector makes things take.
const slowness = 15

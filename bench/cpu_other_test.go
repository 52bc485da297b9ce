//go:build !unix

package bench

import "time"

// cpuTime is not known here; what is made of it is left out of the report.
func cpuTime() time.Duration { return 0 }

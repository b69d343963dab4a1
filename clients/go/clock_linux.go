package rlock

import (
	"time"

	"golang.org/x/sys/unix"
)

var began, bootTime = time.Now(), sinceBoot()

func sinceBoot() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// clock is the time by a clock that goes on while the machine is suspended, as leases do. Go's own
// stands still.
func clock() time.Time { return began.Add(sinceBoot() - bootTime) }

//go:build !linux

package rlock

import "time"

func clock() time.Time { return time.Now() }

package rlock

// A backoff says whether a sticky lock stays: see "Sticky" in clients/README.md, 10.
//
// Where processes alternate, one that stays is called back each time, which costs more than a plain lock.
type backoff struct {
	left int // so many acquisitions do not stay
	last int
}

const (
	enoughUses   = 3 // for which it was worth to stay
	leastBackoff = 4
	mostBackoff  = 64
)

// wentBack is called after so many uses; wanted: by somebody else.
func (b *backoff) wentBack(uses int, wanted bool) {
	switch {
	case b.left > 0:
		b.left--
	case wanted && uses < enoughUses:
		b.last = min(max(2*b.last, leastBackoff), mostBackoff)
		b.left = b.last
	default:
		b.last = 0
	}
}

"""Whether a sticky lock stays. See "Sticky" in clients/README.md, 10.

Where processes alternate, one that stays is called back each time, which costs more than a plain lock.
"""

ENOUGH = 3  # uses for which it was worth to stay
LEAST, MOST = 4, 64


class Backoff:
    left = 0  # so many acquisitions do not stay
    _last = 0

    def went_back(self, uses: int, wanted: bool) -> None:
        """After so many uses; `wanted` by somebody else."""
        if self.left:
            self.left -= 1
        elif wanted and uses < ENOUGH:
            self._last = self.left = min(max(2 * self._last, LEAST), MOST)
        else:
            self._last = 0

"""Limits on how often and how much at once: requests of a caller, and bytes of bodies that are held.

Takes: the time, a caller, sizes. Gives: whether there is room, and how long to wait otherwise. Never: reads a clock, or grows
with the number of callers.
"""

from __future__ import annotations

from collections import OrderedDict

CALLERS_MAX = 10_000


class RequestRates:
    """A bucket for each caller: it holds the requests of two seconds, and fills up at the rate."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, caller: str, rate: float, now: float) -> float:
        """Seconds until the caller may ask; 0 if it may now, which is then counted."""
        most = max(1.0, 2 * rate)
        left, at = self._buckets.get(caller, (most, now))
        left = min(most, left + (now - at) * rate)
        waiting = 0.0 if left >= 1 else (1 - left) / rate
        self._buckets[caller] = left if waiting else left - 1, now
        self._buckets.move_to_end(caller)
        if len(self._buckets) > CALLERS_MAX:
            self._buckets.popitem(last=False)
        return waiting


class BodyRoom:
    """Bytes of bodies that are being received or handled."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max, self._held = bytes_max, 0

    def take(self, size: int) -> bool:
        if self._held and self._held + size > self._bytes_max:
            return False
        self._held += size
        return True

    def give_back(self, size: int) -> None:
        self._held -= size

"""Limits on how often and how much at once: requests of a caller; bytes of bodies that are held, and open streams.

Takes: the time, a caller, sizes. Gives: whether there is room, and how long to wait otherwise. Never: reads a clock, or grows
with the number of callers.
"""

from __future__ import annotations

from collections import Counter, OrderedDict

CALLERS_MAX = 10_000
SHARES = 4


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


class SharedRoom:
    """What all callers have together: bytes of bodies that are being received or handled, or open streams. A user of a policy
    has a quarter at most, so that none keeps the others out. The first that asks has room, however much it wants."""

    def __init__(self, most: int) -> None:
        self._most, self._held = most, Counter[str]()

    def take(self, size: int, user: str | None) -> bool:
        """`user`: None manages, and may have all."""
        mine, every = self._held[user or ""], self._held.total()
        if (every and every + size > self._most) or (user and mine and mine + size > self._most // SHARES):
            return False
        self._held[user or ""] += size
        return True

    def give_back(self, size: int, user: str | None) -> None:
        self._held[user or ""] -= size
        if not self._held[user or ""]:
            del self._held[user or ""]

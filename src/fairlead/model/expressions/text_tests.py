"""Tests of a text that a constant describes: regular expressions (`RLIKE`) and networks (`cidr_match`).

The patterns are those of RE2, which Arrow contains: a test takes time linear in the text, whatever the pattern, so there are no
back references and no look-around.

Takes: a pattern, the text of a network. Gives: the test of a text, or of a column of texts. Never: backtracks.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

PATTERN_MAX = 10_000
"""Characters of a pattern. RE2 bounds what they expand to."""


TOO_LARGE = "pattern too large"
"""What RE2 says of a pattern whose repetitions expand to too much."""


class PatternTooLong(ValueError):
    """A pattern of more characters than PATTERN_MAX, or one that expands to more than RE2 allows."""


class RegularExpression:
    def __init__(self, pattern: str) -> None:
        """Raises PatternTooLong, or ValueError in RE2's words."""
        import pyarrow.compute as pc  # loading it takes a twentieth of a second

        self.pattern, self._find = pattern, pc.match_substring_regex
        if len(pattern) > PATTERN_MAX:
            raise PatternTooLong(f"it has {len(pattern):,} characters, more than {PATTERN_MAX:,}")
        try:
            self._find(pa.array([""]), pattern)
        except pa.ArrowInvalid as error:
            said = str(error).removeprefix("Invalid regular expression: ")
            if TOO_LARGE in said:
                raise PatternTooLong("it expands to more than RE2 allows") from None
            raise ValueError(said) from None

    def matches(self, text: str) -> bool:
        return bool(self._find(pa.scalar(text), self.pattern).as_py())

    def of_column(self, column: pa.Array) -> npt.NDArray[np.bool_]:
        """NULL does not match."""
        found: Any = self._find(column, self.pattern).fill_null(False)
        matched: npt.NDArray[np.bool_] = found.to_numpy(zero_copy_only=False)
        return matched


@lru_cache(maxsize=1024)
def regular_expression(pattern: str) -> RegularExpression:
    return RegularExpression(pattern)


@lru_cache(maxsize=4096)
def network(text: str) -> IPv4Network | IPv6Network | None:
    """Of `10.0.0.0/8`, also with bits after the prefix; None if it is none."""
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


def is_in_networks(address: str, *networks: str) -> bool | None:
    """None if the text is no address, or one of the others no network."""
    try:
        found = ip_address(address)
    except ValueError:
        return None
    known = [network(each) for each in networks]
    return None if None in known else any(found in each for each in known if each is not None)

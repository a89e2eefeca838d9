"""The options of a subscription: which relations are selected (MATCHING), and which events leave after a match (DISPOSAL).

Gives: two enumerations, each value with its code and its words. Never: matches or disposes.
"""

from __future__ import annotations

from enum import Enum


class Matching(Enum):
    """Which of the possible relations are selected, as (the papers' code, the language's words)."""

    FIRST = ("FR", "FIRST")
    FIRST_CONTIGUOUS = ("FRC", "FIRST CONTIGUOUS")
    RECENT = ("MR", "RECENT")
    RECENT_CONTIGUOUS = ("MRC", "RECENT CONTIGUOUS")
    FIRST_STEPWISE = ("FS", "FIRST STEPWISE")
    ALL = ("AL", "ALL")
    ALL_CONTIGUOUS = ("ALC", "ALL CONTIGUOUS")
    ALL_RECENT = ("AR", "ALL RECENT")
    ALL_RECENT_CONTIGUOUS = ("ARC", "ALL RECENT CONTIGUOUS")

    @property
    def code(self) -> str:
        return self.value[0]

    @property
    def words(self) -> str:
        return self.value[1]

    @property
    def recent(self) -> bool:
        """The queues are scanned backwards, so instance i+1 is older than instance i."""
        return "RECENT" in self.words

    @property
    def contiguous(self) -> bool:
        """The instances of one type are adjacent in that type's queue."""
        return "CONTIGUOUS" in self.words

    @property
    def stepwise(self) -> bool:
        """A row that fits is taken, and never given back."""
        return "STEPWISE" in self.words

    @property
    def all(self) -> bool:
        """Every relation with the arriving event is selected, not only the first."""
        return self.words.startswith("ALL")


class Disposal(Enum):
    """Which events leave each queue after a match."""

    PREFIX_INFIX = ("PI", "PREFIX INFIX")
    INFIX = ("I", "INFIX")
    INFIX_POSTFIX = ("IP", "INFIX POSTFIX")
    FIRST_PREFIX = ("FP", "FIRST PREFIX")
    ADVANCE = ("AD", "ADVANCE")
    UPTO_FIRST = ("UF", "UPTO FIRST")
    UPTO_LAST = ("UL", "UPTO LAST")
    NONE = ("NO", "NONE")

    @property
    def code(self) -> str:
        return self.value[0]

    @property
    def words(self) -> str:
        return self.value[1]

    @property
    def upto(self) -> bool:
        return self in (Disposal.UPTO_FIRST, Disposal.UPTO_LAST)


PAPER_MATCHINGS = (Matching.FIRST, Matching.FIRST_CONTIGUOUS, Matching.RECENT, Matching.RECENT_CONTIGUOUS)
PAPER_DISPOSALS = (Disposal.PREFIX_INFIX, Disposal.INFIX, Disposal.INFIX_POSTFIX, Disposal.FIRST_PREFIX)
"""The options of the papers: sixteen combinations."""

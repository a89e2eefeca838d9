"""MATCHING, DISPOSAL, KEEP and LIMIT of generated subscriptions: those of the papers in every second case."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from hypothesis import strategies as st

MATCHINGS = ("FIRST", "FIRST CONTIGUOUS", "RECENT", "RECENT CONTIGUOUS")
DISPOSALS = ("PREFIX INFIX", "INFIX", "INFIX POSTFIX", "FIRST PREFIX")
EVERY = ("ALL", "ALL CONTIGUOUS", "ALL RECENT", "ALL RECENT CONTIGUOUS")
LEAVING = ("NONE", "ADVANCE 2", "ADVANCE 3", "UPTO FIRST", "UPTO LAST")
KEEPING = tuple(f"{each} KEEP" for each in (*DISPOSALS, "ADVANCE 2", "UPTO LAST"))
"""With KEEP of some elements."""


def option_words(
    rng: Random, branches: Sequence[Sequence[str]], options: tuple[str, str] | None = None, few: bool = False
) -> list[str]:
    """The clauses. `branches`: the members of each branch; `few`: an event completes few relations."""
    named = [list(dict.fromkeys(member.split("[")[0] for member in members)) for members in branches]
    if options is not None:
        matching, disposal = options
    elif rng.random() < 0.5:
        matching, disposal = rng.choice(MATCHINGS), rng.choice(DISPOSALS)
    else:
        matching = rng.choice((*MATCHINGS, *EVERY))
        disposal = rng.choice((*DISPOSALS, *LEAVING, *KEEPING))
    keeps = disposal.endswith(" KEEP")
    disposal = disposal.removesuffix(" KEEP")
    if disposal.startswith("UPTO"):
        shared = [alias for alias in named[0] if all(alias in each for each in named)]
        disposal = f"{disposal} {rng.choice(shared)}" if shared else "NONE"
    lines = [f"MATCHING {matching}", f"DISPOSAL {disposal}"]
    if keeps:
        aliases = sorted({alias for each in named for alias in each})
        lines.append("KEEP " + ", ".join(rng.sample(aliases, rng.randint(1, len(aliases)))))
    if matching.startswith("ALL") and (few or rng.random() < 0.5):
        lines.append(f"LIMIT {rng.choice((1, 2) if few else (1, 2, 3, 7))} PER EVENT")
    return lines


@st.composite
def option_lines(
    draw: st.DrawFn, branches: Sequence[Sequence[str]], options: tuple[str, str] | None = None, few: bool = False
) -> list[str]:
    if options is None and draw(st.booleans()):  # as simple as they can be, where it does not matter
        return [f"MATCHING {draw(st.sampled_from(MATCHINGS))}", f"DISPOSAL {draw(st.sampled_from(DISPOSALS))}"]
    return option_words(Random(draw(st.integers(0, 1 << 16))), branches, options, few)

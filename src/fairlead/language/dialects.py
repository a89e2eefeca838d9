"""The dialects of rules. Each has a front end; everything after the syntax tree is the same for all.

A front end reads a text and returns `syntax.Rules`, whose spans are places in that text: later errors, in names, types or
clauses, are shown there. It raises `Fault` for text that it cannot read, and nothing else.

Gives: the front ends by name. Never: knows a type or a name.
"""

from __future__ import annotations

from collections.abc import Callable

from fairlead.language.parsing import syntax
from fairlead.language.parsing.parser import parse

FrontEnd = Callable[[str], syntax.Rules]
FAIRLEAD = "fairlead"
DIALECTS: dict[str, FrontEnd] = {FAIRLEAD: parse}

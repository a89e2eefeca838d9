"""Which slots of a search have to stand before which: what `THEN` and the order of instances say of the slots that are open.

Takes: a shape, and the type that arrives. Gives: slots in an order in which they can be looked at, tests, and where a loop
ends. Never: chooses how candidates are reached.
"""

from __future__ import annotations

from fairlead.matching.compiled.codegen.kernel_names import bound_to
from fairlead.matching.compiled.codegen.node_layout import NodeField
from fairlead.matching.compiled.planning.shape import Shape
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import Formula, NumberComparison


class SlotOrder:
    """`ref`: the field of a node that says where its event stands."""

    def __init__(self, shape: Shape, ref: NodeField) -> None:
        self.shape, self.ref = shape, ref

    def opened(self, newest: int | None) -> set[int]:
        return set(self.shape.singles) - (set() if newest is None else {self.shape.newest_slot(newest)})

    def ahead(self, slot: int, newest: int | None) -> list[int]:
        """The open slots that have to stand before this one (after it under RECENT)."""
        pairs = [(o.after, o.before) if not self.shape.recent else (o.before, o.after) for o in self.shape.orders]
        return sorted({other for mine, other in pairs if mine == slot and other in self.opened(newest)})

    def timely(self, newest: int | None) -> list[int]:
        """The slots whose lowest event matters, in an order in which each comes after those it depends on."""
        needed = {slot for slot in self.opened(newest) if self.ahead(slot, newest)}
        while True:
            more = {other for slot in needed for other in self.ahead(slot, newest)}
            more |= {slot - 1 for slot in needed if self.shape.follows(slot) and slot - 1 in self.opened(newest)}
            if more <= needed:
                break
            needed |= more
        done: list[int] = []
        while len(done) < len(needed):
            ready = [
                slot
                for slot in sorted(needed - set(done))
                if set(self.ahead(slot, newest)) <= set(done)
                and (not self.shape.follows(slot) or slot - 1 not in needed or slot - 1 in done)
            ]
            if not ready:  # THEN in a circle: no relation; the loops find that out
                return []
            done += ready
        return done

    def after_newest(self, slot: int, newest: int | None) -> bool:
        """The instance before it is the newest event, which is in no queue."""
        return self.shape.follows(slot) and newest is not None and slot - 1 == self.shape.newest_slot(newest)

    def tests(self, slot: int, newest: int | None) -> list[Formula]:
        """What THEN asks of this slot and those bound before it; the newest event stands after all others anyway."""
        opened = self.opened(newest)
        return [
            self.ref[bound_to(o.before)] < self.ref[bound_to(o.after)]
            for o in self.shape.orders
            if {o.before, o.after} <= opened and max(o.before, o.after) == slot
        ]

    def end_loop(self, code: Code, slot: int, newest: int | None) -> None:
        """Where THEN ends a loop: further events only stand further behind (or ahead) of one that is bound."""
        if self.shape.recent:
            others = [o.before for o in self.shape.orders if o.after == slot and o.before < slot]
        else:
            others = [o.after for o in self.shape.orders if o.before == slot and o.after < slot]
        sign = "<=" if self.shape.recent else ">="
        for other in sorted(set(others) & self.opened(newest)):
            with code.when(NumberComparison(self.ref[bound_to(slot)], sign, self.ref[bound_to(other)])):
                code.leave()

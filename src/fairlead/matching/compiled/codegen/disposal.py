"""What leaves the queues after a match, and what noted events can forbid nothing any more, as source.

Takes: a shape and its queues. Gives: lines. Never: searches.
"""

from __future__ import annotations

from fairlead.matching.compiled.codegen.queues import Queues
from fairlead.matching.compiled.machine_code.interruption import COUNT
from fairlead.matching.compiled.planning.shape import Shape
from fairlead.model.plan import Disposal


class Disposing:
    def __init__(self, shape: Shape, queues: Queues) -> None:
        self.shape, self.queues = shape, queues

    def with_newest(self, newest: int) -> list[str]:
        """What leaves after a match with the newest event, which is not queued yet."""
        if self.shape.overlapping:
            return self._by_place(self.shape.newest_slot(newest))
        lines = []
        bound, disposal = self.shape.newest_slot(newest), self.shape.disposal
        for queue in range(len(self.shape.needed)):
            slots = self.shape.slots_of(queue)
            oldest, last = (slots[-1], slots[0]) if self.shape.recent else (slots[0], slots[-1])
            at = f"k * {self.shape.stride} + {queue}"
            head, tail = f"qs[{at}, 0]", f"qs[{at}, 1]"
            whole = [f"if {head} != -1:", f"    {self.queues.leave(queue, head, tail)}"]
            if disposal is Disposal.INFIX:
                lines += [self.queues.leave(queue, f"members[{slot}]", f"members[{slot}]") for slot in slots if slot != bound]
            elif disposal is Disposal.INFIX_POSTFIX:
                lines += [self.queues.leave(queue, f"members[{oldest}]", tail)] if oldest != bound else []
            elif disposal is Disposal.PREFIX_INFIX:
                lines += whole if last == bound else [self.queues.leave(queue, head, f"members[{last}]")]
            else:
                lines += whole if oldest == bound else [self.queues.leave(queue, head, f"members[{oldest}]")]
        return lines

    def among_queued(self) -> list[str]:
        """What leaves after a match that was found among queued events."""
        if self.shape.overlapping:
            return self._by_place(None)
        lines = []
        disposal = self.shape.disposal
        for queue in range(len(self.shape.needed)):
            slots = self.shape.slots_of(queue)
            oldest, last = (slots[-1], slots[0]) if self.shape.recent else (slots[0], slots[-1])
            at = f"k * {self.shape.stride} + {queue}"
            if disposal is Disposal.INFIX:
                lines += [self.queues.leave(queue, f"members[{slot}]", f"members[{slot}]") for slot in slots]
            elif disposal is Disposal.INFIX_POSTFIX:
                lines.append(self.queues.leave(queue, f"members[{oldest}]", f"qs[{at}, 1]"))
            else:
                lines.append(
                    self.queues.leave(
                        queue, f"qs[{at}, 0]", f"members[{last if disposal is Disposal.PREFIX_INFIX else oldest}]"
                    )
                )
        return lines

    def _by_place(self, bound: int | None) -> list[str]:
        """The same for events that can sit in several queues: by place in the order, and members leave every queue."""
        shape, disposal = self.shape, self.shape.disposal
        lines = [f"m{slot} = {'w' if slot == bound else f'ni[members[{slot}], REF]'}" for slot in range(shape.size)]
        for queue in range(len(shape.needed)):
            slots = shape.slots_of(queue)
            oldest, last = (slots[-1], slots[0]) if shape.recent else (slots[0], slots[-1])
            at = f"k * {shape.stride} + {queue}"
            head, tail = f"qs[{at}, 0]", f"qs[{at}, 1]"
            if disposal in (Disposal.PREFIX_INFIX, Disposal.FIRST_PREFIX):
                up_to = last if disposal is Disposal.PREFIX_INFIX else oldest
                lines += [f"while {head} != -1 and ni[{head}, REF] <= m{up_to}:", f"    {self.queues.leave(queue, head, head)}"]
            elif disposal is Disposal.INFIX_POSTFIX:
                lines += [
                    f"while {tail} != -1 and ni[{tail}, REF] >= m{oldest}:",
                    f"    {self.queues.leave(queue, tail, tail)}",
                ]
            if disposal is not Disposal.FIRST_PREFIX:
                for slot in range(shape.size):
                    lines += [
                        f"c = {tail}",
                        f"while c != -1 and ni[c, REF] > m{slot}:",
                        f"    {COUNT}",
                        "    c = ni[c, PREV]",
                        f"if c != -1 and ni[c, REF] == m{slot}:",
                        f"    {self.queues.leave(queue, 'c', 'c')}",
                    ]
        return lines

    def forget(self) -> list[str]:
        """Noted events that no queued anchor precedes leave: no relation to come can be forbidden by them."""
        lines = []
        for clause in self.shape.clauses:
            at = f"k * {self.shape.stride} + {clause.queue}"
            anchor = f"qs[k * {self.shape.stride} + {self.shape.queue_of(clause.left)}, 0]"
            lines += [
                f"anchor = {anchor}",
                f"c = qs[{at}, 0]",
                "if c != -1 and (anchor == -1 or ni[c, REF] < ni[anchor, REF]):",
                f"    while qs[{at}, 0] != -1 and (anchor == -1 or ni[qs[{at}, 0], REF] <= ni[anchor, REF]):",
                f"        {self.queues.leave(clause.queue, f'qs[{at}, 0]', f'qs[{at}, 0]')}",
            ]
        return lines

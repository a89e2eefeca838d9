"""Control flow within one function, as LLVM's text: blocks, jumps, and values that depend on which block came before.

Takes: labels and values. Gives: lines. Never: a block to which nothing jumps.
"""

from __future__ import annotations

from fairlead.matching.compiled.machine_code.instructions import LLVM, Operations, Value


class ControlFlow(Operations):
    """The lines of one function, block by block."""

    def _begin(self) -> None:
        self.lines, self.numbers, self.labels = [], 0, 0
        self.block, self.open, self.reached = "entry", True, {"entry"}
        self.changed = False

    def _label(self, what: str) -> str:
        self.labels += 1
        return f"{what}{self.labels}"

    def _start(self, label: str) -> None:
        """What nothing jumps to is left out."""
        self.open = label in self.reached
        if self.open:
            self.lines.append(f"{label}:")
            self.block = label

    def _end(self, instruction: str) -> None:
        self.lines.append(instruction)
        self.open = False

    def _jump(self, label: str) -> None:
        if self.open:
            self.reached.add(label)
            self._end(f"br label %{label}")

    def _fork(self, test: Value, yes: str, no: str) -> None:
        if test.code in ("true", "false"):
            self._jump(yes if test.code == "true" else no)
            return
        self.reached |= {yes, no}
        self._end(f"br i1 {test.code}, label %{yes}, label %{no}")

    def _hole(self) -> int:
        """The end of a block that is written once the type of all ways is known."""
        self.lines.append("")
        return len(self.lines) - 1

    def _met(self, ways: list[tuple[Value, str, int]], type: str, ends: list[str], end: str) -> Value:
        parts = []
        lines = self.lines
        for (value, block, hole), last in zip(ways, ends, strict=True):
            self.lines = []
            parts.append(f"[ {self.converted(value, type).code}, %{block} ]")
            lines[hole] = "\n".join([*self.lines, last])
        self.lines = lines
        self.reached.add(end)
        self._start(end)
        return Value(self.put(f"phi {LLVM[type]} {', '.join(parts)}"), type)

"""States of the order that are kept for long are written and read as ever, byte for byte."""

from __future__ import annotations

import json

from fairlead.order.continuity import Continuity
from fairlead.order.merging import Merging


def test_block_numbers_of_version_1() -> None:
    reader = Continuity(from_beginning=False)
    for type, source, number, count in (("B", "q", 7, 3), ("A", "p", 0, 1), ("A", "", 0, 2), ("A", "p", 1, 4)):
        assert reader.check(type, source, number, count)
    state = '{"version": 1, "from_beginning": false, "blocks": {"A": {"": [0, 2], "p": [1, 4]}, "B": {"q": [7, 3]}}}'
    assert json.dumps(reader.dump()) == state
    assert json.dumps(Continuity.load(json.loads(state)).dump()) == state


def test_merged_inputs_of_version_1() -> None:
    merging: Merging[str] = Merging(["b", "a"])
    merging.push("b", 5, 3, "held")
    merging.push("a", 4, 8, "gone")
    state = '{"version": 1, "inputs": {"a": [8, 4], "b": null}}'
    assert json.dumps(merging.dump()) == state
    loaded: Merging[str] = Merging.load(json.loads(state))
    assert (json.dumps(loaded.dump()), loaded.after()) == (state, {"a": 8, "b": None})

"""States of the order that are kept for long are written and read as ever, byte for byte."""

from __future__ import annotations

import json

from fairlead.order.merging import Merging


def test_merged_inputs_of_version_1() -> None:
    merging: Merging[str] = Merging(["b", "a"])
    merging.push("b", 5, 3, "held")
    merging.push("a", 4, 8, "gone")
    state = '{"version": 1, "inputs": {"a": [8, 4], "b": null}}'
    assert json.dumps(merging.dump()) == state
    loaded: Merging[str] = Merging.load(json.loads(state))
    assert (json.dumps(loaded.dump()), loaded.after()) == (state, {"a": 8, "b": None})

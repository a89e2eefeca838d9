"""Relations that are taken back: as columns and as objects, in one order with those that are delivered. No runtime makes them
yet, so blocks of real matches are given a sign here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from fairlead.deliver.fold import remaining
from fairlead.deliver.receipt import Receipt, ReceiptBook
from fairlead.engine import Engine
from fairlead.errors import InvariantError
from fairlead.language import compile_text
from fairlead.matching.results.delivery_order import Interleaved, Objects, delivery_words, signs_of
from fairlead.matching.results.relations import Relations, joined
from fairlead.matching.results.result_table import table_of_objects
from fairlead.model.relations.layout import layout_of
from fairlead.model.relations.relation import Relation
from fairlead.transport.events import read_events
from tests.matching.compiled.test_kernel import interpreted
from tests.matching.generators.generated import Case, cases

__all__ = ["interpreted"]


def receipt(deliveries: Sequence[Relation]) -> Receipt:
    book = ReceiptBook("plan")
    book.note(delivery_words(deliveries))
    return book.receipt()


def kernel_relations(case: Case, size: int) -> list[Relations]:
    plan = compile_text(case.rules)
    engine = Engine(plan, kernels_from=0)
    found = [engine.feed(columns) for columns in read_events(case.events, plan.catalogue, batch_rows=size)]
    return [each for each in found if isinstance(each, Relations) and len(each)]


def taken_back(batch: Relations) -> Relations:
    """The same relations, all of them taken back."""
    return Relations([replace(block, sign=-1) for block in batch.blocks], batch.view, batch.catalogue, batch.build)


@given(cases(), st.integers(1, 13), st.data())
def test_columns_and_objects_carry_the_same_signs(case: Case, size: int, data: st.DataObject) -> None:
    batches = kernel_relations(case, size)
    event(f"batches: {min(len(batches), 3)}")
    backs = data.draw(st.lists(st.booleans(), min_size=len(batches), max_size=len(batches)))
    signed = [taken_back(batch) if back else batch for batch, back in zip(batches, backs, strict=True)]
    layout = replace(layout_of(compile_text(case.rules)), signed=True)
    for made, batch, back in zip(signed, batches, backs, strict=True):
        objects = list(made)
        assert [each.sign for each in objects] == [-1 if back else 1] * len(batch)
        assert [repr(made[at]) for at in range(len(made))] == list(map(repr, objects))
        assert made.ids() == batch.ids()
        assert receipt(made) == receipt(Objects(objects))
        assert repr(made.to_arrow(layout).to_pylist()) == repr(table_of_objects(layout, objects).to_pylist())  # NaN as text
        for one, plain in zip(objects, batch, strict=True):
            lines = json.dumps(one.to_json()), json.dumps(plain.to_json())
            assert lines[0] == (lines[1][:-1] + ', "sign": -1}' if back else lines[1])


@given(cases(), st.integers(1, 13))
def test_relations_that_are_taken_back_later_leave_nothing(case: Case, size: int) -> None:
    for batch in kernel_relations(case, size):
        back = taken_back(batch)
        both = Interleaved(
            [batch, Objects(list(back))],
            np.repeat(np.arange(2, dtype=np.int32), len(batch)),
            np.tile(np.arange(len(batch)), 2),
        )
        signs = signs_of(both)
        assert signs is not None
        assert signs.tolist() == [each.sign for each in both]
        assert remaining(delivery_words(both)).tolist() == []
        assert receipt(both) == receipt(Objects(list(both))) != receipt(Objects([*batch, *batch]))


@given(cases(), st.integers(1, 13))
def test_batches_are_joined_in_their_order_whatever_their_signs(case: Case, size: int) -> None:
    batches = [each for batch in kernel_relations(case, size) for each in (taken_back(batch), batch)]
    if not batches:
        return
    together = joined(batches)
    assert [(each.id, each.sign) for each in together] == [(each.id, each.sign) for batch in batches for each in batch]
    assert receipt(together) == receipt([each for batch in batches for each in batch])
    assert together.counts() == {name: sum(batch.counts().get(name, 0) for batch in batches) for name in together.counts()}


def test_a_table_without_signs_refuses_what_is_taken_back() -> None:
    plan = compile_text("TYPE A (x INT) SUBSCRIPTION S MATCH A a")
    (columns,) = read_events([{"type": "A", "x": 1}], plan.catalogue)
    (relation,) = Engine(plan).feed(columns)
    assert table_of_objects(layout_of(plan), [relation]).num_rows == 1
    with pytest.raises(InvariantError, match="without signs"):
        table_of_objects(layout_of(plan), [relation.taken_back()])

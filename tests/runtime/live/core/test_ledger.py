"""A ledger counts signed deliveries: what is handed over, acknowledged and replayed has one receipt, however it was cut."""

from __future__ import annotations

import random

import numpy as np
import pytest

from fairlead.deliver.receipt import ReceiptBook
from fairlead.errors import StateError, UsageError
from fairlead.matching.results.delivery_order import delivery_words
from fairlead.model.events.position import Position
from fairlead.model.relations.relation import Relation
from fairlead.runtime.live.core.ledger import Ledger, dump_book, load_book


def relation(number: int, sign: int = 1) -> Relation:
    return Relation("S", 0, f"{number:032x}", (), Position(number), sign=sign)


def deliveries(rolls: random.Random, count: int) -> list[Relation]:
    """Relations that are delivered, taken back, and delivered again."""
    made, there = list[Relation](), set[int]()
    while len(made) < count:
        number = rolls.randrange(6)
        made.append(relation(number, -1 if number in there else 1))
        there ^= {number}
    return made


def found(ledger: Ledger, book: ReceiptBook, some: list[Relation]) -> int:
    words, first = delivery_words(some), book.count + 1
    return ledger.found(first, words, book.note(words), silent=False)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_acknowledged_is_found_again_and_not_delivered(seed: int) -> None:
    rolls = random.Random(seed)
    all_of_them = deliveries(rolls, 40)
    whole = ReceiptBook("S")
    whole.note(delivery_words(all_of_them))
    book, ledger, done = ReceiptBook("S"), Ledger(ReceiptBook("S"), None), 0
    for low in range(0, 40, 7):
        assert found(ledger, book, all_of_them[low : low + 7]) == 0
        ledger.handed = book.count
        done = rolls.randint(done, book.count)
        ledger.acknowledge(done)
    assert ledger.receipt() == whole.receipt()
    again, replay = ReceiptBook("S"), Ledger(ReceiptBook("S"), ledger.acknowledged())
    cut = rolls.randint(1, 39)
    known = found(replay, again, all_of_them[:cut]) + found(replay, again, all_of_them[cut:])
    assert (known, replay.current) == (done, True)
    replay.handed = 40
    assert replay.receipt() == whole.receipt()


def test_a_relation_and_the_one_that_takes_it_back_have_numbers_of_their_own() -> None:
    book, ledger = ReceiptBook("S"), Ledger(ReceiptBook("S"), None)
    found(ledger, book, [relation(1), relation(2), relation(1, -1), relation(1)])
    ledger.handed = 3
    assert [ledger.number_of(each) for each in (relation(1), relation(2), relation(1, -1))] == [1, 2, 3]
    ledger.handed = 4
    assert ledger.number_of(relation(1)) == 4
    ledger.acknowledge(3)
    with pytest.raises(UsageError) as caught:
        ledger.number_of(relation(1, -1))
    assert caught.value.code == "A249"


def test_a_replay_that_differs_is_found_out() -> None:
    book, ledger = ReceiptBook("S"), Ledger(ReceiptBook("S"), {"count": 2, "digest": "0" * 32})
    with pytest.raises(StateError) as caught:
        found(ledger, book, [relation(1), relation(1, -1)])
    assert caught.value.code == "S133"


def test_books_are_kept_and_copied() -> None:
    book, other = ReceiptBook("S"), ReceiptBook("S")
    book.note(delivery_words([relation(1), relation(1, -1)]))
    load_book(other, dump_book(book))
    for each in (other, book.copy()):
        assert each.receipt() == book.receipt()
        assert np.array_equal(each.total, book.total)

"""How a stream is doing: numbers out of Spark's own reports, on a screen and for Prometheus."""

from __future__ import annotations

import io
import re
import sys
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import SparkSession
from rich.console import Console

import fairlead
from fairlead import spark as fl
from fairlead.cli.commands.spark import following
from fairlead.errors import UnsupportedError
from fairlead.runtime.spark.input.files import Ordered, read
from fairlead.runtime.spark.stream.progress import Metrics, Snapshot
from tests.cli.shop import MARKET, RALLY, quote, write_lines
from tests.waiting import wait_until


def report(batch: int, **more: object) -> dict[str, object]:
    counts = {"late": 1, "rejected": 2, "repeated": 0, "relations_0": 3}
    plain = {
        "batchId": batch,
        "numInputRows": 100,
        "durationMs": {"triggerExecution": 500},
        "observedMetrics": {"fairlead": counts},
    }
    return (
        plain
        | {"stateOperators": [{"numRowsTotal": 1, "memoryUsedBytes": 10}, {"numRowsTotal": 2, "memoryUsedBytes": 20}]}
        | more
    )


def test_reports_are_added_up() -> None:
    metrics = Metrics(fairlead.compile(MARKET))
    metrics.note(report(0))
    metrics.note(report(1))
    metrics.note(report(2, numInputRows=0, observedMetrics={}, durationMs={"triggerExecution": 9}))
    now = metrics.snapshot()
    assert (now.batches, now.last_batch, now.events, now.events_per_second, now.batch_seconds) == (3, 2, 200, 200.0, 0.5)
    assert (now.late, now.rejected, now.relations, now.state_rows, now.state_bytes) == (2, 4, {"Rally": 6}, 3, 30)
    assert now.held is None
    metrics.note(report(3, observedMetrics={"fairlead_order": {"held": 7, "ties": 2}, "fairlead_input": {"events": 90}}))
    assert (metrics.snapshot().held, metrics.snapshot().ties, metrics.snapshot().events) == (7, 2, 290)


def test_the_text_is_what_prometheus_reads() -> None:
    metrics = Metrics(fairlead.compile(MARKET))
    metrics.note(report(0))
    found = {each.name: each for each in text_string_to_metric_families(metrics.metrics())}
    kinds = {name: (each.type, [(one.name, one.labels, one.value) for one in each.samples]) for name, each in found.items()}
    assert kinds["fairlead_relations"] == ("counter", [("fairlead_relations_total", {"subscription": "Rally"}, 3.0)])
    assert kinds["fairlead_events"] == ("counter", [("fairlead_events_total", {}, 100.0)])
    assert kinds["fairlead_batch_seconds"] == ("gauge", [("fairlead_batch_seconds", {}, 0.5)])
    assert [*kinds][-1] == "fairlead_relations"
    assert "fairlead_held_rows" not in found  # not known, so not said
    metrics.note(report(1, observedMetrics={"fairlead_order": {"held": 7, "ties": 2}}))
    found = {each.name: each for each in text_string_to_metric_families(metrics.metrics())}
    assert [each.value for name in ("fairlead_held_rows", "fairlead_ties") for each in found[name].samples] == [7.0, 2.0]
    assert all(each.documentation for each in found.values())


def test_metrics_without_the_library_of_prometheus_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(UnsupportedError, match="pip install prometheus-client") as caught:
        Metrics(fairlead.compile(MARKET)).metrics()
    assert caught.value.code == "U115"


def test_a_snapshot_is_a_table_on_the_screen() -> None:
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(following(Snapshot(batches=2, events=1234, held=7, relations={"Rally": 5})))
    shown = console.export_text()
    assert re.search(r"events +1,234", shown)
    assert re.search(r"held back +7", shown)
    assert re.search(r"Rally +5", shown)


def test_a_stream_that_is_observed_is_counted_and_served(spark: SparkSession, tmp_path: Path) -> None:
    plan = fairlead.compile(MARKET)
    write_lines(tmp_path / "in.jsonl", [*RALLY, quote("ACME", 1.0, 99)])
    source = read(spark, plan, [str(tmp_path)], Ordered(("at",)), streaming=True, form="json")
    watching = fl.watch(spark, plan)
    try:
        port = watching.serve(0)
        relations = fl.observed(fl.match(plan, source.good, order_by="at", frontier="stream"), plan)
        query = relations.writeStream.format("noop").trigger(availableNow=True).start()
        query.awaitTermination()
        wait_until(lambda: watching.snapshot().batches)
        now = watching.snapshot()
        assert (now.events, now.relations, now.late) == (6, {"Rally": 1}, 0)
        assert now.state_bytes > 0
        assert (now.held, now.ties) == (1, 0)  # the last one waits for something after it
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            assert answer.read().decode() == watching.metrics()
    finally:
        watching.stop()

"""Jobs on Spark with the login of a user that has rights of its own: it reads its topics and stores what its rules emit, as one
that manages does; and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import fairlead
import fairlead.spark as on_spark
from fairlead.errors import FairleadError
from fairlead.runtime.live.sync_client import SyncClient
from fairlead.runtime.rights.apply import apply
from fairlead.runtime.rights.policy import policy_of
from fairlead.runtime.rights.server_config import server_config
from fairlead.transport.log.jetstream.server import Server

POLICY = policy_of(
    """
    users:
      boss: {password: $PASSWORD, manage: true}
      shop: {password: $PASSWORD, publish: [a, c]}
      desk: {password: $PASSWORD, subscribe: [a, c], emit: [seen], names: [desk]}
    """
)
TYPES = """TOPIC a (A) TOPIC b (B) TOPIC c (C) TOPIC seen (Seen)
TYPE A (k INT) TYPE B (k INT) TYPE C (k INT) TYPE Seen (k INT)"""
RULES = "SUBSCRIPTION S MATCH A a AND C c PER k EMIT Seen (k = a.k)"


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, SyncClient]]:
    """The url, and the client of the boss, with events that the shop has published."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PASSWORD", "pass")
        with Server(folder, durable=False, more=server_config(POLICY)) as server, connected(server.url, "boss") as boss:
            boss.declare(TYPES)
            boss._call(apply(boss._client.log, POLICY))
            with connected(server.url, "shop") as shop:
                for number in range(30):
                    shop.publish("AC"[number % 2], k=number // 2, wait=True)
            boss.publish("B", k=7, wait=True)
            yield server.url, boss


def connected(url: str, user: str) -> SyncClient:
    return fairlead.connect(url, user=user, password="pass", source=user).sync


def seen(boss: SyncClient) -> list[int]:
    with boss.subscribe("SUBSCRIPTION T MATCH Seen s", start="earliest") as sub:
        ends, found = sub.ends(), []
        while not sub.has_passed(ends):
            while (relation := sub.next(timeout=0.1)) is not None:
                found.append(relation.events[0]["k"])
        return found


def test_a_user_with_rights_of_its_own_reads_and_emits(spark: SparkSession, tmp_path: Path) -> None:
    plan = fairlead.compile(TYPES + RULES)
    with served(tmp_path / "log") as (url, boss):
        login = {"user": "desk", "password": "pass"}
        found = {}
        for user in ("boss", "desk"):
            frame = on_spark.log(spark, url, plan=plan, user=user, password="pass")
            found[user] = [each.relation_id for each in on_spark.match(plan, frame, position="position").collect()]
        assert sorted(found["boss"]) == sorted(found["desk"])
        assert len(found["desk"]) == 15
        frame = on_spark.log(spark, url, plan=plan, **login)
        on_spark.to_log(on_spark.match(plan, frame, position="position"), plan, url, **login).save()
        assert seen(boss) == list(range(15))
        for name, number in (("one", 30), ("one", 32)):
            with connected(url, "shop") as shop:
                for at in range(2):
                    shop.publish("AC"[at], k=number, wait=True)
            read = on_spark.log(spark, url, plan=plan, stream=True, **login)
            writer = on_spark.to_log(on_spark.match(plan, read, position="position"), plan, url, name="desk", **login)
            query = writer.option("checkpointLocation", str(tmp_path / name)).trigger(availableNow=True).start()
            assert query.awaitTermination(300)
        assert seen(boss) == [*range(15), 30, 32]


def test_what_it_may_not_read_or_store_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    plan = fairlead.compile(TYPES + RULES)
    login = {"user": "desk", "password": "pass"}
    with served(tmp_path / "log") as (url, boss):
        with pytest.raises((PySparkException, FairleadError), match="N003"):
            on_spark.log(spark, url, types="B", **login).collect()
        with pytest.raises((PySparkException, FairleadError), match="N003"):
            on_spark.log(spark, url, types="A,B", **login).collect()
        shop = {"user": "shop", "password": "pass"}
        with pytest.raises((PySparkException, FairleadError), match="N003"):
            on_spark.log(spark, url, types="A", **shop).collect()
        frame = on_spark.match(plan, on_spark.log(spark, url, plan=plan, **login), position="position")
        with pytest.raises((PySparkException, FairleadError), match="N003"):
            on_spark.to_log(frame, plan, url, into="Found", **login).save()
        assert seen(boss) == []

"""Stateful tasks are named such that Spark spreads them evenly."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from fairlead.runtime.spark.stream.spreading import EVEN_FOR, key_of, spark_hash, task_of


def test_keys_and_tasks_are_one_to_one() -> None:
    assert [task_of(key_of(task)) for task in range(-2, 2 * EVEN_FOR)] == list(range(-2, 2 * EVEN_FOR))
    assert [task_of(plain) for plain in range(-2, 1_000)] == list(range(-2, 1_000))


@pytest.mark.parametrize("partitions", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 24])
def test_as_many_tasks_as_partitions_have_one_each(partitions: int) -> None:
    keys = np.array([key_of(task) for task in range(partitions)], dtype=np.int32)
    assert sorted((spark_hash(keys) % partitions).tolist()) == list(range(partitions))


def test_the_hash_is_sparks(spark: SparkSession) -> None:
    numbers = [0, 1, -1, 7, 2**31 - 1, -(2**31), *map(key_of, range(20))]
    frame = spark.createDataFrame([(each,) for each in numbers], "n int").select("n", F.hash("n").alias("hash"))
    found = {row.n: row.hash for row in frame.collect()}
    assert [found[each] for each in numbers] == spark_hash(np.array(numbers, dtype=np.int32)).tolist()


def test_groups_go_where_the_hash_says(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(key_of(task),) for task in range(4)], "target int")
    placed = frame.repartition(4, "target").select(F.spark_partition_id().alias("at")).collect()
    assert sorted(row.at for row in placed) == [0, 1, 2, 3]

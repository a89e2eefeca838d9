"""Spark as Fairlead sets it up: the Java it finds, the settings it makes, the package it ships."""

from __future__ import annotations

from pyspark.sql import SparkSession


def test_a_job_runs(spark: SparkSession) -> None:
    assert spark.range(10).selectExpr("sum(id)").collect()[0][0] == 45

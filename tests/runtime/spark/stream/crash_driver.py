"""A driver process that test_crash.py kills: a stream from files to files, and on request a batch job after it.

python -m tests.runtime.spark.stream.crash_driver MASTER FOLDER [batch]
"""

from __future__ import annotations

import sys
from pathlib import Path

import fairlead
from fairlead import spark as fl
from fairlead.runtime.spark.setup.package_zip import ship
from fairlead.runtime.spark.setup.session import session
from tests.runtime.spark.stream.streams import RULES, reading

SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": 2,
    "spark.task.maxFailures": 8,
}


def main(master: str, folder: Path, is_batch: bool) -> None:
    settings = SETTINGS | {"spark.local.dir": folder / "local", "spark.sql.warehouse.dir": folder / "warehouse"}
    spark = session(master, "crash", **settings)
    if master.startswith("local-cluster"):
        ship(spark)
    plan = fairlead.compile(RULES)
    found = fl.match(plan, reading(spark, folder / "in"), order_by="at", frontier="stream", buckets=2)
    writer = found.writeStream.format("parquet").option("path", str(folder / "stream"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    if is_batch:
        (folder / "batch-begins").touch()
        given = spark.read.parquet(str(folder / "in"))
        fl.match(plan, given, order_by="at", buckets=4).write.parquet(str(folder / "batch"))
    (folder / "done").touch()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:] == ["batch"])

"""A driver process that test_ordered_sink.py kills: a stream that stores what rules with ORDER BY emit, to the end of a log.

python -m tests.runtime.spark.log.sink_driver MASTER FOLDER URL RULES BLOCKS
"""

from __future__ import annotations

import sys
from pathlib import Path

import fairlead
from fairlead import spark as fl
from fairlead.runtime.spark.setup.session import session
from tests.runtime.spark.stream.crash_driver import SETTINGS


def main(master: str, folder: Path, url: str, text: str, blocks: int) -> None:
    settings = SETTINGS | {"spark.local.dir": folder / "local", "spark.sql.warehouse.dir": folder / "warehouse"}
    spark, plan = session(master, "killed", **settings), fairlead.compile(text)
    found = fl.match(plan, fl.log(spark, url, plan=plan, stream=True, blocks=blocks))
    writer = fl.to_log(found, plan, url, into="Found").option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    (folder / "done").touch()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5]))

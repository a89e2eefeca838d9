"""What the ending of a path says about its events, and what it cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.errors import DataError
from fairlead.runtime.spark.sources import form_of
from tests.transport.samples import write


def test_files_of_cloudevents_are_refused_with_another_way(tmp_path: Path) -> None:
    path = write(tmp_path / "in.cloudevents.jsonl", "{}")
    for given in (path, tmp_path, tmp_path / "*.cloudevents.jsonl"):
        with pytest.raises(DataError, match=r"D013 .*files of CloudEvents are not read on Spark") as raised:
            form_of(str(given))
        assert "fairlead run" in str(raised.value.fix)
    assert form_of(str(write(tmp_path / "plain.jsonl", "{}"))) == "json"

"""Early deliveries are those of the model (early_cases.py, which also runs many more by command)."""

from __future__ import annotations

import pytest

from tests.runtime.live.core.early_cases import follow, main


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(36))
def test_early_and_confirmed_deliveries_are_those_of_the_model(seed: int) -> None:
    follow(seed)


def test_the_command_names_the_cases_that_fail(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--runs", "1", "--seed", "3"]) == 0
    monkeypatch.setattr("fairlead.runtime.live.core.early.EarlyMatcher.step", lambda *given: ())
    assert main(["--runs", "3", "--seed", "1"]) == 1
    assert "failed: [" in capsys.readouterr().out

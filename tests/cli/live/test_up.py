"""`fairlead up` as a process: it tells where it is, keeps what was stored, and goes with everything that it started."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.live.servers import ENVIRONMENT, is_running, up
from tests.cli.shop import MARKET, RALLY, command, fairlead_process, write_lines
from tests.waiting import wait_until


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_with_its_server(tmp_path: Path, number: signal.Signals) -> None:
    with up(tmp_path / "data") as (process, told):
        assert told["url"].startswith("nats://127.0.0.1:")
        assert told["data"] == str(tmp_path / "data")
        assert is_running(told["pid"])
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
        assert (process.returncode, errors) == (0, "")
        assert not is_running(told["pid"])


def test_killed_it_takes_its_server_along(tmp_path: Path) -> None:
    with up(tmp_path / "data") as (process, told):
        process.kill()
        process.wait(30)
        wait_until(lambda: not is_running(told["pid"]))


def test_it_says_when_its_server_ends(tmp_path: Path) -> None:
    with up(tmp_path / "data") as (process, told):
        subprocess.run(["kill", "-KILL", str(told["pid"])], check=True)
        _, errors = process.communicate(timeout=30)
        assert process.returncode == 1
        assert "N007" in errors


def test_the_log_and_the_port_are_there_again(tmp_path: Path) -> None:
    (tmp_path / "market.fl").write_text(MARKET)
    events = write_lines(tmp_path / "quotes.jsonl", RALLY)
    with up(tmp_path / "data") as (_, first):
        for arguments in (["declare", tmp_path / "market.fl"], ["publish", "--from", events]):
            done = fairlead_process(*arguments, "--url", first["url"])
            assert done.returncode == 0, done.stderr
    with up(tmp_path / "data") as (_, second):
        assert second["url"] == first["url"]
        done = fairlead_process(
            "tail", tmp_path / "market.fl", "--start", "earliest", "--until-end", "--url", second["url"], "--quiet"
        )
        assert done.stdout.count("\n") == 1, done.stderr
    with up(tmp_path / "data", "--port", "0"):
        pass


def test_a_folder_or_port_that_is_taken(tmp_path: Path) -> None:
    with up(tmp_path / "data") as (_, told):
        taken = fairlead_process("up", "--data", tmp_path / "data")
        assert taken.returncode == 1
        assert "N006" in taken.stderr
        port = told["url"].rsplit(":", 1)[-1]
        taken = fairlead_process("up", "--data", tmp_path / "other", "--port", port)
        assert taken.returncode == 1
        assert "N007" in taken.stderr
        assert "in use" in taken.stderr


def test_for_people_it_says_how_to_connect(tmp_path: Path) -> None:
    arguments = command("up", "--data", tmp_path / "data")
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(4)]
        process.terminate()
        _, errors = process.communicate(timeout=30)
    url = lines[0].split()[0]
    assert f"export FAIRLEAD_URL={url}\n" in lines[1]
    assert f'fairlead.connect("{url}")' in lines[2]
    assert errors == "stopped\n"

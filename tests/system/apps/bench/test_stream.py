"""The benchmark of streams: what came is counted, slices are compared round by round, and a real run has no gap."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps import cli
from apps.bench.live.receiver import Receiver, missing
from apps.bench.live.stream import Settings
from apps.bench.live.stream_report import Streamed, report
from apps.bench.stop import Stop
from apps.stream.sinks import UdpSink, WebSocketSink
from apps.stream.ticks import Batch
from haptics.errors import ConfigurationError
from tests.processes import until
from tests.system.apps.bench.test_servo import TRIAL, servo_slice


def streamed(lateness: float, tick: float = 20e-6, away: int | None = 0, **counts: int) -> Streamed:
    own = servo_slice(lateness, None, **counts)
    own.tick_time[:] = tick
    return Streamed(own) if away is None else Streamed(own, 990 - away, away, min(away, 1))


def reference(lateness: float, tick: float = 20e-6) -> Streamed:
    return streamed(lateness, tick, None)


def test_what_counts_is_the_median_over_rounds() -> None:
    slices = {
        "off": [reference(10e-6), reference(20e-6), reference(10e-6)],
        "udp": [streamed(20e-6, 30e-6), streamed(40e-6, 30e-6), streamed(5e-3, 90e-6)],
        "websocket": [streamed(10e-6), streamed(20e-6), streamed(10e-6)],
    }
    outcome = report(slices, TRIAL, 1.0)
    udp, websocket = outcome.result["streams"]
    assert (udp["stream"], udp["ratio_p99"], udp["ratio_p999"], udp["ratio_tick"]) == ("udp", 2.0, 2.0, 1.5)
    assert (websocket["ratio_p99"], websocket["ratio_tick"]) == (1.0, 1.0)
    assert (udp["received"], udp["missing"], len(udp["slices"])) == (3 * 990, 0, 3)
    assert outcome.result["without"]["ticks"] == 3 * 990
    assert outcome.error == ""
    json.dumps(outcome.result, allow_nan=False)
    lines = outcome.text.splitlines()
    assert [line.split()[0] for line in lines[-5:]] == ["off", "udp", "ratio", "websocket", "ratio"]


def test_a_websocket_s_client_must_miss_nothing_and_a_datagram_may_be_lost() -> None:
    base = [reference(1e-5)]
    assert report({"off": base, "udp": [streamed(1e-5, away=3)]}, TRIAL, 1.0).error == ""
    said = report({"off": base, "websocket": [streamed(1e-5, away=3)]}, TRIAL, 1.0).error
    assert said == "the client of websocket missed 3 ticks in 1 gaps."
    assert "missed 990 ticks" in report({"off": base, "udp": [streamed(1e-5, away=990)]}, TRIAL, 1.0).error
    assert "2 ticks (udp) are missing in the recordings" in (
        report({"off": base, "udp": [streamed(1e-5, lost_ticks=2)]}, TRIAL, 1.0).error
    )


def test_missing_ticks_are_counted_with_their_gaps() -> None:
    executed = np.array([0, 1, 2, 5, 6, 7, 8, 9])  # 3 and 4 were skipped
    assert missing(executed, executed[::-1]) == (0, 0)
    assert missing(executed, np.array([2, 5, 8, 5])) == (5, 3)
    assert missing(executed, np.array([], np.int64)) == (8, 1)


@pytest.mark.parametrize(("kind", "turns"), [("udp", 2), ("websocket", 2), ("both", 3)])
def test_slices_take_turns_with_none(kind: str, turns: int) -> None:
    settings = Settings(stream=kind)
    assert (settings.kinds[0], settings.turns, settings.length) == ("off", turns, 10.0)
    with pytest.raises(ConfigurationError, match=f"{turns} slices of 30 s"):
        Settings(stream=kind, slice=30.0, duration=40.0)


@pytest.mark.parametrize("kind", ["udp", "websocket"])
def test_a_client_says_which_ticks_came(kind: str) -> None:
    pytest.importorskip("websockets")
    with Stop() as stop, Receiver(kind, stop) as client:
        sink: Any = (UdpSink if kind == "udp" else WebSocketSink)(client.address)
        client.await_ready()
        if kind == "websocket":
            until(lambda: sink._clients, "the server did not take note of its client")
        sink.begin({"columns": ["timestamp", "tick"]})
        for number in range(0, 30, 10):
            sink.send(Batch(["timestamp", "tick"], [(0.5, tick) for tick in range(number, number + 10)]))
        sink.end("completed")
        sink.close()
        assert client.finish().tolist() == list(range(30))


def test_a_short_run_with_both_streams(
    compiled: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("websockets")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    status = cli.main(["bench", "stream", "--duration", "3", "--json"])
    output, words = capsys.readouterr()
    assert status == 0, words
    result = json.loads(output)
    assert [one["stream"] for one in result["streams"]] == ["udp", "websocket"]
    for one in result["streams"]:
        assert one["ticks"] + one["skipped"] == 1000
        assert one["lost_ticks"] == 0
        assert one["ratio_p99"] > 0.0
        assert one["ratio_tick"] > 0.0
    assert (result["streams"][1]["missing"], result["streams"][1]["gaps"]) == (0, 0)
    assert result["streams"][1]["received"] == result["streams"][1]["ticks"]
    assert not list(tmp_path.iterdir())

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.cli import main
from apps.stream.address import StreamAddress, parse_stream, require_usable
from apps.stream.sinks import MOST_WAITING, WebSocketSink, _Client
from apps.stream.ticks import Batch
from haptics.errors import ConfigurationError
from haptics.recording.flat import flat_columns
from haptics.recording.recording import Recording

DURATION = 2.0

LONG = 5.0


def free_port(kind: int) -> int:
    with socket.socket(socket.AF_INET, kind) as line:
        line.bind(("127.0.0.1", 0))
        return int(line.getsockname()[1])


@contextmanager
def session(folder: Path, *more: str, seconds: float = DURATION) -> Iterator[subprocess.Popen[str]]:
    """Run a session on the wall's clock in a process of its own."""
    asked = ("run", "--device", "virtual-joystick", "--headless", "--duration", str(seconds), "--record", str(folder))
    command = [sys.executable, "-m", "apps", *asked, "--json", "--set", "session.picture=false", *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    answer: dict[str, Any] = json.loads(out)
    return answer


def require_all_ticks(received: dict[str, list[Any]], recording: str) -> None:
    """Fail unless every tick of the recording has come, with its numbers."""
    flat = flat_columns(Recording(Path(recording)))
    np.testing.assert_array_equal(received["tick"], flat["tick"])
    for name in ("position_x_m", "command_y_n", "friction_force_x_n", "status"):
        np.testing.assert_array_equal(np.array(received[name], float), flat[name].astype(float), err_msg=name)


@pytest.mark.parametrize("seconds", [DURATION, LONG])
def test_a_websocket_s_client_gets_every_tick(tmp_path: Path, seconds: float) -> None:
    client = pytest.importorskip("websockets.sync.client")
    port = free_port(socket.SOCK_STREAM)
    with session(tmp_path, "--stream", f"websocket=127.0.0.1:{port}", seconds=seconds) as process:
        with _connected(client, port) as connection:
            messages = [json.loads(message) for message in connection]  # until the server closes
        answer = ended(process)
    first, *batches, last = messages
    assert first["kind"] == "start" and first["model"] == "C" and first["rate_hz"] == 1000.0
    assert (last["kind"], last["reason"]) == ("end", "completed")
    ticks = [tick for batch in batches for tick in batch["ticks"]]
    received = dict(zip(first["columns"], map(list, zip(*ticks, strict=True)), strict=True))
    assert len(ticks) == answer["ticks"]
    assert answer["ticks"] + answer["skipped"] == 1000 * seconds
    require_all_ticks(received, answer["recording"])
    assert np.abs(np.array(received["timestamp"]) - time.time()).max() < 600.0


def _connected(client: Any, port: int) -> Any:
    """Connect as soon as the server is there, which is before the first tick."""
    latest = time.monotonic() + 60.0
    while True:
        try:
            return client.connect(f"ws://127.0.0.1:{port}", compression=None)
        except OSError:
            if time.monotonic() > latest:
                raise
            time.sleep(0.02)


def test_udp_brings_a_datagram_a_tick(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        line.bind(("127.0.0.1", 0))
        line.settimeout(60.0)
        port = line.getsockname()[1]
        received: list[dict[str, Any]] = []
        with session(tmp_path, "--stream", f"udp=127.0.0.1:{port}") as process:
            while len(received) < 1000 * DURATION:
                received.append(json.loads(line.recv(65536)))
                if received[-1]["tick"] >= 1000 * DURATION - 1:
                    break
            answer = ended(process)
    require_all_ticks({name: [tick[name] for tick in received] for name in received[0]}, answer["recording"])
    assert None not in received[0].values()


def test_a_stream_that_dies_does_not_disturb_the_run(tmp_path: Path) -> None:
    pytest.importorskip("websockets")
    port = free_port(socket.SOCK_STREAM)
    with session(tmp_path, "--stream", f"websocket=127.0.0.1:{port}") as process:
        latest = time.monotonic() + 60.0
        while not (found := _servers(process.pid)) and time.monotonic() < latest:
            time.sleep(0.02)
        for child in found:
            subprocess.run(["kill", "-9", str(child)], check=False)
        out, err = process.communicate(timeout=100)
    assert found and process.returncode == 0
    assert "a stream ended unexpectedly" in err
    assert json.loads(out)["ticks"] + json.loads(out)["skipped"] == 1000 * DURATION


def _servers(parent: int) -> list[int]:
    """Return the children of `parent` that listen on a socket: the stream is the only one."""
    tasks = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(task) for task in tasks if _listens(int(task))]


def _listens(process: int) -> bool:
    listening = {
        line.split()[9] for line in Path("/proc/net/tcp").read_text().splitlines()[1:] if line.split()[3] == "0A"
    }
    try:
        links = [str(link.readlink()) for link in Path(f"/proc/{process}/fd").iterdir()]
    except OSError:
        return False
    return any(link.removeprefix("socket:[").rstrip("]") in listening for link in links)


def test_a_client_that_is_too_slow_is_told_to_leave() -> None:
    client = _Client()
    for _ in range(MOST_WAITING):
        client.tell("x")
    assert not client.too_slow
    client.tell("one more")
    assert client.too_slow


def test_one_that_joins_later_is_told_what_run_it_is() -> None:
    client = pytest.importorskip("websockets.sync.client")
    port = free_port(socket.SOCK_STREAM)
    sink = WebSocketSink(StreamAddress("websocket", "127.0.0.1", port))
    sink.begin({"model": "C", "columns": ["tick"]})
    with client.connect(f"ws://127.0.0.1:{port}") as connection:
        assert json.loads(connection.recv(10.0)) == {"kind": "start", "model": "C", "columns": ["tick"]}
        sink.send(Batch(["tick"], [(1,), (2,)]))
        assert json.loads(connection.recv(10.0)) == {"kind": "ticks", "ticks": [[1], [2]]}
        sink.close()


def test_one_that_joins_while_the_server_ends_is_let_go() -> None:
    websockets = pytest.importorskip("websockets.sync.client")
    port = free_port(socket.SOCK_STREAM)
    sink = WebSocketSink(StreamAddress("websocket", "127.0.0.1", port))
    shut_down = sink._server.shutdown

    def with_one_more() -> None:
        with websockets.connect(f"ws://127.0.0.1:{port}"):
            shut_down()

    sink._server.shutdown = with_one_more  # type: ignore[method-assign]
    ending = threading.Thread(target=sink.close, daemon=True)
    ending.start()
    ending.join(20.0)
    stuck = ending.is_alive()
    for client in list(sink._clients.values()):
        client.tell(None)
    assert not stuck


@pytest.mark.parametrize(
    ("text", "stream"),
    [
        ("udp", StreamAddress("udp", "127.0.0.1", 9870)),
        ("websocket=9000", StreamAddress("websocket", "127.0.0.1", 9000)),
        ("udp=lab-pc.local:1234", StreamAddress("udp", "lab-pc.local", 1234)),
        ("websocket=[::1]:80", StreamAddress("websocket", "::1", 80)),
        ("lsl", StreamAddress("lsl")),
    ],
)
def test_what_can_be_asked_for(text: str, stream: StreamAddress) -> None:
    assert parse_stream(text) == stream
    assert parse_stream(str(stream)) == stream


@pytest.mark.parametrize(
    "text", ["tcp", "lsl=127.0.0.1:80", "udp=", "udp=host", "websocket=host:0", "udp=a:b:1", "udp=host:99999", ""]
)
def test_what_cannot_is_refused_in_words(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--device", "virtual-joystick", "--headless", "--stream", text]) == 2
    assert "--stream" in capsys.readouterr().err


def test_a_port_that_is_taken_is_refused_before_anything_moves(tmp_path: Path) -> None:
    pytest.importorskip("websockets")
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        line.listen()
        with pytest.raises(ConfigurationError, match="choose another port"):
            require_usable(StreamAddress("websocket", "127.0.0.1", line.getsockname()[1]))
    with pytest.raises(ConfigurationError, match="known here"):
        require_usable(StreamAddress("udp", "no-such-machine.invalid", 9870))

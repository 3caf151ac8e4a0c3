"""Streams of a run to clients by websocket and UDP."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.cli import main
from apps.stream import MOST_WAITING, Batch, StreamAddress, WebSocketSink, _Client, parse_stream, require_usable
from haptics.errors import ConfigurationError
from haptics.recording.recording import Recording, flat_columns
from tests.processes import RUN, finish, program, until

DURATION = 2.0
LONG = 5.0


def free_port(kind):
    with socket.socket(socket.AF_INET, kind) as line:
        line.bind(("127.0.0.1", 0))
        return int(line.getsockname()[1])


def session(folder, *more, seconds=DURATION):
    """Run a session in real time in a process."""
    asked = ("--device", "virtual-joystick", "--headless", "--duration", str(seconds), "--record", str(folder))
    return program(*RUN, *asked, *more, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def require_all_ticks(received, recording):
    """Fail unless every tick of the recording has come, with its numbers."""
    flat = flat_columns(Recording(Path(recording)))
    np.testing.assert_array_equal(received["tick"], flat["tick"])
    for name in ("position_x_m", "command_y_n", "friction_force_x_n", "status"):
        np.testing.assert_array_equal(np.array(received[name], float), flat[name].astype(float), err_msg=name)


def test_websocket_client_receives_every_tick(tmp_path):
    client = pytest.importorskip("websockets.sync.client")
    port = free_port(socket.SOCK_STREAM)
    with session(tmp_path, "--stream", f"websocket=127.0.0.1:{port}", seconds=LONG) as process:
        with until(lambda: connected(client, port), "no server") as connection:
            messages = [json.loads(message) for message in connection]  # until the server closes
        answer = finish(process)
    first, *batches, last = messages
    assert first["kind"] == "start" and first["model"] == "C" and first["rate_hz"] == 1000.0
    assert (last["kind"], last["reason"]) == ("end", "completed")
    ticks = [tick for batch in batches for tick in batch["ticks"]]
    received = dict(zip(first["columns"], map(list, zip(*ticks, strict=True)), strict=True))
    assert len(ticks) == answer["ticks"]
    assert answer["ticks"] + answer["skipped"] == 1000 * LONG
    require_all_ticks(received, answer["recording"])
    assert np.abs(np.array(received["timestamp"]) - time.time()).max() < 600.0


def connected(client, port):
    """Connect if the server is running, which is the case before the first tick."""
    with suppress(OSError):
        return client.connect(f"ws://127.0.0.1:{port}", compression=None)
    return None


def test_udp_sends_a_datagram_per_tick(tmp_path):
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
            answer = finish(process)
    require_all_ticks({name: [tick[name] for tick in received] for name in received[0]}, answer["recording"])
    assert None not in received[0].values()


def test_killed_stream_does_not_disturb_the_run(tmp_path):
    pytest.importorskip("websockets")
    port = free_port(socket.SOCK_STREAM)
    with session(tmp_path, "--stream", f"websocket=127.0.0.1:{port}") as process:
        found = until(lambda: servers(process.pid), "no server")
        for child in found:
            subprocess.run(["kill", "-9", str(child)], check=False)
        out, err = process.communicate(timeout=100)
    assert process.returncode == 0
    assert "a stream ended unexpectedly" in err
    assert json.loads(out)["ticks"] + json.loads(out)["skipped"] == 1000 * DURATION


def servers(parent):
    """Return the children of `parent` that listen on a socket: the stream is the only one."""
    connections = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = {f"socket:[{fields[9]}]" for fields in connections if fields[3] == "0A"}
    found = []
    for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        with suppress(OSError):
            if any(str(link.readlink()) in listening for link in Path(f"/proc/{child}/fd").iterdir()):
                found.append(int(child))
    return found


def test_slow_client_is_dropped():
    client = _Client()
    for _ in range(MOST_WAITING):
        client.queue("x")
    assert not client.too_slow
    client.queue("one more")
    assert client.too_slow


def test_late_client_receives_the_start_message():
    client = pytest.importorskip("websockets.sync.client")
    port = free_port(socket.SOCK_STREAM)
    sink = WebSocketSink(StreamAddress("websocket", "127.0.0.1", port))
    sink.begin({"model": "C", "columns": ["tick"]})
    with client.connect(f"ws://127.0.0.1:{port}") as connection:
        assert json.loads(connection.recv(10.0)) == {"kind": "start", "model": "C", "columns": ["tick"]}
        sink.send(Batch(["tick"], [(1,), (2,)]))
        assert json.loads(connection.recv(10.0)) == {"kind": "ticks", "ticks": [[1], [2]]}
        sink.close()


def test_client_that_joins_while_the_server_ends_is_closed():
    websockets = pytest.importorskip("websockets.sync.client")
    port = free_port(socket.SOCK_STREAM)
    sink = WebSocketSink(StreamAddress("websocket", "127.0.0.1", port))
    shut_down = sink._server.shutdown

    def with_one_more():
        with websockets.connect(f"ws://127.0.0.1:{port}"):
            shut_down()

    sink._server.shutdown = with_one_more
    ending = threading.Thread(target=sink.close, daemon=True)
    ending.start()
    ending.join(20.0)
    stuck = ending.is_alive()
    for client in list(sink._clients.values()):
        client.queue(None)
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
def test_stream_addresses_are_parsed(text, stream):
    assert parse_stream(text) == stream
    assert parse_stream(str(stream)) == stream


@pytest.mark.parametrize(
    "text", ["tcp", "lsl=127.0.0.1:80", "udp=", "udp=host", "websocket=host:0", "udp=a:b:1", "udp=host:99999", ""]
)
def test_wrong_stream_addresses_are_refused(text, capsys):
    assert main(["run", "--device", "virtual-joystick", "--headless", "--stream", text]) == 2
    assert "--stream" in capsys.readouterr().err


def test_unusable_stream_address_is_refused_before_the_run(tmp_path):
    pytest.importorskip("websockets")
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        line.listen()
        with pytest.raises(ConfigurationError, match="choose another port"):
            require_usable(StreamAddress("websocket", "127.0.0.1", line.getsockname()[1]))
    with pytest.raises(ConfigurationError, match="known here"):
        require_usable(StreamAddress("udp", "no-such-machine.invalid", 9870))

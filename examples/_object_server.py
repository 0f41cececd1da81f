#!/usr/bin/env python3
"""A small object store on the loopback: GET /N answers with the N-th file of a folder.

Each answer waits: the first byte comes after `--latency`, and all clients together get no more than
`--rate` objects a second. Both are made here, in the server, as a real store's are made in its own
machines and network. The port is printed on stdout; the server ends when its stdin is closed.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from _entry import ExampleError


class ObjectServer(ThreadingHTTPServer):
    """Holds the objects in memory and decides when each answer may leave."""

    request_queue_size = 128

    def __init__(self, objects: list[bytes], latency_seconds: float, rate: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects = objects
        self._latency_seconds = latency_seconds
        self._spacing_seconds = 1 / rate
        self._next_slot = 0.0
        self._lock = threading.Lock()

    def wait_for_turn(self) -> None:
        now = time.monotonic()
        with self._lock:
            slot = self._next_slot = max(now, self._next_slot + self._spacing_seconds)
        time.sleep(max(now + self._latency_seconds, slot) - now)

    def server_bind(self) -> None:
        # The stock one asks the resolver for our name: a network request, and of no use here.
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "localhost", self.server_address[1]


class _Handler(BaseHTTPRequestHandler):
    server: ObjectServer

    def do_GET(self) -> None:
        try:
            body = self.server.objects[int(self.path.lstrip("/"))]
        except (ValueError, IndexError):
            self.send_error(404)
            return
        self.server.wait_for_turn()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """No line a request."""


@dataclass(frozen=True)
class Store:
    """A running server: where it is and which process it is."""

    port: int
    pid: int


@contextlib.contextmanager
def serving(folder: Path, latency_seconds: float, rate: float) -> Iterator[Store]:
    """Runs a server in a process of its own, for the time of a `with` block."""
    command = [sys.executable, __file__, "--folder", str(folder)]
    command += ["--latency", str(latency_seconds), "--rate", str(rate)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            line = server.stdout.readline()
            if not line:
                raise ExampleError(f"the object server ended with exit code {server.wait()}")
            yield Store(int(line), server.pid)
        finally:
            server.stdin.close()


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--folder", type=Path, required=True, help="serves its *.jpg, by name")
    options.add_argument("--latency", type=float, required=True, help="seconds to the first byte")
    options.add_argument("--rate", type=float, required=True, help="objects a second, in all")
    chosen = options.parse_args()
    objects = [path.read_bytes() for path in sorted(chosen.folder.glob("*.jpg"))]
    server = ObjectServer(objects, chosen.latency, chosen.rate)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    # Ends with whoever started us, even if that was killed. Daemon threads end with us.
    sys.stdin.read()


if __name__ == "__main__":
    main()

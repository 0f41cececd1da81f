"""A small object store on the loopback: GET /N answers with the N-th of the files named on stdin.

The answer leaves when it would have come from a store in another building. The port is printed on
stdout; the server ends when it is told to, or with the last process that holds its stdin.
"""

from __future__ import annotations

import socketserver
import sys
import threading
import time
from pathlib import Path

ROUND_TRIP_SECONDS = 0.012


class Store(socketserver.ThreadingTCPServer):
    """Holds the objects in memory."""

    request_queue_size = 128
    daemon_threads = True
    objects: list[bytes]


class Answer(socketserver.StreamRequestHandler):
    server: Store

    def handle(self) -> None:
        number = int(self.rfile.readline().split()[1].lstrip(b"/"))
        while self.rfile.readline() not in (b"\r\n", b""):
            pass
        time.sleep(ROUND_TRIP_SECONDS)
        body = self.server.objects[number]
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self.wfile.write(head.encode() + body)


def main() -> None:
    objects = []
    while line := sys.stdin.readline().strip():
        objects.append(Path(line).read_bytes())
    with Store(("127.0.0.1", 0), Answer) as store:
        store.objects = objects
        threading.Thread(target=store.serve_forever, daemon=True).start()
        print(store.server_address[1], flush=True)
        sys.stdin.read()
        store.shutdown()


if __name__ == "__main__":
    main()

"""A server on loopback that speaks OpenAI's `/v1/embeddings` and `/v1/rerank`, and misbehaves as told."""

from __future__ import annotations

import base64
import json
import threading
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.meanings import vector


class Service:
    """What the server was sent (`requests`: path, body, headers) and how it answers."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, Any], dict[str, str]]] = []
        self.script: list[int] = []
        """Status codes of the next answers; 200 once there are none left."""
        self.base64 = True
        self.refuses = ""
        """A word that no text may hold; such a request gets 400."""
        self.extra = 0
        """Numbers more than usual in a vector."""
        self.raw: bytes | None = None
        self.hold: threading.Event | None = None
        self.url = ""

    @property
    def texts(self) -> list[str]:
        return [text for path, body, _ in self.requests if path.endswith("embeddings") for text in body["input"]]

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
        if self.hold is not None:
            self.hold.wait(20)
        if self.script and (code := self.script.pop(0)) != 200:
            return code, b'{"error": {"message": "no, with sk-key"}}'
        if self.raw is not None:
            return 200, self.raw
        if path.endswith("/rerank"):
            rows = [{"index": n, "relevance_score": t.count("best")} for n, t in enumerate(body["documents"])]
            return 200, json.dumps({"results": sorted(rows, key=lambda r: -r["relevance_score"])}).encode()
        if not body["input"] or (self.refuses and any(self.refuses in t for t in body["input"])):
            return 400, b"{}"
        packed = body.get("encoding_format") == "base64"
        if packed and not self.base64:
            return 400, b"{}"
        rows = []
        for number, text in enumerate(body["input"]):
            found = [*vector(text), *[0.0] * self.extra][: body.get("dimensions", 1000)]
            value = base64.b64encode(array("f", found).tobytes()).decode() if packed else found
            rows.append({"index": number, "embedding": value})
        return 200, json.dumps({"data": rows[::-1], "usage": {"total_tokens": 1}}).encode()


@contextmanager
def serving() -> Iterator[Service]:
    """The server while the block runs."""
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            service.requests.append((self.path, body, dict(self.headers)))
            code, data = service.answer(self.path, body)
            self.send_response(code)
            if code == 302:
                self.send_header("Location", "http://127.0.0.1:9/v1/embeddings")
            if code == 429:
                self.send_header("Retry-After", "0.01")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Keeps quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    service.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield service
    finally:
        if service.hold is not None:
            service.hold.set()
        server.shutdown()
        server.server_close()
        thread.join()

"""A provider that says what a script says: for tests, and for `--model scripted:FILE`.

A script is a JSON list; each reply is a text, or an object with `reply` (text or any JSON), `finish`, `cut` (characters
kept; the finish is then length), `tokens` ([in, out]), `sleep` (seconds), or `fail` (timeout, reset, 429, 500, or a
kind of `Failed`) with `wait`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pipimem.errors import Unreadable
from pipimem.llm import Failed, Reply
from pipimem.llm.retry import Clock
from pipimem.text import printable, tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipimem.llm import Request, Settings

KINDS = {"429": "rate-limited", "500": "server", "502": "server", "503": "server"}
MEANING = {
    "timeout": "took too long",
    "reset": "broke the connection",
    "rate-limited": "asked to come back later",
    "server": "stumbled",
}


class Scripted:
    """Gives the replies of `script` in order, one a question; `requests` keeps what was asked."""

    def __init__(self, script: Sequence[Any], name: str = "scripted", clock: Clock | None = None) -> None:
        self.name = name
        self.script = list(script)
        self.clock = clock or Clock()
        self.requests: list[Request] = []

    def ask(self, request: Request) -> Reply:
        """The next reply of the script; `Failed` (script) after its last one."""
        number = len(self.requests)
        self.requests.append(request)
        if number >= len(self.script):
            raise Failed("script", f"The script '{self.name}' has no reply number {number + 1}.", "Add one.")
        line = self.script[number]
        said: dict[str, Any] = line if isinstance(line, dict) else {"reply": line}
        self._sleep(float(said.get("sleep", 0)), request)
        if "fail" in said:
            raise self._failure(str(said["fail"]), said.get("wait"))
        return _reply(said, request, self.name)

    def _sleep(self, seconds: float, request: Request) -> None:
        if seconds:
            self.clock.wait(min(seconds, request.timeout), request.cancelled)
        if request.cancelled():
            raise Failed("cancelled", f"The question to '{self.name}' was called off.")
        if seconds > request.timeout:
            raise self._failure("timeout", None)

    def _failure(self, how: str, wait: Any) -> Failed:
        kind = KINDS.get(how, how)
        message = f"The model '{self.name}' {MEANING.get(kind, 'failed')}."
        return Failed(kind, message, "Try again later.", wait=None if wait is None else float(wait))


def opened(path: str, settings: Settings) -> Scripted:
    """The scripted provider of a JSON file. Raises `Unreadable` for a file that is no list of replies."""
    del settings
    shown = printable(path)
    try:
        with open(path, encoding="utf-8-sig") as file:
            script = json.load(file)
    except OSError as error:
        raise Unreadable(f"The script '{shown}' cannot be read: {error.strerror}.", "Check the path.") from None
    except (ValueError, RecursionError):
        raise Unreadable(f"The script '{shown}' is not JSON.", "Write a list of replies.") from None
    if not isinstance(script, list) or not all(isinstance(line, str | dict | list) for line in script):
        raise Unreadable(f"The script '{shown}' is no list of replies.", "Write a list of texts or objects.")
    return Scripted(script, f"scripted:{path}")


def _reply(said: dict[str, Any], request: Request, name: str) -> Reply:
    given = said.get("reply", "")
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    finish = str(said.get("finish", "length" if "cut" in said else "stop"))
    if "cut" in said:
        text = text[: int(said["cut"])]
    counted = said.get("tokens") or [sum(tokens(m.text) for m in request.messages), tokens(text)]
    return Reply(text, finish, int(counted[0]), int(counted[1]), name)

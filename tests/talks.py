"""Invented conversations as hosts write them, for the tests of importing and asking."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

DAY = "2026-11-20"


def claude(
    path: Path, said: Sequence[tuple[str, str]], *, session: str = "", cwd: str = "/src/kiln", start: int = 0,
    files: Sequence[str] = (), parent: str = "",
) -> str:  # fmt: skip
    """Appends (role, text) rows of a Claude Code session; its id. Row n has the uuid `SESSION-n`, a minute apart."""
    session = session or path.stem
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    for n, (role, text) in enumerate(said, start + 1):
        uuid = f"{session}-{n}"
        content: Any = text
        if role == "assistant":
            content = [{"type": "text", "text": text}]
            content += [{"type": "tool_use", "id": f"t{n}", "name": "Edit", "input": {"file_path": f}} for f in files]
        message = {"role": role, "content": content, **({"id": f"msg-{uuid}"} if role == "assistant" else {})}
        rows.append({
            "type": role, "uuid": uuid, "parentUuid": f"{session}-{n - 1}" if n > 1 else None, "sessionId": session,
            "timestamp": f"{DAY}T09:{n % 60:02d}:00Z", "cwd": cwd, "message": message,
        })  # fmt: skip
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return session


def lines(path: Path, *said: tuple[str, str], name: str = "Ines", day: str = DAY) -> Path:
    """A file of plain JSON lines, one message each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {"role": role, "content": text, "timestamp": f"{day}T10:{n:02d}:00+08:00", **({"name": name} if role == "user" else {})}
        for n, (role, text) in enumerate(said)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path

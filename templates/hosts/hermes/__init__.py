"""pipimem as a memory provider of Hermes: recall before a turn, the turn recorded after it, work done apart.

Settings come from the environment: PIPIMEM_WORKSPACE, and PIPIMEM_CHANNEL for the channel that is read and learned in
(without it: what everyone shares, and nothing is recorded). Hermes' own memory files stay its own.
"""

from __future__ import annotations

import os
from typing import Any

try:
    from agent.memory_provider import MemoryProvider
except ImportError:  # outside of Hermes: tests, and a look at the file
    MemoryProvider = object

import pipimem
from pipimem.text import scrub


class PipimemProvider(MemoryProvider):  # type: ignore[misc, valid-type]
    """One session's memory. Nothing here raises: without memory the agent goes on."""

    _session = ""
    _channel: str | None = None

    @property
    def name(self) -> str:
        """The provider's name in Hermes' settings."""
        return "pipimem"

    def is_available(self) -> bool:
        """Whether there is a workspace to read; asks nobody else."""
        return self._with(lambda memory: memory.workspace.root, "") != ""

    def initialize(self, session_id: str = "", **kwargs: Any) -> None:
        """Remembers whose session it is."""
        self._session = session_id
        self._channel = os.environ.get("PIPIMEM_CHANNEL") or None

    def system_prompt_block(self) -> str:
        """Identity, policy, what is pinned, and by the mode the newest memory."""
        return self._with(lambda memory: memory.context(channel=self._channel, preset="session-start").text, "")

    def prefetch(self, query: str, *, session_id: str = "", **kwargs: Any) -> str:
        """What is recalled for a message, as a marked block; "" in the modes that give none."""

        def recall(memory: pipimem.Memory) -> str:
            mode = memory.workspace.config["recall.mode"]
            if mode == "policy":
                return ""
            found = memory.recall(str(query or ""), self._channel, session=session_id or self._session)
            return "" if mode == "observe" else found.text  # decided and traced, not given

        return self._with(recall, "")

    def sync_turn(self, user_content: str, assistant_content: str, *, session_id: str = "", **kwargs: Any) -> None:
        """Records a finished turn, durably, and returns at once."""
        rows = [{"role": "user", "content": user_content}, {"role": "assistant", "content": assistant_content}]
        if self._channel:
            self._with(lambda memory: memory.turn(self._channel, rows), None)

    def on_pre_compress(self, messages: list[dict[str, Any]], **kwargs: Any) -> str:
        """Has memory worked up; gives the state of work, which the summary must not lose."""
        self._queue("compact")
        return self._with(lambda memory: memory.context(channel=self._channel, preset="subagent").text, "")

    def on_session_end(self, messages: list[dict[str, Any]], **kwargs: Any) -> None:
        """Has memory worked up."""
        self._queue("session-end")

    def on_memory_write(self, action: str, target: str, content: str, **kwargs: Any) -> None:
        """Hermes' own memory stays its own; what was said is among the turns."""

    def backup_paths(self) -> list[str]:
        """The workspace: everything pipimem keeps for good."""
        root = self._with(lambda memory: memory.workspace.root, "")
        return [root] if root else []

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """None: the tools are the MCP server's (`pipimem mcp`)."""
        return []

    def shutdown(self) -> None:
        """Nothing is kept open between calls."""

    def _queue(self, event: str) -> None:
        from pipimem.hooks import spawn
        from pipimem.queued import Queue

        def leave(memory: pipimem.Memory) -> None:
            Queue(memory.workspace).append(event, self._channel or "", "", memory.now().isoformat())
            spawn(memory.workspace)

        if self._channel:
            self._with(leave, None)

    def _with(self, act: Any, otherwise: Any) -> Any:
        try:
            with pipimem.open(os.environ.get("PIPIMEM_WORKSPACE")) as memory:
                found = act(memory)
                return scrub(found) if isinstance(found, str) else found  # an odd byte of a file is no JSON
        except Exception:  # noqa: BLE001 - whatever it is, the agent goes on without memory
            return otherwise


def register(ctx: Any) -> None:
    """Called by Hermes when the plug-in is loaded."""
    ctx.register_memory_provider(PipimemProvider())

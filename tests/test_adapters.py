"""The adapters of docs/adapters.md, run as they stand there, and the Hermes plug-in as Hermes calls it."""

from __future__ import annotations

import asyncio
import importlib.util
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pipimem
from pipimem.memory import Memory
from tests.conftest import write
from tests.test_maintaining import NO_GIT, facts
from tests.test_watch import eventually

ROOT = Path(__file__).parents[1]
CHANNEL = "dm:顾念"


def block(section: str) -> dict[str, Any]:
    """What the Python block of a section of docs/adapters.md defines."""
    text = (ROOT / "docs/adapters.md").read_text("utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert found
    names: dict[str, Any] = {}
    exec(compile(found[1], f"docs/adapters.md, {section}", "exec"), names)
    return names


@pytest.fixture
def memory(make: Callable[..., Memory]) -> Memory:
    memory = make({"pipimem.toml": f'{NO_GIT}[recall]\nmode = "auto"\n'})
    memory.add_channel(CHANNEL, kind="direct")
    memory.add("部署窗口是周四晚上八点", CHANNEL, kind="decision")
    return memory


def test_the_sdks_memory_tool_over_a_channel(memory: Memory) -> None:
    anthropic_tools = pytest.importorskip("anthropic.lib.tools")
    tool = block("Anthropic's memory tool")["PipimemMemory"](memory, CHANNEL)
    assert tool.to_dict() == {"type": "memory_20250818", "name": "memory"}
    assert "created" in tool.call({"command": "create", "path": "/memories/窑.md", "file_text": "1,240 度\n"})
    assert "1,240 度" in tool.call({"command": "view", "path": "/memories/窑.md"})
    assert "部署窗口" in tool.call({"command": "view", "path": "/memories/MEMORY.md"})
    with pytest.raises(anthropic_tools.ToolError, match="kept by pipimem"):
        tool.call({"command": "delete", "path": "/memories/MEMORY.md"})
    tool.call({"command": "rename", "old_path": "/memories/窑.md", "new_path": "/memories/kiln.md"})
    tool.call({"command": "insert", "path": "/memories/kiln.md", "insert_line": 1, "insert_text": "二号窑"})
    tool.call({"command": "str_replace", "path": "/memories/kiln.md", "old_str": "1,240", "new_str": "1,245"})
    assert memory.search("二号窑", CHANNEL)[0].path.endswith("memory/kiln.md")


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """The event loop of this thread: pydantic-ai makes one where there is none, and leaves it open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield loop
    asyncio.set_event_loop(None)
    loop.close()


@pytest.mark.usefixtures("loop")
def test_a_pydantic_ai_agent_is_given_memory_and_its_turns_are_recorded(memory: Memory) -> None:
    pytest.importorskip("pydantic_ai")
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    seen: list[str] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(str(info.instructions or messages))
        return ModelResponse(parts=[TextPart("周四晚上八点")])

    ask = block("pydantic-ai")["with_memory"](FunctionModel(answer), memory.workspace.root, CHANNEL)
    assert ask("上次定的部署窗口是什么时候？") == "周四晚上八点"
    assert "部署窗口是周四晚上八点" in seen[0]
    assert [m.text for m in memory.recorded(CHANNEL).transcript.messages] == [
        "上次定的部署窗口是什么时候？",
        "周四晚上八点",
    ]


def test_langgraph_nodes_recall_before_and_record_after(memory: Memory) -> None:
    names = block("LangGraph")
    state: dict[str, Any] = {"messages": [{"role": "user", "content": "上次定的部署窗口是什么时候？"}], "session": "s"}
    state |= names["recall_node"](memory.workspace.root, CHANNEL)(state)
    assert "部署窗口是周四晚上八点" in state["recalled"]
    state["messages"].append({"role": "assistant", "content": state["recalled"] + "周四"})
    state |= names["record_node"](memory.workspace.root, CHANNEL)(state)
    assert [m.text for m in memory.recorded(CHANNEL).transcript.messages][1] == "周四"


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch, memory: Memory) -> Any:
    spec = importlib.util.spec_from_file_location("hermes_pipimem", ROOT / "templates/hosts/hermes/__init__.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kept: list[Any] = []
    module.register(type("Ctx", (), {"register_memory_provider": staticmethod(kept.append)}))
    monkeypatch.setenv("PIPIMEM_WORKSPACE", memory.workspace.root)
    monkeypatch.setenv("PIPIMEM_CHANNEL", CHANNEL)
    kept[0].initialize("s-1", platform="telegram")
    return kept[0]


def test_the_hermes_provider_recalls_records_and_has_memory_worked_up(provider: Any, memory: Memory) -> None:
    assert (provider.name, provider.is_available()) == ("pipimem", True)
    assert provider.backup_paths() == [memory.workspace.root]
    assert "部署窗口是周四晚上八点" in provider.system_prompt_block()
    assert "部署窗口是周四晚上八点" in provider.prefetch("上次定的部署窗口是什么时候？")
    assert provider.prefetch("上次定的部署窗口是什么时候？") == ""
    provider.sync_turn("记住：日志保留九十天", "好", session_id="s-1")
    assert isinstance(provider.on_pre_compress([]), str)
    provider.on_session_end([])
    eventually(lambda: memory.queue()["waiting"] == 0)
    assert "日志保留九十天" in facts(memory, CHANNEL)


def test_the_hermes_provider_never_raises_without_a_workspace(
    provider: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIPIMEM_WORKSPACE", str(tmp_path / "none"))
    assert not provider.is_available()
    assert (provider.system_prompt_block(), provider.prefetch("上次?"), provider.backup_paths()) == ("", "", [])
    provider.sync_turn("a", "b")
    provider.on_session_end([])
    assert provider.get_tool_schemas() == []
    write(tmp_path, {"none/pipimem.toml": "[broken\n"})
    assert provider.on_pre_compress([]) == ""


def test_the_hermes_provider_may_be_asked_before_it_is_told_anything(provider: Any, memory: Memory) -> None:
    fresh = type(provider)()
    assert fresh.prefetch(None) == ""
    assert isinstance(fresh.prefetch("上次定的部署窗口是什么时候？"), str)
    assert isinstance(fresh.system_prompt_block(), str)
    fresh.sync_turn("a", "b")
    fresh.on_session_end([])


def test_in_observe_the_hermes_provider_decides_and_traces_and_gives_nothing(provider: Any, memory: Memory) -> None:
    Path(memory.workspace.root, "pipimem.toml").write_text(f'{NO_GIT}[recall]\nmode = "observe"\n')
    assert not Path(memory.traces).exists()
    assert provider.prefetch("上次定的部署窗口是什么时候？") == ""
    assert Path(memory.traces).exists()


def test_the_hermes_plug_in_has_the_version_of_the_package() -> None:
    assert f"version: {pipimem.__version__}\n" in (ROOT / "templates/hosts/hermes/plugin.yaml").read_text()

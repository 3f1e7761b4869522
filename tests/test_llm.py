"""Models: how a name finds its provider, when asking again helps, the ladder, and the wire with the real client on loopback."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest

from pipimem import llm
from pipimem.errors import Unreadable, Usage
from pipimem.llm import Failed, Message, Reply, Request, Settings
from pipimem.llm.ladder import Answer, climb
from pipimem.llm.replies import BadReply, read
from pipimem.llm.retry import Clock
from pipimem.llm.retry import ask as ask_again
from pipimem.llm.scripted import Scripted
from tests.test_replies import CHINESE, ENGLISH, GOOD, HOSTILE, KEPT, RECORDED, SCHEMA, validate

REQUEST = Request((Message("system", "你管理记忆。"), Message("user", "周五开窑")), SCHEMA, "ops", 300, 5.0)
A_KEY = "sk-" + "test-" + "Zb4" * 14


class Frozen:
    """A clock that only moves when somebody waits; `waits` is what was waited for."""

    def __init__(self) -> None:
        self.at = 100.0
        self.waits: list[float] = []

    def wait(self, seconds: float, cancelled: Callable[[], bool]) -> None:
        self.waits.append(round(seconds, 3))
        self.at += seconds

    @property
    def clock(self) -> Clock:
        return Clock(now=lambda: self.at, wait=self.wait, chance=lambda: 0.5)


def scripted(*script: Any, name: str = "m", frozen: Frozen | None = None) -> Scripted:
    return Scripted(script, name, (frozen or Frozen()).clock)


def climbed(*models: Scripted, request: Request = REQUEST, limit: float | None = None) -> Answer:
    return climb(models, request, validate, limit=limit, clock=Frozen().clock)


# --- names and settings


def test_a_name_finds_its_provider_without_library_or_key() -> None:
    settings = Settings(environ={})
    for name in ("openai:gpt-5-mini", "anthropic:claude-haiku-4-5", "gemini:gemini-2.5-flash", "ollama:qwen3:8b"):
        assert llm.provider(name, settings).name == name


@pytest.mark.parametrize("name", ["", "gpt-5", ":x", "openai:", "openai: ", "没有"])
def test_a_name_that_is_none_is_a_usage_error(name: str) -> None:
    with pytest.raises(Usage, match="is no name of a model"):
        llm.provider(name)


def test_an_unknown_service_names_the_nearest_one() -> None:
    with pytest.raises(Usage, match="Did you mean 'ollama:'"):
        llm.provider("olama:qwen3")


def test_a_script_is_opened_only_where_a_person_named_it(tmp_path: Path) -> None:
    path = tmp_path / "脚本.json"
    path.write_text(json.dumps([GOOD, {"reply": {"ops": []}, "tokens": [3, 4]}], ensure_ascii=False), "utf-8")
    with pytest.raises(Usage, match="cannot be named in settings"):
        llm.provider(f"scripted:{path}")
    model = llm.provider(f"scripted:{path}", Settings(scripted=True))
    assert model.ask(REQUEST).text == GOOD
    second = model.ask(REQUEST)
    assert (json.loads(second.text), second.tokens_in, second.tokens_out) == ({"ops": []}, 3, 4)
    with pytest.raises(Failed, match="has no reply number 3"):
        model.ask(REQUEST)


@pytest.mark.parametrize(
    ("text", "why"), [("{}", "no list"), ("[1]", "no list"), ("[", "not JSON"), (None, "cannot be read")]
)
def test_a_script_that_is_none_is_unreadable(tmp_path: Path, text: str | None, why: str) -> None:
    path = tmp_path / "s.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(Unreadable, match=why):
        llm.provider(f"scripted:{path}", Settings(scripted=True))


@pytest.mark.parametrize(
    "url", ["ftp://h/v1", "h:11434", "http://", "http://user:word@h/v1", "http://h/v1?x=1", "http://h /"]
)
def test_an_address_that_is_none_is_a_usage_error(url: str) -> None:
    with pytest.raises(Usage, match="no usable address") as raised:
        llm.provider("ollama:qwen3", Settings({"ollama": url}))
    assert "word" not in str(raised.value)


def test_a_compatible_server_needs_an_address_of_the_users_own() -> None:
    with pytest.raises(Usage, match="PIPIMEM_LLM_URL"):
        llm.provider("compatible:qwen3", Settings(environ={}))


def test_a_server_of_the_users_config_is_named_before_the_slash() -> None:
    settings = Settings(
        {"my-box": "http://127.0.0.1:9/v1"}, {"MY_BOX_API_KEY": "k", "PIPIMEM_LLM_URL": "http://127.0.0.1:8/v1"}
    )
    named = cast(Any, llm.provider("compatible:my-box/qwen/qwen3", settings))
    assert (named.service.url, named.service.model) == ("http://127.0.0.1:9/v1", "qwen/qwen3")
    assert named.service.key(settings, "x") == "k"
    other = cast(Any, llm.provider("compatible:qwen/qwen3", settings))
    assert (other.service.url, other.service.model) == ("http://127.0.0.1:8/v1", "qwen/qwen3")


def test_a_missing_key_is_said_with_its_variable_before_anything_is_sent() -> None:
    with pytest.raises(Failed, match="Set OPENAI_API_KEY in the environment") as raised:
        llm.provider("openai:gpt-5-mini", Settings({"openai": "http://127.0.0.1:9/v1"}, {})).ask(REQUEST)
    assert (raised.value.kind, raised.value.code) == ("key", 5)


def test_a_missing_library_is_said_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n.split(".")[0] == "pydantic_ai"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    with pytest.raises(Failed, match=r"pip install 'pipimem\[llm\]'") as raised:
        llm.provider("ollama:qwen3", Settings(environ={})).ask(REQUEST)
    assert raised.value.kind == "library"


def test_another_package_adds_a_provider_and_cannot_take_our_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "parrot_pkg.py").write_text(
        "from pipimem.llm import Reply\n\nclass Parrot:\n    def __init__(self, model): self.name = 'parrot:' + model\n"
        "    def ask(self, request): return Reply(request.messages[-1].text)\n\n"
        "def opened(model, settings): return Parrot(model)\n"
    )
    info = tmp_path / "parrot-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: parrot\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[pipimem.llm]\nparrot = parrot_pkg:opened\nopenai = parrot_pkg:opened\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    parrot = llm.provider("parrot:灰")
    assert parrot.name == "parrot:灰"
    assert parrot.ask(REQUEST).text == "周五开窑"
    assert type(llm.provider("openai:x")).__name__ == "Wire"


def test_keys_are_not_in_the_words_of_settings_or_requests() -> None:
    assert A_KEY not in repr(Settings({"a": "http://h/v1"}, {"OPENAI_API_KEY": A_KEY}))


def test_importing_the_models_loads_no_library() -> None:
    code = "import sys; import pipimem.llm, pipimem.llm.ladder, pipimem.llm.services; print(' '.join(sys.modules))"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    heavy = "pydantic pydantic_ai openai anthropic google httpx httpx2 asyncio ssl importlib.metadata logging anyio"
    assert loaded & set(heavy.split()) == set()


def test_search_and_recall_know_nothing_of_models() -> None:
    code = "import sys; import pipimem.memory, pipimem.recall, pipimem.index.search; print(' '.join(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not [name for name in out.split() if name.startswith("pipimem.llm")]


# --- asking again


def test_a_server_that_stumbles_twice_is_asked_a_third_time() -> None:
    frozen = Frozen()
    model = scripted({"fail": "500"}, {"fail": "reset"}, GOOD)
    assert ask_again(model, REQUEST, frozen.clock).text == GOOD
    assert frozen.waits == [0.5, 1.0]
    assert [round(r.timeout, 1) for r in model.requests] == [5.0, 4.5, 3.5]


def test_ten_failures_end_after_three_attempts() -> None:
    frozen = Frozen()
    model = scripted(*[{"fail": "500"}] * 10)
    with pytest.raises(Failed) as raised:
        ask_again(model, REQUEST, frozen.clock)
    assert (raised.value.kind, len(model.requests)) == ("server", 3)


def test_the_wait_a_service_asks_for_is_kept() -> None:
    frozen = Frozen()
    model = scripted({"fail": "429", "wait": 2}, GOOD)
    assert ask_again(model, REQUEST, frozen.clock).text == GOOD
    assert frozen.waits == [2.1]


@pytest.mark.parametrize(("wait", "timeout"), [(3600, 30.0), (21, 30.0), (6, 5.0)])
def test_a_wait_that_is_too_long_is_not_begun(wait: float, timeout: float) -> None:
    frozen = Frozen()
    model = scripted({"fail": "429", "wait": wait}, GOOD)
    with pytest.raises(Failed) as raised:
        ask_again(model, Request(REQUEST.messages, SCHEMA, timeout=timeout), frozen.clock)
    assert (raised.value.kind, raised.value.wait, frozen.waits) == ("rate-limited", wait, [])


@pytest.mark.parametrize("how", ["timeout", "key", "quota", "rejected", "too-big", "refused", "unknown-model"])
def test_what_waiting_does_not_help_is_not_asked_again(how: str) -> None:
    model = scripted({"fail": how}, GOOD)
    with pytest.raises(Failed):
        ask_again(model, REQUEST, Frozen().clock)
    assert len(model.requests) == 1


def test_the_real_clock_waits_and_stops_waiting_when_called_off() -> None:
    clock = Clock()
    began = clock.now()
    clock.wait(0.06, llm.never)
    assert clock.now() - began >= 0.06
    clock.wait(60, lambda: True)
    assert clock.now() - began < 30
    assert 0 <= clock.chance() < 1


# --- the ladder


def outcome(name: str) -> str:
    """What the ladder must call the first try of a row of the table of hostile replies."""
    wanted = HOSTILE[name][1]
    if not isinstance(wanted, str):
        return "accepted"
    if wanted.startswith("nothing"):
        return "nothing"
    try:
        read(HOSTILE[name][0])
    except BadReply:
        return "unreadable"
    return "invalid"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_reply_is_accepted_or_falls_to_the_next_model(name: str) -> None:
    text, wanted = HOSTILE[name]
    line = {"reply": text, "tokens": [1, 1]}
    first, second = scripted(line, line, name="a"), scripted(GOOD, name="b")
    answer = climbed(first, second)
    fell = outcome(name) in ("unreadable", "invalid")
    assert [t.outcome for t in answer.tries] == ([outcome(name)] * 2 + ["accepted"] if fell else [outcome(name)])
    assert answer.value == (KEPT if fell else wanted if isinstance(wanted, list) else None)
    assert (answer.model, answer.turn) == ("b" if fell else "a", "first")
    assert answer.usable
    assert all(text[:40] not in each.detail for each in answer.tries if len(text) > 40)


@pytest.mark.parametrize("finish", ["length", "stop"])
@pytest.mark.parametrize("whole", [ENGLISH, CHINESE])
def test_a_reply_cut_at_every_tenth_character_is_refused_whole(whole: str, finish: str) -> None:
    for cut in range(10, len(whole), 10):
        line = {"reply": whole, "cut": cut, "finish": finish}
        answer = climbed(scripted(line, line, name="a"), scripted(GOOD, name="b"))
        assert answer.value == KEPT
        assert answer.model == "b"
        assert [t.outcome for t in answer.tries[:-1]] == (["length"] if finish == "length" else ["unreadable"] * 2)


@pytest.mark.parametrize(
    ("finish", "said"), [("length", "length"), ("refused", "refused"), ("other", "other"), ("tool_call", "other"), ("", "other")]
)  # fmt: skip
def test_a_whole_reply_with_another_finish_than_stop_is_refused_without_a_repair_turn(finish: str, said: str) -> None:
    model = scripted({"reply": GOOD, "finish": finish}, GOOD)
    answer = climbed(model)
    assert (answer.value, answer.usable, len(model.requests)) == (None, False, 1)
    assert [t.outcome for t in answer.tries] == [said]


@pytest.mark.parametrize("number", range(len(RECORDED)))
def test_a_recorded_reply_counts_only_when_it_ended_by_itself(number: int) -> None:
    row = RECORDED[number]
    line = {"reply": row["content"], "finish": row["finish"], "tokens": [row["in"], row["out"]]}
    answer = climb([scripted(line, name=row["model"])], REQUEST, lambda value: (value, []), clock=Frozen().clock)
    assert [t.outcome for t in answer.tries] == ["accepted" if row["finish"] == "stop" else "length"]
    assert answer.tokens == row["in"] + row["out"]


@pytest.mark.parametrize(
    ("how", "said"),
    [("timeout", "timeout"), ("reset", "reset"), ("429", "rate-limited"), ("500", "server"), ("503", "server"), ("key", "key")],
)  # fmt: skip
def test_a_model_that_gives_no_reply_is_named_and_the_next_one_is_asked(how: str, said: str) -> None:
    answer = climbed(scripted(*[{"fail": how}] * 3, name="甲"), scripted(GOOD, name="乙"))
    assert (answer.value, answer.model) == (KEPT, "乙")
    assert [t.outcome for t in answer.tries] == [said, "accepted"]
    assert answer.failures[0].startswith("甲 (first): The model '甲'")


def test_when_every_model_fails_every_failure_is_named() -> None:
    bad = '{"ops": [{"op": "explode", "content": "x"}]}'
    answer = climbed(
        scripted({"fail": "timeout"}, name="a"),
        scripted(bad, "sorry", name="b"),
        scripted({"reply": GOOD, "cut": 9}, name="c"),
    )
    assert (answer.value, answer.nothing, answer.usable) == (None, "", False)
    assert answer.failures == (
        "a (first): The model 'a' took too long. Try again later.",
        "b (first): ops[0].op: not one of add, supersede, open-loop",
        "b (repair): it is talk without a JSON object",
        "c (first): cut off at the token limit",
    )


def test_the_repair_turn_quotes_the_errors_and_can_mend_them() -> None:
    bad = '{"ops": [{"op": "explode", "content": "改期"}, {"op": "add"}]}'
    model = scripted(bad, GOOD)
    answer = climbed(model)
    assert (answer.value, answer.turn) == (KEPT, "repair")
    head, user, said, wanted = model.requests[1].messages
    assert (head, user) == REQUEST.messages
    assert said == Message("assistant", bad)
    assert wanted.role == "user"
    assert "- ops[0].op: not one of add, supersede, open-loop\n- ops[1]: 'content' is missing" in wanted.text


def test_good_operations_survive_their_bad_neighbours_without_another_turn() -> None:
    model = scripted('{"ops": [{"op": "explode", "content": "x"}, {"op": "add", "content": "留下"}]}')
    answer = climbed(model)
    assert (answer.value, answer.errors, len(model.requests)) == (
        ["留下"],
        ("ops[0].op: not one of add, supersede, open-loop",),
        1,
    )


@pytest.mark.parametrize("said", ["", " \n", "null", '""', "<think>好像没有</think>"])
def test_no_text_is_no_answer_and_the_next_model_is_asked(said: str) -> None:
    answer = climbed(scripted(said, said, name="a"), scripted(GOOD, name="b"))
    assert (answer.model, [t.outcome for t in answer.tries]) == ("b", ["unreadable", "unreadable", "accepted"])
    assert not climbed(scripted(said, said)).usable


def test_nothing_to_do_is_an_answer_that_says_how() -> None:
    answer = climbed(scripted("```json\n[]\n```", name="a"), scripted(GOOD, name="b"))
    assert (answer.value, answer.nothing, answer.usable, answer.model) == (
        None,
        "the reply is an empty list",
        True,
        "a",
    )
    assert answer.failures == ()


def test_no_model_is_asked_once_it_is_called_off() -> None:
    asked: list[str] = []
    request = Request(REQUEST.messages, SCHEMA, cancelled=lambda: bool(asked))

    class Deaf:
        name = "a"

        def ask(self, request: Request) -> Reply:
            asked.append("a")
            return Reply("sorry")

    answer = climb([Deaf(), scripted(GOOD, name="b")], request, validate, clock=Frozen().clock)
    assert [(t.model, t.turn, t.outcome) for t in answer.tries] == [
        ("a", "first", "unreadable"),
        ("a", "repair", "not-tried"),
        ("b", "first", "not-tried"),
    ]
    assert not answer.usable
    asked.clear()
    heard = scripted({"reply": GOOD, "sleep": 1}, name="c")
    called = Request(REQUEST.messages, SCHEMA, cancelled=lambda: bool(heard.requests))
    assert [t.outcome for t in climbed(heard, request=called).tries] == ["cancelled"]


def test_the_whole_climb_ends_at_its_limit() -> None:
    frozen = Frozen()
    slow = scripted({"reply": GOOD, "sleep": 60}, name="慢", frozen=frozen)
    answer = climb([slow, scripted(GOOD, name="快")], REQUEST, validate, limit=3, clock=frozen.clock)
    assert frozen.at == 103
    assert [(t.model, t.outcome) for t in answer.tries] == [("慢", "timeout"), ("快", "not-tried")]
    assert answer.failures[1] == "快 (first): no time was left"


def test_a_sleeping_script_ends_at_the_time_limit_and_one_that_is_quick_enough_does_not() -> None:
    frozen = Frozen()
    model = scripted({"reply": GOOD, "sleep": 9}, {"reply": GOOD, "sleep": 4}, frozen=frozen)
    with pytest.raises(Failed) as raised:
        model.ask(REQUEST)
    assert (raised.value.kind, frozen.at) == ("timeout", 105)
    assert model.ask(REQUEST).text == GOOD


def test_a_provider_with_a_defect_does_not_stop_the_next_one() -> None:
    class Broken:
        name = "broken"

        def ask(self, request: Request) -> Reply:
            raise KeyError(A_KEY)

    answer = climb([Broken(), scripted(GOOD, name="b")], REQUEST, validate, clock=Frozen().clock)
    assert answer.value == KEPT
    assert answer.failures == ("broken (first): The provider of 'broken' failed: KeyError.",)


@pytest.mark.parametrize("given", [None, "text", Reply(cast(Any, None)), Reply(cast(Any, b"{}"))])
def test_a_provider_that_gives_no_reply_is_named(given: Any) -> None:
    class Odd:
        name = "odd"

        def ask(self, request: Request) -> Reply:
            return cast(Reply, given)

    answer = climb([Odd()], REQUEST, validate, clock=Frozen().clock)
    assert answer.failures == ("odd (first): The provider of 'odd' gave no reply.",)


def test_no_models_is_no_answer() -> None:
    assert climb([], REQUEST, validate) == Answer()


# --- the wire: the real client against a server on loopback


class Served:
    """A service on loopback: gives `answers` in order (the last one for ever) and keeps what it was sent."""

    def __init__(self) -> None:
        self.answers: list[Callable[[BaseHTTPRequestHandler], None]] = []
        self.seen: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.asked = threading.Event()
        self.over = threading.Event()
        served = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                served.seen.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                served.headers.append({k.lower(): v for k, v in self.headers.items()})
                served.paths.append(self.path)
                served.asked.set()
                try:
                    served.answers[min(len(served.seen), len(served.answers)) - 1](self)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/v1"

    def forms(self) -> list[str]:
        return [body.get("response_format", {}).get("type", "plain") for body in self.seen]

    def close(self) -> None:
        self.over.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    for library in ("pydantic_ai", "pydantic_ai.models.openai"):
        pytest.importorskip(library, reason="the llm extra is not installed: no request was made")
    for name in [
        n for n in os.environ if n.lower().endswith("_proxy") or n.startswith(("OPENAI_", "ANTHROPIC_", "GOOGLE_"))
    ]:
        monkeypatch.delenv(name)
    served = Served()
    yield served
    served.close()


def send(status: int, body: Any, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    """An answer with this status, JSON body (or bytes) and headers."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def chat(text: Any, finish: str | None = "stop", **message: Any) -> Callable[[BaseHTTPRequestHandler], None]:
    """A completion as OpenAI's protocol has it."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **message}}
    usage = {"prompt_tokens": 41, "completion_tokens": 17, "total_tokens": 58}
    return send(
        200,
        {
            "id": "c-1",
            "object": "chat.completion",
            "created": 1,
            "model": "tiny-1",
            "choices": [choice],
            "usage": usage,
        },
    )


def refusal(status: int, message: str = "no", **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    return send(status, {"error": {"message": message, "type": "invalid_request_error", "code": None}}, **headers)


def reset(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def wired(served: Served, *, key: str = "") -> llm.Provider:
    return llm.provider("compatible:tiny", Settings({"compatible": served.url}, {"PIPIMEM_LLM_KEY": key}))


def failure(served: Served, request: Request = REQUEST, *, key: str = "") -> Failed:
    with pytest.raises(Failed) as raised:
        wired(served, key=key).ask(request)
    return raised.value


def test_the_wire_sends_schema_messages_and_limits_and_gives_reply_usage_and_form(service: Served) -> None:
    service.answers = [chat(GOOD)]
    reply = wired(service, key=A_KEY).ask(REQUEST)
    assert reply == Reply(GOOD, "stop", 41, 17, "tiny-1", "json_schema")
    (body,) = service.seen
    assert service.paths == ["/v1/chat/completions"]
    assert body["messages"] == [{"role": "system", "content": "你管理记忆。"}, {"role": "user", "content": "周五开窑"}]
    assert (body["model"], body["max_tokens"], body["temperature"], body["stream"]) == ("tiny", 300, 0.0, False)
    form = body["response_format"]
    assert (form["type"], form["json_schema"]["name"]) == ("json_schema", "ops")
    sent = form["json_schema"]["schema"]
    assert sent["properties"]["ops"]["maxItems"] == 5
    assert sent["$defs"]["Op"]["properties"]["content"]["maxLength"] == 120
    assert service.headers[0]["authorization"] == f"Bearer {A_KEY}"
    assert service.headers[0]["accept-encoding"] == "identity"


def test_a_conversation_with_a_repair_turn_keeps_its_roles(service: Served) -> None:
    service.answers = [chat("抱歉"), chat(GOOD)]
    answer = climb([wired(service)], REQUEST, validate, clock=Frozen().clock)
    assert (answer.value, answer.turn, answer.tokens) == (KEPT, "repair", 116)
    assert [m["role"] for m in service.seen[1]["messages"]] == ["system", "user", "assistant", "user"]


def test_odd_bytes_of_a_transcript_do_not_stop_a_request(service: Served) -> None:
    service.answers = [chat(GOOD)]
    wired(service).ask(Request((Message("user", "坏字节 \udcff 在此 \x00"),), SCHEMA))
    assert service.seen[0]["messages"][0]["content"] == "坏字节 \ufffd 在此 \x00"


@pytest.mark.parametrize("status", [400, 422, 500])
def test_a_server_that_refuses_a_form_is_asked_in_the_next_one_and_that_is_remembered(
    service: Served, status: int
) -> None:
    no = refusal(status, "response_format: Input should be 'text' or 'json_object'")
    service.answers = [no, chat(GOOD), chat(GOOD)]
    assert wired(service).ask(REQUEST).mode == "json_object"
    assert wired(service).ask(REQUEST).mode == "json_object"
    assert service.forms() == ["json_schema", "json_object", "json_object"]
    assert '"maxLength":120' in service.seen[1]["messages"][0]["content"]
    assert "maxLength" not in service.seen[0]["messages"][0]["content"]


def test_a_server_that_knows_no_form_is_asked_in_plain_words(service: Served) -> None:
    service.answers = [refusal(400), refusal(400), chat(f"```json\n{GOOD}\n```"), chat(GOOD)]
    answer = climb([wired(service)], Request((Message("user", "周五开窑"),), SCHEMA), validate)
    assert (answer.value, answer.tries[0].mode) == (KEPT, "plain")
    assert service.forms() == ["json_schema", "json_object", "plain"]
    assert service.seen[2]["messages"][0]["role"] == "system"
    wired(service).ask(REQUEST)
    assert service.forms()[3] == "plain"


def test_a_server_error_that_says_nothing_of_forms_is_not_remembered(service: Served) -> None:
    service.answers = [refusal(500, "oops"), chat(GOOD)]
    assert wired(service).ask(REQUEST).mode == "json_object"
    assert wired(service).ask(REQUEST).mode == "json_schema"


def test_a_server_that_refuses_every_form_fails_once_and_nothing_is_remembered(service: Served) -> None:
    service.answers = [refusal(400)]
    failed = failure(service)
    assert (failed.kind, service.forms()) == ("rejected", ["json_schema", "json_object", "plain"])
    assert "HTTP 400, invalid_request_error" in str(failed)
    service.answers = [chat(GOOD)]
    assert wired(service).ask(REQUEST).mode == "json_schema"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (refusal(401), "key"),
        (refusal(403), "key"),
        (refusal(404), "unknown-model"),
        (refusal(402), "quota"),
        (refusal(503), "server"),
        (refusal(502), "server"),
        (refusal(418), "rejected"),
        (send(429, {"error": {"message": "x", "code": "insufficient_quota"}}), "quota"),
        (send(400, {"error": {"message": "maximum context length is 8192", "code": "context_length_exceeded"}}), "too-long"),
        (send(200, b"<html><h1>502</h1></html>", Content_Type="text/html"), "no-completion"),
        (send(200, b"not json"), "no-completion"),
        (send(200, {"object": "list"}), "no-completion"),
        (send(200, {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": []}), "no-completion"),
        (send(307, b"", Location="http://127.0.0.1:9/v1"), "no-completion"),
        (reset, "reset"),
    ],
)  # fmt: skip
def test_what_a_service_does_wrong_has_a_name(service: Served, answer: Any, kind: str) -> None:
    service.answers = [answer]
    failed = failure(service)
    assert failed.kind == kind
    assert "compatible:tiny" in str(failed)
    assert len(service.seen) == 1


def test_the_client_never_asks_again_by_itself_and_the_services_wait_is_read(service: Served) -> None:
    service.answers = [refusal(429, Retry_After="7"), chat(GOOD)]
    frozen = Frozen()
    request = Request(REQUEST.messages, SCHEMA, timeout=30.0)
    assert ask_again(wired(service), request, frozen.clock).text == GOOD
    assert len(service.seen) == 2
    assert frozen.waits == [7.1]


def test_a_service_that_stumbles_is_asked_again_by_us(service: Served) -> None:
    service.answers = [refusal(503), reset, chat(GOOD)]
    answer = climb([wired(service)], REQUEST, validate, clock=Frozen().clock)
    assert (answer.value, len(service.seen), len(answer.tries)) == (KEPT, 3, 1)


def test_a_service_that_never_answers_is_left_at_the_time_limit(service: Served) -> None:
    service.answers = [lambda handler: cast(None, service.over.wait(30))]
    began = time.monotonic()
    failed = failure(service, Request(REQUEST.messages, SCHEMA, timeout=0.6))
    assert failed.kind == "timeout"
    assert time.monotonic() - began < 4
    assert not [t for t in threading.enumerate() if t.name == "pipimem-llm"]


def test_a_service_that_drips_is_left_at_the_time_limit(service: Served) -> None:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.end_headers()
        while not service.over.wait(0.02):
            handler.wfile.write(b" ")
            handler.wfile.flush()

    service.answers = [drip]
    assert failure(service, Request(REQUEST.messages, SCHEMA, timeout=0.6)).kind == "timeout"


def test_a_question_can_be_called_off_while_the_service_thinks(service: Served) -> None:
    service.answers = [lambda handler: cast(None, service.over.wait(30))]
    began = time.monotonic()
    failed = failure(service, Request(REQUEST.messages, SCHEMA, timeout=30.0, cancelled=service.asked.is_set))
    assert failed.kind == "cancelled"
    assert time.monotonic() - began < 10


def test_a_reply_of_five_megabytes_is_not_read_to_its_end(service: Served) -> None:
    service.answers = [chat("哈" * 1_700_000)]
    assert failure(service).kind == "too-big"
    answer = climb([wired(service), scripted(GOOD, name="b")], REQUEST, validate, clock=Frozen().clock)
    assert ([t.outcome for t in answer.tries], answer.value) == (["too-big", "accepted"], KEPT)


def test_a_packed_reply_is_not_unpacked(service: Served) -> None:
    service.answers = [send(200, b"\x1f\x8b" + bytes(100), Content_Encoding="gzip")]
    assert failure(service).kind == "too-big"


def test_a_server_nobody_runs_is_unreachable(service: Served) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        with pytest.raises(Failed, match="cannot be reached") as raised:
            llm.provider("ollama:qwen3", Settings({"ollama": url}, {})).ask(REQUEST)
    assert raised.value.kind == "unreachable"


@pytest.mark.parametrize(
    ("answer", "finish"),
    [
        (chat(GOOD, "length"), "length"),
        (chat(GOOD, "content_filter"), "refused"),
        (chat(GOOD, "guardrail_intervened"), "other"),
        (chat(GOOD, "tool_calls"), "other"),
        (chat(GOOD, "STOP"), "stop"),
        (chat(GOOD, "eos_token"), "stop"),
        (chat(GOOD, "end_turn"), "stop"),
        (chat(GOOD, "MAX_TOKENS"), "length"),
        (chat(None, "stop", refusal="I can't help with that."), "refused"),
        (chat(GOOD, None), "stop"),
        (chat(None), "stop"),
    ],
)  # fmt: skip
def test_why_a_reply_ended_comes_through(service: Served, answer: Any, finish: str) -> None:
    service.answers = [answer]
    assert wired(service).ask(REQUEST).finish == finish


def test_a_call_of_a_tool_nobody_offered_is_no_reply(service: Served) -> None:
    call = {"id": "t-1", "type": "function", "function": {"name": "apply", "arguments": GOOD}}
    service.answers = [chat(None, "tool_calls", tool_calls=[call])]
    reply = wired(service).ask(REQUEST)
    assert (reply.text, reply.finish) == ("", "other")


def test_a_key_is_in_no_error_log_or_trace_even_when_the_service_repeats_it(
    service: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    service.answers = [refusal(401, f"Incorrect API key provided: {A_KEY}")]
    failed = failure(service, key=A_KEY)
    words = "".join(traceback.format_exception(failed)) + caplog.text + repr(failed)
    assert service.headers[0]["authorization"].endswith(A_KEY)
    assert A_KEY not in words
    assert failed.__context__ is None


def test_an_openai_account_in_the_environment_is_not_told_to_another_server(
    service: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-x")
    monkeypatch.setenv("OPENAI_API_KEY", A_KEY)
    service.answers = [chat(GOOD)]
    wired(service).ask(REQUEST)
    assert "openai-organization" not in service.headers[0]
    assert A_KEY not in json.dumps(service.headers[0])


def test_a_redirect_takes_neither_request_nor_key_elsewhere(service: Served) -> None:
    other = Served()
    try:
        other.answers = [chat(GOOD)]
        service.answers = [send(307, b"", Location=f"{other.url}/chat/completions")]
        assert failure(service, key=A_KEY).kind == "no-completion"
        assert other.seen == []
    finally:
        other.close()


def test_a_model_can_be_asked_where_an_event_loop_runs(service: Served) -> None:
    service.answers = [chat(GOOD)]

    async def inside() -> Reply:
        return wired(service).ask(REQUEST)

    assert asyncio.run(inside()).text == GOOD


def test_openai_itself_gets_its_own_name_for_the_limit_and_no_temperature_where_it_takes_none(service: Served) -> None:
    service.answers = [chat(GOOD)]
    settings = Settings({"openai": service.url}, {"OPENAI_API_KEY": A_KEY})
    assert llm.provider("openai:gpt-5-mini", settings).ask(REQUEST).text == GOOD
    assert service.seen[0]["max_completion_tokens"] == 300
    assert service.seen[0]["reasoning_effort"] == "minimal"
    assert "temperature" not in service.seen[0]
    llm.provider("openai:gpt-4.1-mini", settings).ask(REQUEST)
    assert service.seen[1]["temperature"] == 0.0
    assert "reasoning_effort" not in service.seen[1]


def test_anthropic_gets_the_schema_and_its_words_are_read(service: Served) -> None:
    pytest.importorskip("anthropic", reason="the llm extra is not installed: no request was made")
    said = {
        "id": "m-1", "type": "message", "role": "assistant", "model": "claude-haiku-4-5", "stop_sequence": None,
        "content": [{"type": "text", "text": GOOD}], "usage": {"input_tokens": 12, "output_tokens": 9},
    }  # fmt: skip
    service.answers = [send(200, {**said, "stop_reason": "end_turn"}), send(200, {**said, "stop_reason": "max_tokens"}),
                       send(200, {**said, "stop_reason": "refusal"}), send(200, {**said, "stop_reason": "pause_turn"}),
                       send(529, {"type": "error", "error": {"type": "overloaded_error", "message": A_KEY}})]  # fmt: skip
    model = llm.provider(
        "anthropic:claude-haiku-4-5", Settings({"anthropic": service.url[:-3]}, {"ANTHROPIC_API_KEY": A_KEY})
    )
    assert model.ask(REQUEST) == Reply(GOOD, "stop", 12, 9, "claude-haiku-4-5", "json_schema")
    assert service.paths[0].partition("?")[0] == "/v1/messages"
    assert "maxLength: 120" in json.dumps(service.seen[0]["output_config"]["format"]["schema"])
    assert A_KEY in json.dumps(service.headers[0])
    assert [model.ask(REQUEST).finish for _ in range(3)] == ["length", "refused", "other"]
    with pytest.raises(Failed) as raised:
        model.ask(REQUEST)
    assert (raised.value.kind, len(service.seen)) == ("server", 5)


def test_gemini_gets_the_schema_and_its_words_are_read(service: Served) -> None:
    pytest.importorskip("google.genai", reason="the llm extra is not installed: no request was made")
    said = {"content": {"role": "model", "parts": [{"text": GOOD}]}, "index": 0}
    usage = {"promptTokenCount": 12, "candidatesTokenCount": 9, "totalTokenCount": 21}
    whole = {"modelVersion": "gemini-2.5-flash", "usageMetadata": usage}
    service.answers = [send(200, {**whole, "candidates": [{**said, "finishReason": "STOP"}]}),
                       send(200, {**whole, "candidates": [{**said, "finishReason": "SAFETY"}]}),
                       send(503, {"error": {"code": 503, "message": A_KEY, "status": "UNAVAILABLE"}})]  # fmt: skip
    model = llm.provider("gemini:gemini-2.5-flash", Settings({"gemini": service.url[:-3]}, {"GOOGLE_API_KEY": A_KEY}))
    reply = model.ask(REQUEST)
    assert (reply.text, reply.finish, reply.tokens_in, reply.tokens_out, reply.mode) == (
        GOOD,
        "stop",
        12,
        9,
        "json_schema",
    )
    config = service.seen[0]["generationConfig"]
    assert (config["responseMimeType"], config["maxOutputTokens"]) == ("application/json", 300)
    assert list(config["thinkingConfig"].values()) == [0]
    assert service.headers[0]["x-goog-api-key"] == A_KEY
    assert A_KEY not in service.paths[0]
    assert model.ask(REQUEST).finish == "refused"
    with pytest.raises(Failed) as raised:
        model.ask(REQUEST)
    assert (raised.value.kind, len(service.seen)) == ("server", 3)
    assert A_KEY not in str(raised.value)

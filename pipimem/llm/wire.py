"""One request over the network, through pydantic-ai's direct API: bounded in time and size, never tried again here.

Steps down json_schema → json_object → plain where a server refuses a form, and remembers that per address for the
process. What a service says about an error stays here: bodies may repeat what was sent, even a key.
"""

from __future__ import annotations

import importlib
import json
import re
import threading
import time
from typing import TYPE_CHECKING, Any

from pipimem.llm import REPLY_LIMIT, Failed, Message, Reply
from pipimem.text import scrub

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model

    from pipimem.llm import Request, Settings
    from pipimem.llm.services import Service

MODES = ("json_schema", "json_object", "plain")
REFUSES_A_FORM = (400, 422, 500)  # 500: llama-cpp-python's server, for a response_format it does not know
TICK = 0.05
GRACE = 2.0
"""Seconds a stopped request has to close its connection before its thread is left to itself."""
_FIRST: dict[str, str] = {}
"""Base URL → the first form that its server takes; absent: json_schema."""
FINISHES = {
    "stop": "stop", "eos": "stop", "eos_token": "stop", "end_turn": "stop", "stop_sequence": "stop",
    "length": "length", "max_tokens": "length", "content_filter": "refused",
}  # fmt: skip
"""How a reply ended: the library's words, and those of servers that speak OpenAI's protocol with words of their own."""
LIBRARIES = {
    "openai": ("pydantic_ai.models.openai",),
    "compatible": ("pydantic_ai.models.openai", "pydantic_ai.providers.openai_compatible"),
    "anthropic": ("pydantic_ai.models.anthropic",),
    "gemini": ("pydantic_ai.models.google",),
}
INSTALL = "Run: pip install 'pipimem[llm]'"
SAID = {
    "timeout": ("did not answer in time", "Allow more time, or name a faster model."),
    "reset": ("broke the connection", "Try again later."),
    "unreachable": ("cannot be reached", "Check that the server runs and that its address is right."),
    "rate-limited": ("asked to come back later", "Try again later."),
    "server": ("stumbled", "Try again later."),
    "too-big": ("sent more than a reply may hold", "Name another model."),
    "quota": ("has no quota left", "Check the account."),
    "key": ("does not take the key", "Check the key in the environment."),
    "unknown-model": ("is not known to the service", "Check the model's name and the server's address."),
    "too-long": ("cannot read a request that long", "Name a model with a larger context window."),
    "rejected": ("rejected the request", "Check the model's name, or name another model."),
    "refused": ("refused to answer", "Name another model."),
    "no-completion": ("answered with something else than a completion", "Check the server's address."),
    "cancelled": ("was called off", ""),
}


class Wire:
    """A model behind a network service."""

    def __init__(self, name: str, service: Service, settings: Settings) -> None:
        self.name = name
        self.service = service
        self.settings = settings

    def ask(self, request: Request) -> Reply:
        """The reply to one request within `request.timeout` seconds; up to three forms of it are sent.

        Works in a thread of its own, so the caller may have an event loop running. Raises `Failed`.
        """
        end = time.monotonic() + request.timeout
        key = self.service.key(self.settings, self.name)
        try:
            for module in ("pydantic_ai.direct", *LIBRARIES[self.service.kind], "pipimem.llm.bounded"):
                importlib.import_module(module)  # here: the thread's clock should not pay for it
        except ImportError:
            raise Failed("library", f"The model '{self.name}' needs a library that is missing.", INSTALL) from None
        if time.monotonic() >= end:
            raise self.failed("timeout")
        return self._in_thread(request, key, end)

    def _in_thread(self, request: Request, key: str, end: float) -> Reply:
        box: list[Reply | BaseException] = []
        stop = threading.Event()

        def run() -> None:
            import asyncio

            try:
                box.append(asyncio.run(_until(stop, self._converse(request, key, end - time.monotonic()))))
            except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
                box.append(error)

        thread = threading.Thread(target=run, name="pipimem-llm", daemon=True)
        thread.start()
        kind = "timeout"
        try:
            while thread.is_alive() and time.monotonic() < end:
                if request.cancelled():
                    kind = "cancelled"
                    break
                thread.join(TICK)
        finally:
            stop.set()
            thread.join(GRACE)
        if not box:
            raise self.failed(kind)
        result = box[0]
        if isinstance(result, Reply):
            return result
        if isinstance(result, _Stopped):
            raise self.failed(kind)
        if isinstance(result, Failed):
            raise result from None
        raise self.failed("no-completion", type(result).__name__) from None

    async def _converse(self, request: Request, key: str, seconds: float) -> Reply:
        from pipimem.llm.bounded import client

        async with client(seconds, 4 * REPLY_LIMIT, ours=self.service.kind == "openai") as http:
            return await self._step_down(_model(self.service, key, http), request, seconds)

    async def _step_down(self, model: Model, request: Request, seconds: float) -> Reply:
        """The reply in the first form that the server takes."""
        modes = _modes(model, _FIRST.get(self.service.url, MODES[0]))
        told = True
        for mode in modes:
            try:
                response = await _send(model, self.service.kind, request, mode, seconds)
            except Exception as error:  # noqa: BLE001 - every kind of failure leaves as a `Failed`
                failure = error
            else:
                if mode != modes[0] and told:
                    _FIRST[self.service.url] = mode
                return _reply(response, mode)
            if mode == modes[-1] or not _refuses_form(failure):
                break
            told = told and _about_form(failure)
        raise self._named(failure)  # outside the handler: nothing hangs on to what the service said

    def failed(self, kind: str, detail: str = "", wait: float | None = None) -> Failed:
        """A `Failed` in words; `detail` is ours or a service's short code, never its text."""
        said, hint = SAID[kind]
        return Failed(kind, f"The model '{self.name}' {said}{f' ({detail})' if detail else ''}.", hint, wait=wait)

    def _named(self, error: Exception) -> Failed:
        """A library's exception as one of our kinds."""
        from pydantic_ai import exceptions as e

        from pipimem.llm.bounded import TooBig

        if any(isinstance(cause, TooBig) for cause in _causes(error)):
            return self.failed("too-big")
        kinds: tuple[tuple[type[Exception], str], ...] = (
            (e.ModelTimeoutError, "timeout"),
            (e.ModelRequestTimeout, "timeout"),
            (e.ModelQuotaExceededError, "quota"),
            (e.ModelRateLimitError, "rate-limited"),
            (e.ModelUnavailableError, "server"),
            (e.ModelServerError, "server"),
            (e.ModelAuthenticationError, "key"),
            (e.ModelNotFoundError, "unknown-model"),
            (e.ModelContextWindowExceededError, "too-long"),
            (e.ModelRequestRejectedError, "rejected"),
            (e.ModelHTTPError, "rejected"),
            (e.ContentFilterError, "refused"),
        )
        kind = next((kind for known, kind in kinds if isinstance(error, known)), "no-completion")
        if isinstance(error, e.ModelConnectionError):
            early = error.phase == "connect"
            kind = "unreachable" if early else "timeout" if kind == "timeout" else "reset"
        detail = _detail(error) or (type(error).__name__ if kind == "no-completion" else "")
        return self.failed(kind, detail, getattr(error, "retry_after", None))


class _Stopped(Exception):
    """The caller no longer waits."""


async def _until(stop: threading.Event, work: Coroutine[Any, Any, Reply]) -> Reply:
    """The work's result; once `stop` is set it is cancelled and its connection closed."""
    import asyncio

    task = asyncio.ensure_future(work)
    while not (await asyncio.wait({task}, timeout=TICK))[0]:
        if stop.is_set():
            task.cancel()
            await asyncio.wait({task}, timeout=GRACE)
            raise _Stopped
    return task.result()


def _model(service: Service, key: str, http: Any) -> Model:
    """The library's model; its own retries are off."""
    if service.kind == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        return AnthropicModel(
            service.model, provider=AnthropicProvider(api_key=key, base_url=service.url, http_client=http)
        )
    if service.kind == "gemini":
        from google.genai.types import HttpRetryOptions
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        once = HttpRetryOptions(attempts=1)
        google = GoogleProvider(api_key=key, base_url=service.url, http_client=http, retry_options=once)
        return GoogleModel(service.model, provider=google)
    from pydantic_ai.models.openai import OpenAIChatModel

    if service.kind == "openai":
        from pydantic_ai.providers.openai import OpenAIProvider

        own = OpenAIProvider(base_url=service.url, api_key=key, http_client=http)
        return OpenAIChatModel(service.model, provider=own)
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    # Other servers know `max_tokens` best; whether they take a schema is found out by asking.
    profile = OpenAIModelProfile(
        openai_chat_supports_max_completion_tokens=False,
        openai_supports_reasoning=False,
        supports_json_schema_output=True,
        supports_json_object_output=True,
    )
    other = OpenAICompatibleProvider(
        "compatible", base_url=service.url, api_key=key or None, http_client=http, profile=profile
    )
    return OpenAIChatModel(service.model, provider=other)


def _modes(model: Model, first: str) -> list[str]:
    """The forms to try, in order: what the library knows the model to take, from `first` on."""
    profile = model.profile
    knows = {
        "json_schema": profile.get("supports_json_schema_output", False),
        "json_object": profile.get("supports_json_object_output", False),
        "plain": True,
    }
    return [mode for mode in MODES[MODES.index(first) :] if knows[mode]]


async def _send(model: Model, kind: str, request: Request, mode: str, seconds: float) -> ModelResponse:
    from pydantic_ai.direct import model_request
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition
    from pydantic_ai.settings import ModelSettings

    settings = ModelSettings(max_tokens=request.max_tokens, timeout=seconds)
    if kind != "gemini":
        settings["max_retries"] = 0
    if kind != "compatible":
        settings["thinking"] = False  # thoughts would count against `max_tokens`; as little as the model allows
    if request.temperature is not None and not _takes_no_temperature(model):
        settings["temperature"] = request.temperature
    wanted = OutputObjectDefinition(json_schema=dict(request.schema), name=request.name)
    if mode == "json_schema":
        parameters = ModelRequestParameters(output_mode="native", output_object=wanted)
    elif mode == "json_object":
        parameters = ModelRequestParameters(
            output_mode="prompted", output_object=wanted, prompted_output_template=False
        )
    else:
        parameters = ModelRequestParameters()
    messages = request.messages if mode == "json_schema" else _with_schema(request)
    return await model_request(
        model, _messages(messages), model_settings=settings, model_request_parameters=parameters, instrument=False
    )


def _takes_no_temperature(model: Model) -> bool:
    profile: dict[str, Any] = dict(model.profile)
    return bool(profile.get("openai_supports_reasoning") or profile.get("anthropic_disallows_sampling_settings"))


def _with_schema(request: Request) -> tuple[Message, ...]:
    """The messages with the schema in words, for a service that is not given it."""
    schema = json.dumps(request.schema, ensure_ascii=False, separators=(",", ":"))
    words = f"Reply with one JSON object and nothing else. It must follow this JSON schema:\n{schema}"
    head, *rest = request.messages
    if head.role != "system":
        return (Message("system", words), *request.messages)
    return (Message("system", f"{head.text}\n\n{words}"), *rest)


def _messages(messages: tuple[Message, ...]) -> list[ModelMessage]:
    from pydantic_ai.messages import ModelRequest, ModelResponse, SystemPromptPart, TextPart, UserPromptPart

    made: list[ModelMessage] = []
    parts: list[Any] = []
    for message in messages:
        text = scrub(message.text)
        if message.role == "assistant":
            made += [ModelRequest(parts=parts), ModelResponse(parts=[TextPart(text)])]
            parts = []
        else:
            parts.append((SystemPromptPart if message.role == "system" else UserPromptPart)(text))
    return [*made, ModelRequest(parts=parts)]


def _reply(response: ModelResponse, mode: str) -> Reply:
    from pydantic_ai.messages import TextPart

    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    own = str((response.provider_details or {}).get("finish_reason", "")).lower()
    finish = FINISHES.get(response.finish_reason or own, "other")
    if response.state != "complete" and finish == "stop":
        finish = "other"
    usage = response.usage
    return Reply(text, finish, usage.input_tokens, usage.output_tokens, response.model_name or "", mode)


def _refuses_form(error: Exception) -> bool:
    from pydantic_ai import exceptions as e

    other = (e.ModelContextWindowExceededError, e.ModelQuotaExceededError, e.ModelAuthenticationError)
    if isinstance(error, (*other, e.ModelNotFoundError)):
        return False
    return isinstance(error, e.ModelHTTPError) and error.status_code in REFUSES_A_FORM


def _about_form(error: Exception) -> bool:
    """Whether the refusal is worth remembering: 400 and 422 are; a 500 only when it speaks of the form."""
    if getattr(error, "status_code", 0) != 500:
        return True
    return bool(re.search(r"response_format|json_?schema|json_?object|grammar", str(error), re.IGNORECASE))


def _causes(error: BaseException | None) -> list[BaseException]:
    chain: list[BaseException] = []
    while error is not None and len(chain) < 20:
        chain.append(error)
        error = error.__cause__ or error.__context__
    return chain


def _detail(error: Exception) -> str:
    """The HTTP status and the service's code, where the code is plainly a code."""
    status = getattr(error, "status_code", None)
    code = getattr(error, "provider_error_code", None) or getattr(error, "provider_error_type", None)
    words = [f"HTTP {status}"] if status else []
    if isinstance(code, str) and re.fullmatch(r"[A-Za-z_]{3,40}", code):
        words.append(code)
    return ", ".join(words)

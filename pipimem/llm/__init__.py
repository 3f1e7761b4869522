"""Models that are asked: what a request and a reply are, and how a model's name finds its provider.

A provider sends one request and gives one raw reply back, or raises `Failed`. Reading a reply is for `replies`, its
shape for `shape`, trying again for `retry`, and trying the next model for `ladder`. Nothing here loads a library.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pipimem.errors import ModelFailed, Usage
from pipimem.text import nearest, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

GROUP = "pipimem.llm"
REPLY_LIMIT = 256 * 1024
"""Bytes of a reply's text; a plan of 50 operations has some 20 kB."""
OWN = {
    "openai": "pipimem.llm.services:openai",
    "anthropic": "pipimem.llm.services:anthropic",
    "gemini": "pipimem.llm.services:gemini",
    "ollama": "pipimem.llm.services:ollama",
    "compatible": "pipimem.llm.services:compatible",
    "scripted": "pipimem.llm.scripted:opened",
}
"""Our own providers, found without a scan of installed packages; no other package can take one of these names."""


class Failed(ModelFailed):
    """No reply. `kind` says why: timeout, reset, unreachable, rate-limited, server, too-big, quota, key, library,
    unknown-model, too-long, rejected, no-completion, refused, script, cancelled.

    `wait` is the time in seconds the service asked for, if it did. The text holds nothing that was sent or received.
    """

    def __init__(self, kind: str, message: str, hint: str = "", *, wait: float | None = None) -> None:
        super().__init__(message, hint)
        self.kind = kind
        self.wait = wait


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a request; `role` is system, user or assistant."""

    role: str
    text: str


def never() -> bool:
    """The `cancelled` of a request nobody can cancel."""
    return False


@dataclass(frozen=True, slots=True)
class Request:
    """What a model is asked: messages, the JSON schema its reply must follow (an object at the top) and its name.

    `max_tokens` bounds the reply, `timeout` is the whole time for it in seconds; `temperature` is left out for models
    that take none. `cancelled` is looked at while waiting.
    """

    messages: tuple[Message, ...]
    schema: Mapping[str, Any]
    name: str = "reply"
    max_tokens: int = 2000
    timeout: float = 60.0
    temperature: float | None = 0.0
    cancelled: Callable[[], bool] = field(default=never, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said, raw. `finish` is stop, length, refused or other; tokens as the service counted them.

    `mode` is how the shape was asked for: json_schema, json_object or plain.
    """

    text: str
    finish: str = "stop"
    tokens_in: int = 0
    tokens_out: int = 0
    model: str = ""
    mode: str = "plain"


class Provider(Protocol):
    """One model that can be asked."""

    @property
    def name(self) -> str:
        """The model's name as it stands in the settings, such as `ollama:qwen3`."""

    def ask(self, request: Request) -> Reply:
        """The reply to one request, tried once, within `request.timeout`; else `Failed`."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a provider may know besides its model's name; all of it is the user's own, nothing a workspace's.

    `servers` maps a service or a server of one's own to its base URL, `environ` is where keys are, and `scripted`
    allows the scripted provider, which reads a file of any name (for `--model`, never for a workspace's settings).
    `folders` maps a model that runs here, with or without its service, to the folder with its files, for machines that
    cannot load them.
    """

    servers: Mapping[str, str] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    scripted: bool = False
    folders: Mapping[str, str] = field(default_factory=dict)

    def folder(self, service: str, model: str) -> str:
        """The folder with the files of a model, "" where none was named."""
        return self.folders.get(f"{service}:{model}") or self.folders.get(model, "")


def provider(name: str, settings: Settings | None = None) -> Provider:
    """The provider for a model such as `openai:gpt-5-mini`; neither a library nor a key is needed until it is asked.

    Other packages add providers with the entry point group `pipimem.llm`: a name → a function of the model's name and
    the settings. Raises `Usage` for a name that is none.
    """
    settings = settings or Settings()
    service, _, model = name.partition(":")
    if not service or not model.strip():
        raise Usage(f"The model '{printable(name)}' is no name of a model.", "Write SERVICE:MODEL, as 'ollama:qwen3'.")
    if service == "scripted" and not settings.scripted:
        raise Usage(f"The model '{printable(name)}' cannot be named in settings.", "Name it with --model.")
    target = OWN.get(service)
    factory = own(target) if target else installed(service, name, OWN, GROUP)
    made: Provider = factory(model.strip(), settings)
    return made


def base_url(service: str, settings: Settings, variable: str, default: str) -> str:
    """Where a service is: the user's own setting, else the environment's `variable`, else `default`.

    Raises `Usage` for an address that is none, or that carries a password.
    """
    url = settings.servers.get(service) or settings.environ.get(variable) or default
    if not url:
        raise Usage(
            f"The server of '{printable(service)}' is not known.",
            f"Set {variable}, or 'servers' under [llm] in your own config.",
        )
    if not re.fullmatch(r"https?://[^\s/?#@]+(?:/[^\s?#@]*)?", url):
        raise Usage(f"The server of '{printable(service)}' has no usable address.", "Write http(s)://HOST[:PORT]/PATH.")
    return url.rstrip("/")


def own(target: str) -> Callable[..., Any]:
    """The factory at `module:function`."""
    import importlib

    module, _, function = target.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found


def installed(service: str, name: str, ours: Mapping[str, str], group: str) -> Callable[..., Any]:
    """The factory that another package offers as an entry point. Raises `Usage`, with the nearest of the names."""
    from importlib.metadata import entry_points

    points = entry_points(group=group)
    for point in points:
        if point.name == service:
            found: Callable[..., Any] = point.load()
            return found
    known = sorted({*ours, *(point.name for point in points)})
    close = nearest(service, known, 1)
    hint = f"Did you mean '{close[0]}:'?" if close else f"Known services: {', '.join(known)}."
    raise Usage(f"The model '{printable(name)}' names an unknown service.", hint)

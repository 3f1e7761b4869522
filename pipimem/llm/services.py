"""The services we speak to, by the name before the colon: where each is, and which variable holds its key.

No library is loaded here; `wire` does the talking.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipimem.llm import Failed, base_url

if TYPE_CHECKING:
    from pipimem.llm import Settings
    from pipimem.llm.wire import Wire


@dataclass(frozen=True, slots=True)
class Service:
    """One model at one address. `kind` is the protocol: openai, compatible, anthropic or gemini.

    `keys` are the variables that may hold the key, the first one found wins; `open` is true where none is needed.
    """

    kind: str
    model: str
    url: str
    keys: tuple[str, ...]
    open: bool = False

    def key(self, settings: Settings, name: str) -> str:
        """The key from the environment, "" where none is needed; `Failed` (key) names the variable that is missing."""
        for variable in self.keys:
            if found := settings.environ.get(variable, "").strip():
                return found
        if self.open:
            return ""
        raise Failed("key", f"The model '{name}' needs a key.", f"Set {self.keys[0]} in the environment.")


def openai(model: str, settings: Settings) -> Wire:
    """`openai:MODEL`; key in OPENAI_API_KEY."""
    url = base_url("openai", settings, "OPENAI_BASE_URL", "https://api.openai.com/v1")
    return _wire("openai", Service("openai", model, url, ("OPENAI_API_KEY",)), settings)


def anthropic(model: str, settings: Settings) -> Wire:
    """`anthropic:MODEL`; key in ANTHROPIC_API_KEY."""
    url = base_url("anthropic", settings, "ANTHROPIC_BASE_URL", "https://api.anthropic.com")
    return _wire("anthropic", Service("anthropic", model, url, ("ANTHROPIC_API_KEY",)), settings)


def gemini(model: str, settings: Settings) -> Wire:
    """`gemini:MODEL`; key in GEMINI_API_KEY or GOOGLE_API_KEY."""
    url = base_url("gemini", settings, "GOOGLE_GEMINI_BASE_URL", "https://generativelanguage.googleapis.com")
    return _wire("gemini", Service("gemini", model, url, ("GEMINI_API_KEY", "GOOGLE_API_KEY")), settings)


def ollama(model: str, settings: Settings) -> Wire:
    """`ollama:MODEL` at OLLAMA_BASE_URL, by default this machine; a key only where the server wants one."""
    url = base_url("ollama", settings, "OLLAMA_BASE_URL", "http://127.0.0.1:11434/v1")
    return _wire("ollama", Service("compatible", model, url, ("OLLAMA_API_KEY",), open=True), settings)


def compatible(model: str, settings: Settings) -> Wire:
    """Any server that speaks OpenAI's protocol: `compatible:SERVER/MODEL` for a server named in the user's own config
    (key in SERVER_API_KEY), else `compatible:MODEL` at PIPIMEM_LLM_URL (key in PIPIMEM_LLM_KEY). Keys are optional.
    """
    rest, url, variable = server_of(model, settings)
    return _wire("compatible", Service("compatible", rest, url, (variable,), open=True), settings, model)


def server_of(model: str, settings: Settings) -> tuple[str, str, str]:
    """A compatible server's own name for a model, its base URL, and the variable that may hold its key."""
    server, slash, rest = model.partition("/")
    if slash and rest and server in settings.servers:
        variable = re.sub(r"[^A-Z0-9]", "_", server.upper()) + "_API_KEY"
        return rest, base_url(server, settings, "", ""), variable
    return model, base_url("compatible", settings, "PIPIMEM_LLM_URL", ""), "PIPIMEM_LLM_KEY"


def _wire(name: str, service: Service, settings: Settings, model: str = "") -> Wire:
    from pipimem.llm.wire import Wire

    return Wire(f"{name}:{model or service.model}", service, settings)

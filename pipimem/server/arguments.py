"""A tool's function → what it takes and gives: JSON Schemas, checked arguments, and words for what is wrong with them.

A tool is one function: its parameters are the arguments, its docstring what the client reads, its return type the
schema of its answer. Schemas are made when first asked for: a handshake needs none of them.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError, create_model

from pipimem.errors import Usage
from pipimem.text import clip, nearest, scrub

READS = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}
WRITES = {"read_only": False, "destructive": False, "idempotent": False, "open_world": False}
REPLACES = {"read_only": False, "destructive": True, "idempotent": False, "open_world": False}
ASKS = {"read_only": False, "destructive": False, "idempotent": False, "open_world": True}
TEXT_LIMIT = 200_000
"""Characters of an argument: more than any prompt, and far less than what would make a recall slow."""


def _listed(value: object) -> object:
    """A list as some clients send it: as JSON in a string, or a single text for a list of one."""
    if not isinstance(value, str):
        return [] if value is None else value
    try:
        found = json.loads(value) if value.lstrip().startswith("[") else None
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, list) else [value]


Text = Annotated[str, Field(min_length=1, max_length=TEXT_LIMIT)]
Texts = Annotated[
    list[Annotated[str, Field(max_length=TEXT_LIMIT)]], BeforeValidator(_listed, json_schema_input_type=list[str])
]


class Tool:
    """One tool: the function behind it, its title, the four hints, and whether it may take long."""

    def __init__(self, function: Callable[..., Any], title: str, hints: Mapping[str, bool], *, long: bool) -> None:
        self.name = function.__name__
        self.title = title
        self.hints = hints
        self.long = long
        self.function = function
        self.description = inspect.getdoc(function) or ""

    @cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self.function, eval_str=True)

    @cached_property
    def _model(self) -> type[BaseModel]:
        fields: dict[str, Any] = {
            name: (p.annotation, ... if p.default is p.empty else p.default)
            for name, p in list(self._signature.parameters.items())[1:]
        }
        return create_model(self.name, __config__=ConfigDict(extra="forbid"), **fields)

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """What the tool takes."""
        return _schema(self._model.model_json_schema())

    @cached_property
    def output_schema(self) -> dict[str, Any]:
        """What the tool gives."""
        return _schema(TypeAdapter(self._signature.return_annotation).json_schema())

    def checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the function takes them. Raises `Usage`: what is wrong, was received, and is wanted."""
        try:
            found = self._model.model_validate(dict(given))
        except ValidationError as error:
            wrong = "; ".join(dict.fromkeys(self._wrong(e) for e in error.errors(include_url=False)))
            got = ", ".join(f"{name} = {_shown(value)}" for name, value in list(given.items())[:20])
            raise Usage(
                f"{self.name}: {wrong}.", f"Received: {got or 'no arguments'}. Wanted: {self.wanted() or 'none'}."
            ) from None
        return {name: getattr(found, name) for name in type(found).model_fields}

    def _wrong(self, error: Any) -> str:
        name = str(error["loc"][0]) if error["loc"] else ""
        if error["type"] == "missing":
            return f"'{name}' is missing"
        if error["type"] == "extra_forbidden":
            if name == "channel":
                return "there is no argument 'channel': the scope is fixed when the server is started"
            near = nearest(name, self._model.model_fields, 1)
            return f"there is no argument '{scrub(clip(name, 60))}'" + (f" (did you mean '{near[0]}'?)" if near else "")
        return f"'{name}' is wrong: {error['msg'][:1].lower()}{error['msg'][1:]}"

    def wanted(self) -> str:
        """The arguments in words, such as `query (text), limit (number from 1 to 50; 10)`."""
        needed = self.input_schema.get("required", ())
        return ", ".join(
            f"{name} ({_words(schema)}{'' if name in needed else '; ' + _shown(schema.get('default'))})"
            for name, schema in self.input_schema.get("properties", {}).items()
        )


def tool(title: str, hints: Mapping[str, bool], *, long: bool = False) -> Callable[[Callable[..., Any]], Tool]:
    """Makes a function a tool. Its first parameter is the `Call`, the others are its arguments."""
    return lambda function: Tool(function, title, hints, long=long)


def _schema(made: Any) -> dict[str, Any]:
    found: dict[str, Any] = _plain(made)
    return found


def _plain(schema: Any) -> Any:
    """A schema without the titles pydantic invents, which cost every session tokens and say nothing."""
    if isinstance(schema, list):
        return [_plain(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key != "title" or not isinstance(value, str)}
    return {key: value if key in ("default", "enum") else _plain(value) for key, value in kept.items()}


def _shown(value: object) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (ValueError, TypeError, RecursionError):
        text = type(value).__name__
    return scrub(clip(text, 80))


def _words(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return _words(schema["anyOf"][0])
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "const" in schema:
        return str(schema["const"])
    name = {
        "string": "text",
        "integer": "number",
        "number": "number",
        "array": "list of texts",
        "boolean": "true or false",
    }
    low, high = schema.get("minimum"), schema.get("maximum")
    span = f" from {low} to {high}" if low is not None and high is not None else ""
    return name.get(str(schema.get("type")), "value") + span

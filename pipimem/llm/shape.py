"""A value brought into the shape of the JSON schema that was sent, where its meaning is certain; else named as wrong.

Pure. Takes what models really send: one object for a list, JSON in a string, other case in keys and choices, numbers
as text, keys nobody asked for. A bad item of a list is left out by name and its neighbours stay.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pipimem.llm.replies import BadReply, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

NUMBER = re.compile(r"\s*[-+]?[0-9]{1,18}(?:\.[0-9]{1,18})?\s*")
ERRORS = 30
"""Errors kept; a reply with more is not mended by naming them all."""


class Misfit(Exception):
    """What is wrong with one value."""


def fit(value: Any, schema: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """The value in the shape of `schema`, and what was left out of it, one line each (`ops[1].op: not one of …`).

    The value is None when nothing could be kept. Lines name places and rules, never the text of the reply. Knows the
    keywords that pydantic writes; keywords it does not know are not checked.
    """
    errors: list[str] = []
    try:
        fitted = _Fitting(schema, errors).value(_unwrapped(value, schema), schema, "")
    except Misfit as wrong:
        return None, [*errors, str(wrong)][:ERRORS]
    return fitted, errors[:ERRORS]


class _Fitting:
    """One walk over a value; `errors` gathers what is left out."""

    def __init__(self, root: Mapping[str, Any], errors: list[str]) -> None:
        self.root = root
        self.errors = errors

    def value(self, value: Any, schema: Mapping[str, Any], path: str) -> Any:
        schema = self.resolved(schema)
        if "anyOf" in schema or "oneOf" in schema:
            return self.one_of(value, list(schema.get("anyOf") or schema["oneOf"]), path)
        if "const" in schema or "enum" in schema:
            return _choice(value, schema.get("enum") or [schema["const"]], path)
        kind = schema.get("type")
        if isinstance(kind, list):
            return self.one_of(value, [{**schema, "type": each} for each in kind], path)
        walk = {"object": self.object, "array": self.array}.get(str(kind))
        if walk:
            return walk(value, schema, path)
        plain = {"string": _text, "number": _number, "integer": _integer, "boolean": _boolean, "null": _null}
        return plain[str(kind)](value, schema, path) if kind in plain else value

    def resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        for _ in range(10):
            target = schema.get("$ref")
            if target is None and len(schema.get("allOf", ())) == 1:
                schema = schema["allOf"][0]
            elif target is None:
                break
            else:
                found: Any = self.root
                for part in str(target).removeprefix("#").strip("/").split("/"):
                    found = found[part] if part else found
                schema = found
        return schema

    def one_of(self, value: Any, branches: list[Mapping[str, Any]], path: str) -> Any:
        """The first branch that takes the value as it is, else the first that takes it at all."""
        branches = [self.resolved(branch) for branch in branches]
        if value is None and any(branch.get("type") == "null" for branch in branches):
            return None
        branches = [branch for branch in branches if branch.get("type") != "null"]
        if all(branch.get("type") == "object" for branch in branches):
            value = _from_text(value, dict)
            branches = _tagged(value, branches, path)
        wrong: list[str] = []
        partial: tuple[Any, list[str]] | None = None
        for branch in sorted(branches, key=lambda branch: not _is(value, branch.get("type"))):
            inner = _Fitting(self.root, [])
            try:
                fitted = inner.value(value, branch, path)
            except Misfit as misfit:
                wrong.append(str(misfit))
                continue
            if not inner.errors:
                return fitted
            partial = partial or (fitted, inner.errors)
        if partial is None:
            raise Misfit(wrong[0])
        self.errors.extend(partial[1])
        return partial[0]

    def object(self, value: Any, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
        value = _from_text(value, dict)
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
            value = value[0]
        if not isinstance(value, dict):
            raise Misfit(f"{_at(path)}: {_kind(value)} where an object is wanted")
        wanted = schema.get("properties")
        if wanted is None:
            inner = schema.get("additionalProperties")
            if not isinstance(inner, dict):
                return value
            return {key: self.value(item, inner, f"{path}.*") for key, item in value.items()}
        given = _by_name(value, wanted, path)
        fitted = {}
        for name, inner in wanted.items():
            if name in given:
                fitted[name] = self.value(given[name], inner, f"{path}.{name}")
            elif name in schema.get("required", ()):
                raise Misfit(f"{_at(path)}: '{name}' is missing")
        return fitted

    def array(self, value: Any, schema: Mapping[str, Any], path: str) -> list[Any]:
        value = _from_text(value, list)
        if value is None:
            return []
        items = value if isinstance(value, list) else [value]
        inner = schema.get("items", {})
        fitted: list[Any] = []
        for number, item in enumerate(items):
            if len(fitted) >= schema.get("maxItems", len(items)):
                self.errors.append(f"{_at(path)}: more than {schema['maxItems']} items; the rest is left out")
                break
            try:
                fitted.append(self.value(item, inner, f"{path}[{number}]" if isinstance(value, list) else path))
            except Misfit as wrong:
                self.errors.append(str(wrong))
        if len(fitted) < schema.get("minItems", 0):
            raise Misfit(f"{_at(path)}: fewer than {schema['minItems']} good items")
        return fitted


def _unwrapped(value: Any, schema: Mapping[str, Any]) -> Any:
    """At the top: a bare list, or one bare item, where the schema asks for an object around its only list."""
    properties = schema.get("properties", {})
    lists = [name for name, inner in properties.items() if inner.get("type") == "array"]
    if len(lists) != 1 or _names_any(value, properties):
        return value
    if isinstance(value, list):
        inside = len(value) == 1 and _names_any(value[0], properties)
        return value if inside else {lists[0]: value}
    if not isinstance(value, dict):
        return value
    errors: list[str] = []
    items = _Fitting(schema, errors).array([value], {**properties[lists[0]], "minItems": 0}, "")
    return {lists[0]: items} if items and not errors else value


def _tagged(value: Any, branches: list[Mapping[str, Any]], path: str) -> list[Mapping[str, Any]]:
    """The branches whose fixed properties (`op`: supersede) are what the value says; all where none has any."""
    fixed = [{n: p["const"] for n, p in b.get("properties", {}).items() if "const" in p} for b in branches]
    shared = set.intersection(*map(set, fixed)) if fixed else set()
    if not shared or not isinstance(value, dict):
        return branches
    name = sorted(shared)[0]
    given = _by_name(value, {name: {}}, path).get(name)
    chosen = _choice(given, [each[name] for each in fixed], f"{path}.{name}")
    return [branch for branch, each in zip(branches, fixed, strict=True) if each[name] == chosen]


def _by_name(value: Mapping[str, Any], wanted: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The given values under the wanted names; other case and other joints (`necessity-Level`) are the same name."""
    given = {name: value[name] for name in wanted if name in value}
    plain = {_plain(name): name for name in wanted}
    for key, item in value.items():
        name = plain.get(_plain(key))
        if name is None or key == name:
            continue
        if name in given and given[name] != item:
            raise Misfit(f"{_at(path)}: '{name}' is given twice")
        given[name] = item
    return given


def _names_any(value: Any, wanted: Mapping[str, Any]) -> bool:
    names = {_plain(name) for name in wanted}
    return isinstance(value, dict) and any(_plain(key) in names for key in value)


def _plain(name: str) -> str:
    return "".join(c for c in name.casefold() if c.isalnum())


def _from_text(value: Any, wanted: type) -> Any:
    """What a string says when it is the JSON of the wanted kind; else the string itself."""
    if isinstance(value, str) and value.strip()[:1] == ("{" if wanted is dict else "["):
        try:
            inner = parse(value)
        except BadReply:
            return value
        return inner if isinstance(inner, wanted) else value
    return value


def _choice(value: Any, choices: list[Any], path: str) -> Any:
    if value in choices and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        same = [choice for choice in choices if isinstance(choice, str) and _plain(choice) == _plain(value)]
        if len(same) == 1 and _plain(value):
            return same[0]
    raise Misfit(f"{_at(path)}: not one of {', '.join(map(str, choices))}")


def _text(value: Any, schema: Mapping[str, Any], path: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise Misfit(f"{_at(path)}: {_kind(value)} where text is wanted")
    if len(value) > schema.get("maxLength", len(value)):
        raise Misfit(f"{_at(path)}: longer than {schema['maxLength']} characters")
    if len(value) < schema.get("minLength", 0):
        raise Misfit(f"{_at(path)}: shorter than {schema['minLength']} characters")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        raise Misfit(f"{_at(path)}: not of the form {schema['pattern']}")
    return value


def _number(value: Any, schema: Mapping[str, Any], path: str) -> float:
    if isinstance(value, str) and NUMBER.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Misfit(f"{_at(path)}: {_kind(value)} where a number is wanted")
    if value < schema.get("minimum", value) or value > schema.get("maximum", value):
        raise Misfit(f"{_at(path)}: not within {schema.get('minimum', '…')} to {schema.get('maximum', '…')}")
    return value


def _integer(value: Any, schema: Mapping[str, Any], path: str) -> int:
    number = _number(value, schema, path)
    if number != int(number):
        raise Misfit(f"{_at(path)}: not a whole number")
    return int(number)


def _boolean(value: Any, schema: Mapping[str, Any], path: str) -> bool:
    if isinstance(value, str):
        value = {"true": True, "false": False}.get(value.strip().casefold())
    if not isinstance(value, bool):
        raise Misfit(f"{_at(path)}: neither true nor false")
    return value


def _null(value: Any, schema: Mapping[str, Any], path: str) -> None:
    if value is not None:
        raise Misfit(f"{_at(path)}: {_kind(value)} where nothing is wanted")


def _is(value: Any, kind: Any) -> bool:
    kinds: dict[str, type | tuple[type, ...]] = {
        "object": dict, "array": list, "string": str, "number": (int, float), "integer": int, "boolean": bool,
    }  # fmt: skip
    return isinstance(value, kinds.get(str(kind), ())) and (kind == "boolean") == isinstance(value, bool)


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _at(path: str) -> str:
    return path.lstrip(".") or "the reply"

"""Reading a time from what a command printed.

A reader takes the text of stdout and gives what stands there, number or not; `opratchet.judge.floor.impossible` says whether it
can be a time. A `LookupError` says that there is nothing to read, and why.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

Reader = Callable[[str], object]


def by_regex(pattern: str) -> Reader:
    """Reads the group `time` of the first match, or the first group where none has that name.

    Raises:
        ValueError: the pattern is no regular expression, or has no group.
    """
    try:
        expression = re.compile(pattern, re.MULTILINE)
    except re.error as error:
        raise ValueError(f"`{pattern}` is no regular expression: {error}") from None
    if not expression.groups:
        raise ValueError(f"`{pattern}` has no group (...) that says where the time stands")
    group: str | int = "time" if "time" in expression.groupindex else 1

    def read(text: str) -> object:
        match = expression.search(text)
        if match is None:
            raise LookupError(f"nothing in its output matches `{pattern}`")
        if match[group] is None:
            raise LookupError(f"the group of `{pattern}` that holds the time matched nothing")
        return number(match[group])

    return read


def number(text: str) -> object:
    """A text as the number that it is, or as it stands when it is none."""
    try:
        return float(text)
    except ValueError:
        return text


def by_json_key(key: str) -> Reader:
    """Reads a key of the last JSON object; `a.b.0.c` goes through objects by name and through arrays by place.

    Raises:
        ValueError: the key is empty.
    """
    if not key:
        raise ValueError("the key is empty")

    def read(text: str) -> object:
        found = [*objects(text)]
        if not found:
            raise LookupError("there is no JSON object in its output")
        return value_at(found[-1], key)

    return read


def objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, in order, whatever stands between them."""
    decoder = json.JSONDecoder()
    start = text.find("{")
    while start >= 0:
        try:
            found, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield found
        start = text.find("{", end)


def value_at(data: object, key: str) -> object:
    """What stands at a dotted key.

    Raises:
        LookupError: nothing does.
    """
    passed: list[str] = []
    for part in key.split("."):
        if isinstance(data, dict) and part in data:
            data = data[part]
        elif isinstance(data, list) and part.isdecimal() and int(part) < len(data):
            data = data[int(part)]
        else:
            where = f"under `{'.'.join(passed)}`" if passed else "in the last JSON object"
            raise LookupError(f"there is no `{part}` {where}{_there(data)}")
        passed.append(part)
    return data


def _there(data: object) -> str:
    """What there is instead, short."""
    if isinstance(data, dict):
        names = [str(name) for name in data][:12]
        return f"; there {'are' if len(names) > 1 else 'is'} {', '.join(names)}" if names else ""
    return f"; it holds {len(data)} values" if isinstance(data, list) else "; it is no object"

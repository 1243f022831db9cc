"""Values of a YAML text, and on which line each key stands.

The reader of PyYAML gives the tree of nodes, each with its place; the values are made here, for three reasons. A
message needs the line. PyYAML follows YAML 1.1, in which `1e-3` is a text and not a number, which is how tolerances
are written. And only plain values come out: aliases (a few lines that unfold into gigabytes), repeated keys and
numbers that no ledger can hold are refused, dates stay texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from opratchet.errors import BadInput
from opratchet.operator.evaluate import LARGEST
from opratchet.operator.toml_lines import KeyPath

_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)")
_FRACTION = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?")
_SPECIAL = {
    ".inf": float("inf"),
    "+.inf": float("inf"),
    "-.inf": -float("inf"),
    ".nan": float("nan"),
}
_BOOLEANS = dict.fromkeys(("true", "yes", "on"), True) | dict.fromkeys(
    ("false", "no", "off"), False
)
_PREFIX = "tag:yaml.org,2002:"


def read_yaml(text: str, where: str, first_line: int = 1) -> tuple[Any, dict[KeyPath, int]]:
    """Values of a YAML text, and the line of each key path and list element.

    Args:
        text: The text.
        where: The file, for errors.
        first_line: Line of the file on which the text begins.

    Raises:
        BadInput: it is not YAML, or holds more than plain values.
    """
    walker = _Walker(where, first_line)
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        return (None if root is None else walker.value(root, ())), walker.lines
    except yaml.YAMLError as error:
        raise walker.refusal(_said(error), _line(error)) from None
    except RecursionError:
        raise walker.refusal("it is nested too deep", 0) from None


def _said(error: yaml.YAMLError) -> str:
    said = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    return f"not valid YAML: {said}"


def _line(error: yaml.YAMLError) -> int:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    return int(mark.line) if mark is not None else 0


class _Walker:
    """Turns nodes into values, and notes where the keys stand."""

    def __init__(self, where: str, first_line: int) -> None:
        self.lines: dict[KeyPath, int] = {}
        self._where = where
        self._first = first_line
        self._seen: set[int] = set()

    def refusal(self, what: str, line: int) -> BadInput:
        """The error for a line, counted from 0 within the text."""
        return BadInput(
            what,
            where=f"{self._where}:{self._first + line}",
            fix="Front matter holds plain values: `key: value`, lists as `[1, 2]`, tables as `{a: 1}`.",
        )

    def value(self, node: yaml.Node, path: KeyPath) -> Any:
        """The value of a node; `path` is where it stands."""
        if id(node) in self._seen:
            raise self.refusal("an alias (`*name`) repeats a value", node.start_mark.line)
        self._seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            return dict(self._pairs(node, path))
        if isinstance(node, yaml.SequenceNode):
            return [self._element(item, (*path, at)) for at, item in enumerate(node.value)]
        return self._scalar(node)

    def _pairs(self, node: yaml.MappingNode, path: KeyPath) -> Iterator[tuple[str, Any]]:
        for key_node, inner in node.value:
            line = key_node.start_mark.line
            if not isinstance(key_node, yaml.ScalarNode):
                raise self.refusal("a key is not a word", line)
            key = (*path, key_node.value)
            if key in self.lines:
                raise self.refusal(f"the key `{key_node.value}` is given twice", line)
            self.lines[key] = self._first + line
            yield key_node.value, self.value(inner, key)

    def _element(self, node: yaml.Node, path: KeyPath) -> Any:
        self.lines[path] = self._first + node.start_mark.line
        return self.value(node, path)

    def _scalar(self, node: yaml.Node) -> Any:
        text: str = node.value
        if getattr(node, "style", None) is not None:  # quoted, or a block of text
            return text
        if node.tag == _PREFIX + "null":
            return None
        if node.tag == _PREFIX + "bool":
            return _BOOLEANS.get(text.lower(), text)
        if text.lower() in _SPECIAL:
            return _SPECIAL[text.lower()]
        if _WHOLE.fullmatch(text):
            return self._whole(text, node.start_mark.line)
        return float(text) if _FRACTION.fullmatch(text) else text

    def _whole(self, text: str, line: int) -> int:
        digits = text.replace("_", "")
        if len(digits) > 20 or abs(int(digits)) > LARGEST:
            raise self.refusal("the number does not fit into 64 bits", line)
        return int(digits)

"""The option `--sandbox` of every command that runs a candidate. Heavy modules load inside the command that needs them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from opratchet.lab.sandbox import Sandbox


class Wanted(str, Enum):
    """The values of the option, as `opratchet.lab.sandbox.Mode` has them."""

    REQUIRE = "require"
    AUTO = "auto"
    OFF = "off"


SandboxOption = Annotated[
    Wanted, typer.Option(help="bubblewrap around candidates: auto uses it where it works.")
]


def chosen(wanted: Wanted, hidden: Sequence[Path] = ()) -> Sandbox:
    """The sandbox that is there, if it is wanted; it shows no candidate the hidden folders.

    Raises:
        EnvironmentMissing: it is required and does not work here.
    """
    from opratchet.lab.sandbox import Mode, choose

    return choose(Mode(wanted.value)).hiding(hidden)

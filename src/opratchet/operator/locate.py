"""From the path a person gave to the files of an operator.

The path may be the operator's folder, its source file, or its manifest. A folder follows the convention
`{op}/{op}.py`, unless the manifest in it names another source. A source that was named on the command line wins
over the manifest; the rest of the manifest still holds for it.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from pathlib import Path

from opratchet.errors import BadInput
from opratchet.operator.files import missing
from opratchet.operator.manifest import MANIFEST_NAME, ManifestFile, no_manifest, read_manifest
from opratchet.operator.problems import advice


@dataclass(frozen=True)
class Place:
    """The files of an operator.

    Attributes:
        root: Its folder, as the user named it.
        source: Its source file.
        found_by: How the source was found.
        manifest: Its manifest; an empty one when it has none.
    """

    root: Path
    source: Path
    found_by: str
    manifest: ManifestFile


def locate(path: Path) -> Place:
    """Find the files.

    Raises:
        BadInput: there is nothing there, or nothing that could be an operator.
    """
    try:
        return _locate(path)
    except OSError as error:  # a name that is too long, a folder without rights
        reason = error.strerror or str(error)
        raise BadInput(
            f"the path cannot be read: {reason}",
            where=str(path),
            fix="Check the path and its rights.",
        ) from None


def _locate(path: Path) -> Place:
    if path.is_dir():
        return _in_folder(path, _manifest_in(path))
    if not path.exists():
        raise missing(path)
    if path.suffix == ".toml":
        return _in_folder(path.parent, read_manifest(path))
    if path.suffix == ".py" and path.is_file():
        return Place(path.parent, path, "command line", _manifest_in(path.parent))
    raise BadInput(
        "this is neither a folder, nor a Python source, nor a manifest",
        where=str(path),
        fix=f"Give the operator's folder, its .py file, or its {MANIFEST_NAME}.",
    )


def _manifest_in(folder: Path) -> ManifestFile:
    path = folder / MANIFEST_NAME
    return read_manifest(path) if path.exists() else no_manifest(folder)


def _in_folder(root: Path, manifest: ManifestFile) -> Place:
    stated = manifest.data.operator.source
    if stated is not None:
        source = _stated_source(root, stated, manifest)
        return Place(root, source, manifest.at("operator", "source"), manifest)
    name = root.resolve().name
    source = root / f"{name}.py"
    if not source.is_file():
        raise _no_source(root, name)
    return Place(root, source, f"convention: {name}/{name}.py", manifest)


def _stated_source(root: Path, stated: str, manifest: ManifestFile) -> Path:
    where = manifest.where("operator", "source")
    source = root / stated
    if "\0" in stated or not source.resolve().is_relative_to(root.resolve()):
        raise BadInput(
            f"the source `{stated}` lies outside of the manifest's folder",
            where=where,
            fix="Put the manifest beside the source.",
        )
    if not source.is_file():
        names = _python_files(root)
        raise BadInput(
            f"the source `{stated}` is not a file in {root}", where=where, fix=advice(stated, names)
        )
    return source


def _no_source(root: Path, name: str) -> BadInput:
    names = _python_files(root)
    listed = f" It holds {', '.join(names)}." if names else " It holds no Python file."
    return BadInput(
        f"the folder holds no `{name}.py`.{listed}",
        where=str(root),
        fix=f'Give the source file itself, or write source = "..." under [operator] in {MANIFEST_NAME}.',
    )


def _python_files(root: Path) -> list[str]:
    return sorted(unicodedata.normalize("NFC", path.name) for path in root.glob("*.py"))[:20]

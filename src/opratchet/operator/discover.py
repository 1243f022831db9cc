"""Understanding an operator: from a path to an `Operator`, without ever running what is found there.

Each field is decided by the first that says something about it: the command line, the manifest, the conventions of
the source, a default. What decided is kept in `Operator.provenance`, so that `opratchet check` can show it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from opratchet.errors import BadInput
from opratchet.operator.evaluate import formula_names
from opratchet.operator.locate import Place, locate
from opratchet.operator.manifest import InputSection, ManifestFile
from opratchet.operator.model import InputSpec, Operator, Tolerance, Workload
from opratchet.operator.problems import Problem, advice, refuse
from opratchet.operator.pypto import Chosen, load_pypto, pypto_folder
from opratchet.operator.python_source import PythonSource, read_python
from opratchet.operator.target import choose_target
from opratchet.operator.tolerances import DEFAULTS
from opratchet.operator.workloads import Kernel, Stated, stated_workloads, workload_problems

DEFAULT_BACKEND = "tilelang-c"
DEFAULT_FLOW = "tilelang"

# The backend that a kernel is written for, by the target of its decorator.
BACKEND_OF_TARGET = {"c": "tilelang-c", "npuir": "tilelang-npuir", "ascend": "tilelang-ascend"}


@dataclass(frozen=True)
class Overrides:
    """What the command line says about an operator. None: nothing.

    Attributes:
        backend: `--backend`.
        flow: `--flow`.
        target_us: `--target-us`, microseconds a call at most.
        target_throughput: `--target-throughput`, calls a second at least.
        target_speedup: `--target-speedup`, factor over the baseline at least.
    """

    backend: str | None = None
    flow: str | None = None
    target_us: float | None = None
    target_throughput: float | None = None
    target_speedup: float | None = None


NOTHING_OVERRIDDEN = Overrides()


@dataclass(frozen=True)
class Found:
    """A value, where it came from (short), and where that is (for errors)."""

    value: str
    source: str
    where: str


def load_operator(
    path: Path,
    *,
    known_backends: Collection[str],
    known_flows: Collection[str],
    overrides: Overrides = NOTHING_OVERRIDDEN,
) -> Operator:
    """Read an operator.

    Args:
        path: Its folder, source file or manifest.
        known_backends: Names of the backends there are; `package.module:Class` names any other.
        known_flows: Names of the flows there are.
        overrides: What the command line says.

    Raises:
        BadInput: something is missing, misspelt or contradictory; the message names the place and the remedy.
    """
    if (folder := pypto_folder(path)) is not None:
        chosen = Chosen(overrides.backend, overrides.flow, _options(overrides))
        operator = load_pypto(folder, chosen)
        _known("backend", Found(operator.backend, "", "--backend"), known_backends)
        _known("flow", Found(operator.flow, "", "--flow"), known_flows)
        return operator
    return _in_one_file(locate(path), known_backends, known_flows, overrides)


def _in_one_file(
    place: Place,
    known_backends: Collection[str],
    known_flows: Collection[str],
    overrides: Overrides,
) -> Operator:
    """An operator whose kernel and golden stand in one source."""
    source = read_python(place.source)
    kernel = _kernel(source, place.manifest)
    name = _name(place)
    golden = _golden(source, place.manifest, name.value)
    refuse([*_defined_twice(source, kernel.value), *_defined_twice(source, golden.value)])
    backend = _known("backend", _backend(source, kernel.value, place, overrides), known_backends)
    flow = _known("flow", _flow(place, overrides), known_flows)
    taker = Kernel(source, kernel.value, golden.value)
    stated = stated_workloads(place.manifest, taker)
    refuse([*workload_problems(stated, taker), *_manifest_problems(place.manifest, taker, stated)])
    workloads = tuple(one.workload(taker.default_dtype()) for one in stated)
    fields = {"name": name, "kernel": kernel, "golden": golden, "backend": backend, "flow": flow}
    return _operator(place, source, fields, workloads, stated, overrides)


def _operator(
    place: Place,
    source: PythonSource,
    fields: dict[str, Found],
    workloads: tuple[Workload, ...],
    stated: list[Stated],
    overrides: Overrides,
) -> Operator:
    manifest = place.manifest
    root = place.root.resolve()
    tuned = [workload.id for workload in workloads if workload.kind == "tune"]
    target = choose_target(place.root, manifest, _options(overrides), tuned)
    provenance = {field: found.source for field, found in fields.items()}
    provenance |= _provenance(place, stated)
    provenance["target"] = target.source if target else "default"
    return Operator(
        name=fields["name"].value,
        kernel=fields["kernel"].value,
        golden=fields["golden"].value,
        backend=fields["backend"].value,
        flow=fields["flow"].value,
        project=root.parent.name,
        root=root,
        source=root / place.source.relative_to(place.root),
        text=source.text,
        workloads=workloads,
        tolerances=_tolerances(manifest),
        inputs={name: _input(section) for name, section in manifest.data.inputs.items()},
        target=target,
        knobs={name: tuple(values) for name, values in manifest.data.knobs.items()},
        flops=manifest.data.operator.flops or "",
        provenance=provenance,
    )


def _options(overrides: Overrides) -> dict[str, float | None]:
    """Targets of the command line by metric."""
    return {
        "latency_us": overrides.target_us,
        "throughput": overrides.target_throughput,
        "speedup": overrides.target_speedup,
    }


def _provenance(place: Place, stated: list[Stated]) -> dict[str, str]:
    """Where the fields came from that are not a single name. Parts are told apart: `tolerances.float32`."""
    manifest = place.manifest
    found = {"source": place.found_by, "project": "convention: name of the folder above"}
    found |= {f"workloads.{one.section.id}": one.at for one in stated}
    found |= {f"tolerances.{dtype}": "default" for dtype in DEFAULTS}
    for table in ("tolerances", "inputs", "knobs"):
        for key in getattr(manifest.data, table):
            found[f"{table}.{key}"] = manifest.at(table, key)
    has_flops = manifest.data.operator.flops is not None
    found["flops"] = manifest.at("operator", "flops") if has_flops else "default"
    return found


# --- one field each -----------------------------------------------------------------------------------------


def _stated(manifest: ManifestFile, key: str) -> Found | None:
    value = getattr(manifest.data.operator, key)
    if value is None:
        return None
    return Found(value, manifest.at("operator", key), manifest.where("operator", key))


def _name(place: Place) -> Found:
    convention = Found(place.source.stem, "convention: name of the source file", str(place.source))
    return _stated(place.manifest, "name") or convention


def _kernel(source: PythonSource, manifest: ManifestFile) -> Found:
    stated = _stated(manifest, "kernel")
    if stated is not None:
        return _defined(stated, source, "kernel factory")
    if len(source.kernels) == 1:
        [name] = source.kernels
        line = source.functions[name].lineno
        return Found(name, "convention: the only @tilelang.jit function", source.where(line))
    if not source.kernels:
        raise BadInput(
            "there is no kernel: no function at the top level is decorated with @tilelang.jit",
            where=str(source.path),
            fix='Decorate the kernel factory, or write kernel = "..." under [operator] in opratchet.toml.',
        )
    listed = ", ".join(f"{name} (line {source.functions[name].lineno})" for name in source.kernels)
    raise BadInput(
        f"there are several kernels: {listed}",
        where=str(source.path),
        fix=f'Choose one in opratchet.toml, e.g. kernel = "{source.kernels[0]}" under [operator].',
    )


def _golden(source: PythonSource, manifest: ManifestFile, name: str) -> Found:
    stated = _stated(manifest, "golden")
    if stated is not None:
        return _defined(stated, source, "golden")
    # Python reads identifiers in the normal form NFKC; file names come in any form.
    wanted = unicodedata.normalize("NFKC", f"golden_{name}")
    goldens = [function for function in source.functions if function.startswith("golden_")]
    if wanted in goldens:
        return Found(wanted, f"convention: {wanted}", str(source.path))
    if len(goldens) == 1:
        return Found(goldens[0], "convention: the only golden_* function", str(source.path))
    there = f"there are {', '.join(goldens)}" if goldens else "no function `golden_*` is defined"
    raise BadInput(
        f"there is no golden `{wanted}`: {there}",
        where=str(source.path),
        fix=f'Define `{wanted}(...)` in this file, or write golden = "..." under [operator] in opratchet.toml.',
    )


def _defined(stated: Found, source: PythonSource, what: str) -> Found:
    if stated.value in source.functions:
        return stated
    raise BadInput(
        f"the {what} `{stated.value}` is not defined in {source.path.name}",
        where=stated.where,
        fix=advice(stated.value, source.functions),
    )


def _defined_twice(source: PythonSource, name: str) -> Iterator[Problem]:
    """Of two definitions Python runs the last, while a reader edits the first: neither is to be trusted."""
    lines = source.definition_lines(name)
    if len(lines) > 1:
        listed = " and ".join(str(line) for line in lines)
        what = f"`{name}` is defined {len(lines)} times, on lines {listed}"
        yield Problem(what, source.where(lines[-1]), "Keep one definition.")


def _backend(source: PythonSource, kernel: str, place: Place, overrides: Overrides) -> Found:
    if overrides.backend is not None:
        return Found(overrides.backend, "command line", "--backend")
    stated = _stated(place.manifest, "backend")
    if stated is not None:
        return stated
    target = _stated(place.manifest, "target") or _decorator_target(source, kernel)
    if target is None:
        return Found(DEFAULT_BACKEND, "default", str(source.path))
    if target.value not in BACKEND_OF_TARGET:
        raise BadInput(
            f"no backend is known for the compile target `{target.value}`",
            where=target.where,
            fix=f"{advice(target.value, BACKEND_OF_TARGET)} Or choose one with --backend.",
        )
    return Found(BACKEND_OF_TARGET[target.value], target.source, target.where)


def _decorator_target(source: PythonSource, kernel: str) -> Found | None:
    found = source.compile_target(kernel)
    if found is None:
        return None
    target, line = found
    return Found(target, f'{source.at(line)}, target="{target}"', source.where(line))


def _flow(place: Place, overrides: Overrides) -> Found:
    if overrides.flow is not None:
        return Found(overrides.flow, "command line", "--flow")
    return _stated(place.manifest, "flow") or Found(DEFAULT_FLOW, "default", str(place.source))


def _known(what: str, found: Found, known: Collection[str]) -> Found:
    if found.value in known or (what == "backend" and ":" in found.value):
        return found
    raise BadInput(
        f"unknown {what} `{found.value}`", where=found.where, fix=advice(found.value, known)
    )


def _tolerances(manifest: ManifestFile) -> dict[str, Tolerance]:
    tolerances = dict(DEFAULTS)
    for dtype, section in manifest.data.tolerances.items():
        default = DEFAULTS.get(dtype, Tolerance(0.0, 0.0))
        tolerances[dtype] = Tolerance(
            rtol=default.rtol if section.rtol is None else section.rtol,
            atol=default.atol if section.atol is None else section.atol,
        )
    return tolerances


def _input(section: InputSection) -> InputSpec:
    low, high = (
        (section.mean, section.std)
        if section.distribution == "normal"
        else (section.low, section.high)
    )
    return InputSpec(
        distribution=section.distribution,
        a=0.0 if low is None else low,
        b=1.0 if high is None else high,
    )


# --- the manifest against the source ------------------------------------------------------------------------


def _manifest_problems(
    manifest: ManifestFile, kernel: Kernel, stated: list[Stated]
) -> Iterator[Problem]:
    tensors = kernel.source.tensors(kernel.factory)
    for name in manifest.data.inputs:
        if tensors and name not in tensors:
            what = f"the kernel `{kernel.factory}` has no tensor `{name}`"
            yield Problem(what, manifest.where("inputs", name), advice(name, tensors))
    yield from _flops_problems(manifest, stated)
    default = kernel.default_dtype()
    for dtype in sorted({one.workload(default).dtype for one in stated} - set(DEFAULTS)):
        if dtype not in manifest.data.tolerances:
            yield Problem(
                f"there is no default tolerance for `{dtype}`",
                manifest.where("tolerances"),
                f"Add [tolerances.{dtype}] with rtol and atol.",
            )


def _flops_problems(manifest: ManifestFile, stated: list[Stated]) -> Iterator[Problem]:
    """The formula has to be one, and each workload has to know its names; its value is the profile's business."""
    where = manifest.where("operator", "flops")
    try:
        names = formula_names(manifest.data.operator.flops or "0")
    except ValueError as error:
        yield Problem(
            str(error), where, "Write a formula over the shape names, e.g. 2 * M * N * K."
        )
        return
    known = [one.section.shape for one in stated if one.section.kind != "skipped"]
    for name in sorted(names):
        if any(name not in shape for shape in known):
            fix = advice(name, {name for shape in known for name in shape})
            yield Problem(f"the formula names `{name}`, which is no shape name", where, fix)

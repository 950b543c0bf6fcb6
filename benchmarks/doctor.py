"""`panpan env doctor`: one look at an environment of 300 packages and 600 compiled modules."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.figure import Figure
from panpan.capabilities.environment.env_doctor import diagnose
from panpan.python_environments.find_environment import find_environment
from panpan.python_environments.machine_root import MachineRoot
from tests.fakes.machines import PROJECT, Machine

TITLE = "one look at an environment of 300 packages"

PACKAGES = 300
_MODULES_EACH = 2
_FILES_EACH = 40


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark; the first look, which imports, is not counted."""
    with TemporaryDirectory(prefix="panpan-bench-") as name:
        root = Path(name).resolve()
        _fill(root)
        _milliseconds(root)
        times = [_milliseconds(root) for _ in range(runs)]
    yield Figure("all layers, with every package and binary", "ms", times, at_most=3_000)


def _fill(root: Path) -> None:
    machine = Machine(root)
    machine.linux()
    machine.venv()
    for number in range(PACKAGES):
        name = f"package_{number}"
        files: dict[str, str | bytes] = {f"{name}/module_{one}.py": "x = 1\n" * 50 for one in range(_FILES_EACH)}
        files[f"{name}/__init__.py"] = ""
        for one in range(_MODULES_EACH):
            files |= machine.module(f"{name}/_fast_{one}", versions={"libc.so.6": ["GLIBC_2.14", "GLIBC_2.17"]})
        requires = [f"package_{(number + step) % PACKAGES}>=1.0,<2" for step in range(1, 9)]
        tag = "cp311-cp311-manylinux_2_17_x86_64"
        machine.package(name, "1.2.3", requires=requires, requires_python=">=3.9", tag=tag, files=files)


def _milliseconds(root: Path) -> float:
    started_at = perf_counter()
    machine = MachineRoot(root)
    report = diagnose(machine, find_environment(machine, PROJECT, {}), {})
    took = (perf_counter() - started_at) * 1000
    if report.first_broken is not None:
        raise RuntimeError(f"the environment should be whole: {report.first_broken}")
    return took

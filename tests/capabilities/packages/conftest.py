"""Fixtures for the tests of package tools: wheels, environments, and a way to call a tool."""

import base64
import hashlib
import os
import shutil
import sys
import venv
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from panpan.capabilities.packages.package_tool import PackageTool
from panpan.capabilities.packages.target import PackageConfig
from panpan.core.tool import ToolContext
from panpan.types.events import Output, Progress
from tests.fakes.context import context_in

UV = Path(sys.prefix) / "bin" / "uv"


def write_wheel(
    folder: Path, name: str, version: str, requires: Sequence[str] = (), *, tag: str = "py3-none-any", code: str = ""
) -> Path:
    """Write a wheel with one module, as specified in "Binary distribution format" (packaging.python.org)."""
    record = f"{name}-{version}.dist-info"
    metadata = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", f"Summary: a {name}"]
    files = {
        f"{name}.py": f"version = {version!r}\n{code}",
        f"{record}/METADATA": "\n".join([*metadata, *(f"Requires-Dist: {one}" for one in requires), ""]),
        f"{record}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    lines = [f"{file},sha256={_digest(text)},{len(text)}\n" for file, text in files.items()]
    files[f"{record}/RECORD"] = "".join([*lines, f"{record}/RECORD,,\n"])
    wheel = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
    return wheel


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of wheels: lamp requires an old shelf, desk a new one, chair a lamp."""
    folder = tmp_path_factory.mktemp("wheels")
    for version in ("1.0", "1.5", "2.0"):
        write_wheel(folder, "shelf", version)
    write_wheel(folder, "lamp", "1.0", ["shelf<2"])
    write_wheel(folder, "desk", "1.0", ["shelf>=2"])
    write_wheel(folder, "chair", "1.0", ["lamp"])
    write_wheel(folder, "future", "1.0", tag="cp399-cp399-manylinux_2_28_x86_64")
    return folder


@pytest.fixture(scope="session")
def pip_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the pip that is bundled with Python, unpacked."""
    import ensurepip

    folder = tmp_path_factory.mktemp("pip")
    (wheel,) = (Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def make_environment(place: Path, pip_files: Path | None = None) -> Path:
    """Make a virtual environment, with a link to pip in place of an installed one."""
    venv.EnvBuilder(symlinks=True).create(place)
    if pip_files is not None:
        (packages,) = (place / "lib").glob("python3*/site-packages")
        (packages / "pip").symlink_to(pip_files / "pip")
        (record,) = pip_files.glob("pip-*.dist-info")
        shutil.copytree(record, packages / record.name)  # pip would treat a link to the folder as its own
    return place


@dataclass
class Workspace:
    """Calls package tools as a session does."""

    root: Path
    ctx: ToolContext
    setup: PackageConfig
    progress: list[str] = field(default_factory=list)
    calls: int = 0

    def call_context(self) -> ToolContext:
        self.calls += 1
        return replace(self.ctx, tool_use_id=f"toolu_{self.calls}")

    def with_variables(self, **variables: str) -> "Workspace":
        return replace(self, ctx=replace(self.ctx, environment={**self.ctx.environment, **variables}))

    async def run(self, tool: type[PackageTool[Any]], operation: str, *packages: str, **others: Any) -> Output:
        args = tool.input_model.model_validate({"operation": operation, "packages": packages, **others})
        outputs = []
        async with aclosing(tool(self.setup).run(args, self.call_context())) as yields:
            async for one in yields:
                if isinstance(one, Progress):
                    self.progress.append(one.text)
                elif isinstance(one, Output):
                    outputs.append(one)
        assert len(outputs) == 1
        return outputs[0]

    async def text(self, tool: type[PackageTool[Any]], operation: str, *packages: str, **others: Any) -> str:
        return (await self.run(tool, operation, *packages, **others)).text


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    root = (tmp_path / "work").resolve()
    root.mkdir()
    variables: Mapping[str, str] = {
        "PIP_NO_INDEX": "1",
        "PIP_CONFIG_FILE": os.devnull,
        "UV_OFFLINE": "1",
        "PATH": f"{UV.parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(tmp_path / "home"),
    }
    ctx = replace(context_in(root), environment=dict(variables))
    return Workspace(root, ctx, PackageConfig(steps_folder=tmp_path / "steps"))

"""Verifying a kit: its checksums, then its commands in the sandbox, compared with its check.

The rule: a kit is a stranger's. Only files that its manifest names are used. They run in the sandbox with an empty
home, and panpan's own `compare.py` finds the numbers afterwards, whatever the kit's copy says.
"""

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from anyio import to_thread
from pydantic import ValidationError

from panpan.batch.attempts.commands import Command, Ground, UnfitError, ground_at, run_command
from panpan.config.locations import panpan_home
from panpan.errors import ConfigError, ToolError
from panpan.repro.checking.results import CheckReport
from panpan.repro.kit.compare import other_packages, runs_of
from panpan.repro.kit.manifest import FORMAT, MANIFEST, Manifest
from panpan.repro.kit.script import PACKAGES
from panpan.repro.kit.write_kit import is_relative
from panpan.system.files.canonical import canonical_path, is_below
from panpan.system.files.folder_tree import temporary_folder
from panpan.system.files.read_file import read_regular_file
from panpan.system.sandbox.command_sandbox import FindSandbox, find_when_needed
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass

_MAX_BYTES = 60_000_000
"""Largest file of a kit."""
_PATH = ("/usr/local/bin", "/usr/bin", "/bin")
_INSTALL_S = 1_800.0
_COMPARE_S = 300.0
_MAX_CHARS = 500
_OF_INDEXES = ("PIP_", "UV_", "SSL_CERT")
"""Beginnings of variables that say where packages come from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOptions:
    """Choices of the user."""

    data: Path | None = None
    """Folder with the data that is not in the kit."""
    has_network: bool = False
    """True if the commands may use the network; without it, only package indexes can be reached, to install a lock."""
    environ: Mapping[str, str]
    """The user's environment, of which commands get little."""
    find: FindSandbox = find_when_needed
    """Looks which sandbox works."""


@dataclass(frozen=True, slots=True)
class Verification:
    """Outcome of a kit that ran."""

    claims: Sequence[Mapping[str, Any]]
    """For each claim `id`, `value`, `verdict`, `checked` (that of the kit), `reason`, `here` (the numbers for
    people), `is_same` and `runs`."""
    packages: str = ""
    """Sentence about packages that are not those of the check; empty if all are, or if they are not known."""

    @property
    def is_same(self) -> bool:
        """True if every claim has the verdict of the check."""
        return all(one["is_same"] for one in self.claims)


def read_kit(kit: Path) -> tuple[Manifest, CheckReport]:
    """Compare the files of a kit with its manifest, and return it and the check.

    Raises:
        ConfigError: The kit is broken; the error names the file.
    """
    manifest = _manifest(kit)
    for file in manifest.files:
        data = _read(kit, file.path)
        if sha256(data).hexdigest() != file.sha256:
            raise ConfigError(f"the kit {kit} is broken: {clean_line(file.path)} is not what {MANIFEST} says")
    named = {file.path for file in manifest.files}
    if missing := {"check.json", "reproduce.sh", "compare.py"} - named:
        raise ConfigError(f"the kit {kit} is broken: {MANIFEST} does not name {', '.join(sorted(missing))}")
    try:
        return manifest, CheckReport.model_validate_json(_read(kit, "check.json"))
    except ValidationError as error:
        raise ConfigError(f"the kit {kit} is broken: check.json is no check; ask for another kit") from error


def _manifest(kit: Path) -> Manifest:
    if not (kit / MANIFEST).is_file():
        raise ConfigError(f"{kit} is no kit: {MANIFEST} is missing; name the folder of a kit")
    try:
        manifest = Manifest.model_validate_json(_read(kit, MANIFEST))
    except ValidationError as error:
        raise ConfigError(f"the kit {kit} is broken: {MANIFEST} cannot be read; ask for another kit") from error
    if manifest.format != FORMAT:
        raise ConfigError(f"the kit {kit} has the format {clean_line(manifest.format)}; update panpan to read it")
    return manifest


def _read(kit: Path, name: str) -> bytes:
    path = canonical_path(kit / name)
    if not (is_relative(name) and is_below(path, kit)):
        raise ConfigError(f"the kit {kit} is broken: {clean_line(name)} lies outside of it")
    try:
        return read_regular_file(path, max_bytes=_MAX_BYTES)
    except (OSError, ToolError) as error:
        raise ConfigError(f"the kit {kit} is broken: {clean_line(name)} cannot be read; ask for another kit") from error


async def verify(kit: Path, options: VerifyOptions) -> Verification:
    """Run a kit in the sandbox, with an empty home and few variables, and compare with its check.

    Args:
        kit: Folder of the kit, canonical.
        options: Choices of the user.

    Raises:
        ConfigError: The kit is broken, or cannot run here; the error says why.
        ToolError: A command cannot be started.
    """
    manifest, check = await to_thread.run_sync(read_kit, kit)
    with temporary_folder("panpan-kit-") as top:
        box = canonical_path(top) / "box"
        environ = await to_thread.run_sync(_make_box, kit, manifest, box, options.environ)
        home = panpan_home(options.environ, kit)
        grounds = ground_at(
            box, box, box.with_name("receipts.jsonl"), environ, home=home, is_boxed=True, find=options.find
        )
        try:
            async with grounds as ground:
                await _run(ground, manifest, check, options)
                claims = await _compared(ground, check)
                return Verification(claims, await to_thread.run_sync(_other_packages, kit, manifest, ground))
        except UnfitError as error:
            raise ConfigError(
                f"no sandbox works here; run sh reproduce.sh yourself if you trust the kit {kit}"
            ) from error


def _make_box(kit: Path, manifest: Manifest, box: Path, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Copy the kit into a new folder with an empty home, and return the variables."""
    for name in ("home", "bin", "work", "tmp"):
        (box / name).mkdir(parents=True)
    for file in manifest.files:
        target = box / "kit" / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(_read(kit, file.path))
    path = [str(box / "bin"), *_PATH]
    wanted = ["python3"] if manifest.environment.lock == "none" else ["python3", "uv"]
    for program in wanted:
        found = shutil.which(program, path=environ.get("PATH"))
        if found and shutil.which(program, path=os.pathsep.join(_PATH)) is None:
            (box / "bin" / program).symlink_to(found)
    indexes = {name: value for name, value in environ.items() if name.startswith(_OF_INDEXES)}
    own = {} if manifest.environment.lock == "none" else {**indexes, "UV_CACHE_DIR": str(box / "tmp" / "uv")}
    return {**own, "PATH": os.pathsep.join(path), "HOME": str(box / "home"), "LANG": "C.UTF-8"}


async def _run(ground: Ground, manifest: Manifest, check: CheckReport, options: VerifyOptions) -> None:
    runs = runs_of(check.model_dump(mode="json"))
    data = ("-d", str(canonical_path(options.data))) if options.data else ()
    box = ground.workspace
    command = Command(
        "reproduce",
        ("/bin/sh", str(box / "kit/reproduce.sh"), *data, "-w", str(box / "work")),
        sum(run["timeout_s"] for run in runs) + _INSTALL_S,
        has_network=options.has_network,
        hosts=manifest.hosts,
    )
    verdict = await run_command(command, ground, {})
    if verdict.timed_out or verdict.exit_code not in (0, 1):
        said = "its time was up" if verdict.timed_out else _end_of(verdict.output)
        advice = "" if command.has_network or not command.hosts else "; add --network if packages come from elsewhere"
        raise ConfigError(f"the kit cannot run here: {said}{advice}")


def _end_of(output: str) -> str:
    """Return the last line, which says what is wrong, and the one before it, which may say why."""
    *others, last = [line for line in map(clean_line, output.splitlines()) if line] or ["it printed nothing"]
    return last.removeprefix("reproduce.sh: ") + (f" ({others[-1][:_MAX_CHARS]})" if others else "")


async def _compared(ground: Ground, check: CheckReport) -> Sequence[Mapping[str, Any]]:
    """Find the numbers with panpan's own program, in the sandbox: files and patterns are a stranger's."""
    own = ground.workspace.with_name("own")
    program, listing, found = own / "compare.py", own / "check.json", own / "found.json"

    def write() -> None:
        own.mkdir()
        shutil.copyfile(Path(__file__).with_name("compare.py"), program)
        listing.write_text(check.model_dump_json(), encoding="utf-8")

    await to_thread.run_sync(write)
    # with this Python: in the box, the kit may have put a program or a module of its own in the place of one
    words = (
        sys.executable,
        "-I",
        "-S",
        str(program),
        "table",
        str(listing),
        str(ground.workspace / "work/results"),
        str(found),
    )
    verdict = await run_command(Command("compare", words, _COMPARE_S, writable=(own,)), ground, {})
    if verdict.exit_code not in (0, 1) or not found.is_file():
        raise ConfigError(f"the numbers of the kit cannot be found: {_end_of(verdict.output)}")
    text = await to_thread.run_sync(lambda: read_regular_file(found, max_bytes=_MAX_BYTES))
    claims: Sequence[Mapping[str, Any]] = json.loads(text)["claims"]
    return claims


def _other_packages(kit: Path, manifest: Manifest, ground: Ground) -> str:
    """Compare the packages that the commands had with those of the check. Nothing of the environment is run."""
    if PACKAGES not in {file.path for file in manifest.files}:
        return ""
    path = f"{ground.workspace}/work/venv/bin{os.pathsep}{ground.environ['PATH']}"
    environments = ground.recorder.environments
    found = environments.identity(ground.workspace, {"PATH": path})
    packages = environments.packages(found.packages_sha256)
    if packages is None:
        return ""
    here = {name: version for name, _, version in (one.partition("==") for one in packages)}
    return other_packages(_read(kit, PACKAGES).decode(errors="replace"), here, ".".join(found.version.split(".")[:2]))

"""What `panpan doctor` finds out about other programs: git, ripgrep, bash, a sandbox, a browser.

A program that lies in the project is never run, not even for its version: whoever wrote the repository wrote it.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from panpan.capabilities.language_servers.catalogue import server_kinds
from panpan.capabilities.language_servers.server_process import find_program
from panpan.capabilities.web.browser.running_chromium import DRIVER, find_chromium
from panpan.cli.doctor.doctor_checks import Check
from panpan.config.limits import limits_of
from panpan.config.sources import Loaded
from panpan.errors import ToolError
from panpan.system.environment import child_environment
from panpan.system.files.canonical import canonical_path, is_below
from panpan.system.own_packages import how_to_install
from panpan.system.processes.limits import RUNNING_TASKS_FILE, Limits, limits_trial
from panpan.system.processes.process import capture
from panpan.system.sandbox.choice import SandboxChoice, find_sandbox

_TIMEOUT_S = 5.0


class Programs:
    """The programs on the user's path that the project cannot have put there.

    Args:
        env: The environment; its `PATH` counts.
        project_root: Canonical folder whose programs are passed over.
    """

    def __init__(self, env: Mapping[str, str], project_root: Path) -> None:
        self._env = env
        self._project_root = project_root
        entries = env.get("PATH", os.defpath).split(os.pathsep)
        self._folders = [
            entry for entry in entries if Path(entry).is_absolute() and not self._is_in(entry, project_root)
        ]

    @staticmethod
    def _is_in(entry: str, project_root: Path) -> bool:
        try:
            return is_below(canonical_path(Path(entry)), project_root)
        except ToolError:  # no path that leads anywhere
            return True

    def find(self, name: str, *, beside: Path | None = None) -> str | None:
        """Return the absolute path of the program, or None; one in the folder `beside` comes first."""
        folders = [str(beside), *self._folders] if beside else self._folders
        return next((found for folder in folders if (found := shutil.which(name, path=folder))), None)

    def find_server(self, name: str, *, is_trusted: bool) -> str | None:
        """Return the program of a language server, or None; in a trusted project one of the project's own is found."""
        return find_program(name, self._env, self._project_root) if is_trusted else self.find(name)

    async def check(self, name: str, why: str, *, program: str | None = None, beside: Path | None = None) -> Check:
        """Return whether a program is there and starts, with the first line of its `--version`.

        Args:
            name: What the check is called, and the program, where `program` is not given.
            why: What panpan cannot do without it.
            program: The name of its file.
            beside: A folder to look in before all others.
        """
        path = self.find(program or name, beside=beside)
        if path is None:
            return Check(name, "missing", "not found", why)
        version = await _first_line([path, "--version"])
        if version is None:
            return Check(name, "missing", f"{path} does not start", why)
        return Check(name, "ok", f"{version} ({path})")

    def check_browser(self, loaded: Loaded | None) -> Check:
        """Return the browser for pages that need one; it is not started.

        Args:
            loaded: The settings; None where they cannot be read.
        """
        chosen = loaded.settings.web.browser if loaded is not None else "auto"
        if loaded is not None and chosen == "off":
            return Check("browser", "note", f"the browser is switched off by {loaded.origins['web.browser']}")
        has_driver = find_spec("playwright") is not None
        how = "" if has_driver else f"Playwright, which drives it, is missing; run: {how_to_install(DRIVER)}"
        try:
            found = find_chromium(chosen, os.pathsep.join(self._folders), self._env)
        except ToolError as exc:
            advice = "; ".join(filter(None, (str(exc), how)))
            return Check("browser", "optional" if chosen == "auto" else "missing", "no browser", advice)
        return Check("browser", "ok", found) if has_driver else Check("browser", "optional", found, how)


def check_language_servers(programs: Programs, loaded: Loaded) -> Check:
    """Return which language servers there are that would be started here; none is."""
    name, settings = "code", loaded.settings.language_servers
    kinds = server_kinds(settings)
    is_trusted = loaded.trust.is_trusted
    found = [kind.name for kind in kinds if programs.find_server(kind.command[0], is_trusted=is_trusted)]
    if not settings.enabled:
        return Check(name, "note", f"language servers are switched off by {loaded.origins['language_servers.enabled']}")
    if not found:
        advice = "with one, such as ty for Python, the model finds its way by meaning and is told of errors it makes"
        return Check(name, "optional", "no language server", advice)
    if not is_trusted:
        advice = "they are started in trusted projects only; `panpan trust add` trusts this one"
        return Check(name, "note", f"language servers: {', '.join(found)}", advice)
    return Check(name, "ok", f"language servers: {', '.join(found)}")


async def _first_line(command: Sequence[str]) -> str | None:
    """Return the first line that a program prints, or None where it cannot be run or fails."""
    try:
        ended = await capture(command, cwd=Path("/"), env=child_environment(), timeout_s=_TIMEOUT_S, max_bytes=100_000)
    except ToolError:
        return None
    if ended.exit_code != 0 or ended.timed_out:
        return None
    return ended.stdout.decode(errors="replace").partition("\n")[0].strip()


async def check_sandbox(loaded: Loaded | None) -> Check:
    """Return what keeps commands in bounds here, tried with a harmless one, and why it is not the better one.

    Args:
        loaded: The settings; None where they cannot be read.
    """
    choice = await find_sandbox()
    if loaded is not None and loaded.settings.sandbox.mode == "off":
        works = "none works here" if choice.sandbox is None else f"{choice.sandbox.name} works"
        origin = loaded.origins["sandbox.mode"]
        return Check("sandbox", "note", f"switched off by {origin}", f"commands run with all your rights; {works}")
    return sandbox_check(choice)


def sandbox_check(choice: SandboxChoice) -> Check:
    """Return what to say of the sandbox that was found, where it is not switched off."""
    reasons = "; ".join(choice.passed_over)
    if choice.sandbox is None:
        advice = f'every command asks, unless you set sandbox.mode to "off"; {reasons}'
        return Check("sandbox", "missing", "none works here", advice)
    found = f"commands run in {choice.sandbox.name}"
    if reasons:
        return Check("sandbox", "note", found, f"{reasons}. Its limits: {'; '.join(choice.sandbox.limits)}")
    return Check("sandbox", "ok", found)


async def check_limits(loaded: Loaded | None) -> Check:
    """Return which limits of commands the system knows, tried with a shell.

    Args:
        loaded: The settings; None where they cannot be read.
    """
    limits = Limits() if loaded is None else limits_of(loaded.settings.limits)
    try:
        tried = await capture(
            limits_trial(limits), cwd=Path("/"), env=child_environment(), timeout_s=_TIMEOUT_S, max_bytes=1_000
        )
    except ToolError as exc:
        return Check("limits", "missing", "limits of commands cannot be tried", str(exc))
    return limits_check(limits, tried.stdout.decode().split())


def limits_check(limits: Limits, lacking: Sequence[str]) -> Check:
    """Return what to say of the limits of commands.

    Args:
        limits: Those of the settings.
        lacking: Keys of those that cannot be set.
    """
    names = ", ".join(f"limits.{key}" for key in lacking)
    if any(key in limits.required for key in lacking):
        return Check("limits", "missing", f"cannot be set: {names}", "no command runs; remove it from your settings")
    if lacking:
        return Check("limits", "note", f"cannot be set: {names}", "commands run without it")
    if limits.processes is not None and limits.already_running is None:
        return Check("limits", "note", "processes of commands are not counted", f"{RUNNING_TASKS_FILE} cannot be read")
    return Check("limits", "ok", "all limits of commands can be set")

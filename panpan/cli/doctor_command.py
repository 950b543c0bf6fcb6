"""`panpan doctor`: checks everything that panpan uses, and says how to fix problems.

The last lines say if panpan can work here. The exit code is 1 if it cannot, since something is broken or there is no
model to ask. Anything that is only missing costs a feature.
"""

import json
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import anyio
import click

import panpan
from panpan.cli.start import daemon_socket
from panpan.cli.subcommands import feature_modules
from panpan.cli.trust_command import summary
from panpan.cli_kit.commands import chosen_folder
from panpan.cli_kit.doctor import MAX_NAMED, SMALL_MODEL, Check, Machine, Section, Status, name_first
from panpan.config.claude_settings import claude_files
from panpan.config.keys import shown
from panpan.config.locations import Locations, snapshots_folder
from panpan.config.models import VENDORS
from panpan.config.project_limits import limits_of
from panpan.config.sources import Loaded, load_settings
from panpan.config.stored_keys import LOGIN
from panpan.config.trust import ProjectTrust
from panpan.errors import ConfigError, ToolError
from panpan.system.environment import child_environment
from panpan.system.files.folder_tree import walk
from panpan.system.processes.limits import RUNNING_TASKS_FILE, Limits, limits_trial
from panpan.system.processes.process import capture
from panpan.system.sandbox.choice import SandboxChoice, find_sandbox

_COLOURS = {"ok": "green", "note": "yellow", "optional": None, "missing": "yellow", "broken": "red"}


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--cwd", type=click.Path(path_type=Path), metavar="FOLDER", help="Folder to start from.")
@click.pass_context
def command(ctx: click.Context, as_json: bool, cwd: Path | None) -> int:
    """Show what panpan finds on this machine."""
    locations = Locations.find(chosen_folder(ctx, cwd), os.environ)
    groups = anyio.run(all_checks, locations, os.environ)
    checks = [check for group in groups.values() for check in group]
    is_fit, verdict = judge_checks(checks)
    if as_json:
        found = {"ok": is_fit, "verdict": verdict, "checks": [asdict(check) for check in checks]}
        click.echo(json.dumps(found, indent=2))
    else:
        click.secho(verdict, bold=True)
        for title, group in groups.items():
            click.secho(f"\n{title}", bold=True)
            for check in group:
                click.echo(f"  {_line(check)}")
        click.secho(f"\n{verdict}", bold=True)
    return 0 if is_fit else 1


def judge_checks(checks: Sequence[Check]) -> tuple[bool, str]:
    """Return True if panpan can work here, and the verdict for the user."""
    broken = list(dict.fromkeys(check.name for check in checks if check.status == "broken"))
    if broken:
        return False, f"panpan cannot work here until this is fixed: {', '.join(broken)}"
    models = [check for check in checks if check.name == MODEL and check.status == "ok"]
    if models:
        return True, f"panpan is ready; it asks {shown(models[0].found)}"
    servers = [check for check in checks if check.name == LOCAL_MODEL and check.status == "ok"]
    if any(check.name == SMALL_MODEL and check.status == "ok" for check in checks):
        offer = f"offers what runs here ({shown(servers[0].found)}), else " if servers else ""
        return True, f"panpan is ready; where nothing says which model, it {offer}asks the small local one"
    if servers:
        return True, f"panpan is ready once you choose a model: {shown(servers[0].found)}"
    from panpan.models.local_servers import advice_without_model

    return False, f"panpan cannot work yet: {advice_without_model(())}"


async def all_checks(locations: Locations, env: Mapping[str, str]) -> Mapping[str, Sequence[Check]]:
    """Make every check, slow ones concurrently, and return them by group in reading order."""
    settings, loaded = check_settings(locations, env)
    models, model_kind = check_model(loaded, locations, env) if loaded else ([], "")
    machine = Machine(locations, env, loaded, model_kind)
    features = [module.CHECKS for module in feature_modules("doctor")]

    def of_features(section: Section) -> Iterator[Check]:
        return (check for checks in features if section in checks for check in checks[section](machine))

    programs, servers = await _programs_and_servers(machine)
    return {
        "Model": [
            *models,
            *of_features("model"),
            *(check_other_keys(loaded, env) if loaded else ()),
            *servers,
        ],
        "Settings": settings,
        "Programs": [*programs, *of_features("programs")],
        "Network": [*of_features("web"), *check_network()],
        "This machine": [
            check_panpan(),
            *check_daemon(env),
            check_python(),
            check_system(),
            check_terminal(env),
        ],
        "Files of panpan": [
            check_home(locations.home),
            check_snapshots(locations),
            *of_features("leavings"),
            *check_unfinished(locations),
        ],
    }


async def _programs_and_servers(machine: Machine) -> tuple[Sequence[Check], Sequence[Check]]:
    beside_python = Path(sys.executable).parent
    without_git = "without it there is no branch or change shown to the model"
    without_ripgrep = "Grep and Glob are slower without it; install ripgrep"
    async with anyio.create_task_group() as group:
        waiting = [
            group.start_soon(check)
            for check in (
                lambda: check_program(machine, "git", without_git),
                lambda: check_program(machine, "ripgrep", without_ripgrep, program="rg", beside=beside_python),
                lambda: check_program(machine, "bash", "the Bash tool cannot run commands without it"),
                lambda: check_sandbox(machine.loaded),
                lambda: check_limits(machine.loaded),
            )
        ]
        servers = group.start_soon(check_servers)
    return [task.return_value for task in waiting], servers.return_value


def _line(check: Check) -> str:
    status = click.style(f"{check.status:8}", fg=_COLOURS[check.status])
    advice = f": {shown(check.advice)}" if check.advice else ""
    return f"{status} {check.name:11} {shown(check.found)}{advice}"


OLDEST_PYTHON = (3, 11)
_TIMEOUT_S = 5.0

MODEL = "model"
LOCAL_MODEL = "local model"
"""Names of the checks that the verdict depends on."""


def check_python() -> Check:
    """Check the version of the interpreter that runs panpan."""
    found = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info[:2] < OLDEST_PYTHON:
        return Check("python", "broken", found, f"panpan needs {'.'.join(map(str, OLDEST_PYTHON))} or newer")
    return Check("python", "ok", found)


def check_panpan() -> Check:
    """Report the version and folder of the running panpan."""
    folder = Path(panpan.__file__).parent
    return Check("panpan", "ok", f"{panpan.__version__} ({folder})")


def check_snapshots(locations: Locations) -> Check:
    """Report the size of the snapshots, which only grows, since nothing is deleted by age."""
    here = _size_mb(snapshots_folder(locations.home, locations.project_root))
    all_ = sum(_size_mb(folder) for folder in locations.home.glob("projects/*/snapshots*"))
    return Check("snapshots", "ok", f"{here:,.1f} MB of this project, {all_:,.1f} MB of all, below {locations.home}")


def _size_mb(folder: Path) -> float:
    """Return the MB (10⁶ bytes) of the files below a folder; 0 if it does not exist."""
    total = 0
    for here, _, files in walk(folder):
        for name in files:
            with suppress(OSError):
                total += (Path(here) / name).lstat().st_size
    return total / 1_000_000


def check_system() -> Check:
    """Check the operating system; Windows itself is not supported."""
    found = platform.platform()
    if sys.platform not in ("linux", "darwin"):
        return Check("system", "broken", found, "panpan runs on Linux and macOS, and on Windows inside WSL")
    return Check("system", "ok", found)


def check_terminal(env: Mapping[str, str]) -> Check:
    """Check the terminal: its size and encoding, and that it is one."""
    streams = {"input": sys.stdin, "output": sys.stdout}
    closed = [name for name, stream in streams.items() if stream is None or not stream.isatty()]
    if closed:
        return Check("terminal", "note", f"{' and '.join(closed)} not a terminal", "panpan runs headless like this")
    size = shutil.get_terminal_size()
    encoding = sys.stdout.encoding.lower()
    found = f"{env.get('TERM') or 'TERM not set'}, {size.columns}x{size.lines}, {encoding}"
    if encoding.replace("-", "") != "utf8":
        return Check("terminal", "note", found, "text may look broken; set LANG to a UTF-8 locale such as C.UTF-8")
    return Check("terminal", "ok", found)


def check_home(home: Path) -> Check:
    """Check the folder with sessions, settings and logs."""
    found = str(home)
    try:
        status = home.stat()
    except FileNotFoundError:
        return _check_place_of_home(home)
    except OSError as exc:
        return Check("home", "broken", found, f"{exc.strerror}; set PANPAN_HOME to a folder of yours")
    if not home.is_dir() or not os.access(home, os.R_OK | os.W_OK | os.X_OK):
        return Check("home", "broken", found, "it must be a folder that you may write; set PANPAN_HOME to one")
    if status.st_uid != os.geteuid():
        return Check("home", "broken", found, "it belongs to another user; set PANPAN_HOME to a folder of yours")
    if status.st_mode & 0o077:
        return Check("home", "note", found, f"other users may look into it; run: chmod 700 {shown(home)}")
    return Check("home", "ok", found)


def _check_place_of_home(home: Path) -> Check:
    above = next(folder for folder in home.parents if folder.exists())
    if above.is_dir() and os.access(above, os.W_OK | os.X_OK):
        return Check("home", "ok", f"{home} (made with the first session)")
    return Check("home", "broken", f"{home} cannot be made", "set PANPAN_HOME to a folder that you may write")


def check_settings(locations: Locations, env: Mapping[str, str]) -> tuple[list[Check], Loaded | None]:
    """Check the settings files, and return the settings as well; None if the files are broken."""
    try:
        loaded = load_settings(locations.project_root, env, {}, locations)
    except ConfigError as exc:
        advice = "fix it; panpan does not start with settings that it cannot read"
        return [Check("settings", "broken", str(exc), advice)], None
    files = [
        Check("settings", "ok", f"{source.place} ({_OWNERS[source.kind]})") for source in loaded.sources if source.file
    ]
    warnings = [Check("settings", "note", warning) for warning in loaded.warnings]
    warnings += [
        Check("settings", "note", f"{file.place}: without effect here: {', '.join(file.unused)}")
        for file in claude_files(loaded.trust)
        if file.unused
    ]
    none = Check("settings", "ok", f"no file; yours would be {locations.user_settings}")
    return [*(files or [none]), _check_trust(loaded.trust), *warnings], loaded


def _check_trust(trust: ProjectTrust) -> Check:
    """Check the user's trust in the project's files."""
    brings_nothing = not trust.files.content and not trust.files.problems
    status: Status = "ok" if trust.is_trusted or brings_nothing else "note"
    advice = "" if status == "ok" else "`panpan trust` shows it; until then it may only ask for more care"
    return Check("trust", status, f"{trust.files.root} is {summary(trust)}", advice)


_OWNERS: Mapping[str, str] = {"user": "yours", "project": "the project's", "local": "yours for this project"}


def check_model(loaded: Loaded, locations: Locations, env: Mapping[str, str]) -> tuple[list[Check], str]:
    """Check the chosen model and the place of its key without a request, and return the kind of the model as well."""
    from panpan.app import kinds_of
    from panpan.models.factory import resolve_from
    from panpan.models.model_choice import NoModelError

    try:
        model = resolve_from(loaded, env, kinds=kinds_of(loaded, locations))
    except NoModelError as exc:
        return [Check(MODEL, "missing", "none is chosen", str(exc))], ""
    except ConfigError as exc:
        return [Check(MODEL, "broken", "the one that is chosen cannot be asked", str(exc))], ""
    where = f"from {LOGIN}" if model.key_place == LOGIN else f"found in {model.key_place}"
    key = where if model.key_place else "none is sent; fine for a server that asks for none"
    return [Check(MODEL, "ok", model.reason), Check("key", "ok", key)], model.kind or ""


def check_other_keys(loaded: Loaded, env: Mapping[str, str]) -> list[Check]:
    """Report the keys that are there by their variables or vendors; their values are not shown."""
    variables = ["PANPAN_API_KEY", *(variable for vendor in VENDORS for variable in vendor.key_variables)]
    variables += [provider.api_key_env or "" for provider in loaded.settings.providers.values()]
    present = [variable for variable in dict.fromkeys(variables) if env.get(variable, "").strip()]
    found = [f"set: {', '.join(present)}"] if present else []
    if stored := loaded.keys.vendors:
        found.append(f"from {LOGIN}: {', '.join(stored)}")
    if not found:
        return [Check("keys", "optional", "no variable holds a key, and you are logged in nowhere")]
    return [Check("keys", "ok", "; ".join(found))]


async def check_servers() -> list[Check]:
    """Report the model servers on this machine, each with the flag that uses it."""
    from panpan.models.local_servers import find_local_servers

    found = await find_local_servers()
    if not found:
        return [Check(LOCAL_MODEL, "optional", "no model server runs here", "only matters if you want local models")]
    return [Check(LOCAL_MODEL, "ok", f"{server.title} at {server.base_url}; use {server.flag}") for server in found]


def check_network() -> list[Check]:
    """Check the variables that redirect requests; their values may hold passwords, so only names are shown."""
    from panpan.models.network_variables import network_variables, variables_fault

    variables = network_variables()
    checks = [Check("network", "ok", f"requests follow {', '.join(variables)}")] if variables else []
    if variables and (fault := variables_fault()):
        checks.append(Check("network", "broken", str(fault), "requests will fail"))
    return checks


def check_daemon(env: Mapping[str, str]) -> list[Check]:
    """Report whether the daemon runs that lets headless runs begin sooner, where there can be one."""
    from panpan.cli.daemon.command import asked, status_lines

    if (path := daemon_socket(env)) is None:
        return []
    try:
        facts = asked(path, b"status")
    except ConfigError as error:
        return [Check("daemon", "note", "one runs that serves nobody", str(error))]
    if facts is None:
        return [Check("daemon", "optional", "none runs", "`panpan daemon start` lets headless runs begin sooner")]
    return [Check("daemon", "ok", "; ".join(status_lines(facts)))]


def check_unfinished(locations: Locations) -> list[Check]:
    """Report sessions that a fork or an import left unfinished."""
    from panpan.session.log.recorder import unfinished_copies

    left = unfinished_copies([locations.sessions_folder])
    return [Check("unfinished", "note", f"no session: {name_first(left)}", how_to_remove(left))] if left else []


def how_to_remove(unfinished: Sequence[Path]) -> str:
    """Return the advice for files that a fork or an import left unfinished."""
    files = " ".join(shlex.quote(str(path)) for path in unfinished[:MAX_NAMED])
    return f"a fork or an import was killed at work; the session that it copied is whole. Remove with: rm {files}"


async def check_program(
    machine: Machine, name: str, why: str, *, program: str | None = None, beside: Path | None = None
) -> Check:
    """Check that a program is installed and starts, and report the first line of its `--version`.

    A program inside the project is never run, not even for its version: it comes from whoever wrote the repository.

    `name`: name of the check, and of the program unless `program` is given. `beside`: folder to search before all
    others.
    """
    path = machine.find_program(program or name, beside=beside)
    if path is None:
        return Check(name, "missing", "not found", why)
    version = await _first_line([path, "--version"])
    if version is None:
        return Check(name, "missing", f"{path} does not start", why)
    return Check(name, "ok", f"{version} ({path})")


async def _first_line(command: Sequence[str]) -> str | None:
    """Return the first line of a program's output; None if it cannot be run or fails."""
    try:
        ended = await capture(command, cwd=Path("/"), env=child_environment(), timeout_s=_TIMEOUT_S, max_bytes=100_000)
    except ToolError:
        return None
    if ended.exit_code != 0 or ended.timed_out:
        return None
    return ended.stdout.decode(errors="replace").partition("\n")[0].strip()


async def check_sandbox(loaded: Loaded | None) -> Check:
    """Check the sandbox by running a harmless command, and report why a better one does not work."""
    choice = await find_sandbox()
    if loaded is not None and loaded.settings.sandbox.mode == "off":
        works = "none works here" if choice.sandbox is None else f"{choice.sandbox.name} works"
        origin = loaded.origins["sandbox.mode"]
        return Check("sandbox", "note", f"switched off by {origin}", f"commands run with all your rights; {works}")
    return sandbox_check(choice)


def sandbox_check(choice: SandboxChoice) -> Check:
    """Return the check of the sandbox that was found, if it is not switched off."""
    reasons = "; ".join(choice.passed_over)
    if choice.sandbox is None:
        advice = f"commands that you or a rule allow run with all your rights; {reasons}"
        return Check("sandbox", "missing", "none works here", advice)
    found = f"commands run in {choice.sandbox.name}"
    if reasons:
        return Check("sandbox", "note", found, f"{reasons}. Its limits: {'; '.join(choice.sandbox.limits)}")
    return Check("sandbox", "ok", found)


async def check_limits(loaded: Loaded | None) -> Check:
    """Check which limits of commands the system supports, by setting them in a shell."""
    limits = Limits() if loaded is None else limits_of(loaded.settings.limits)
    try:
        tried = await capture(
            limits_trial(limits), cwd=Path("/"), env=child_environment(), timeout_s=_TIMEOUT_S, max_bytes=1_000
        )
    except ToolError as exc:
        return Check("limits", "missing", "limits of commands cannot be tried", str(exc))
    return limits_check(limits, tried.stdout.decode().split())


def limits_check(limits: Limits, lacking: Sequence[str]) -> Check:
    """Return the check of the limits of commands.

    `lacking`: keys of the limits that cannot be set.
    """
    names = ", ".join(f"limits.{key}" for key in lacking)
    if any(key in limits.required for key in lacking):
        return Check("limits", "missing", f"cannot be set: {names}", "no command runs; remove it from your settings")
    if lacking:
        return Check("limits", "note", f"cannot be set: {names}", "commands run without it")
    if limits.processes is not None and limits.already_running is None:
        return Check("limits", "note", "processes of commands are not counted", f"{RUNNING_TASKS_FILE} cannot be read")
    return Check("limits", "ok", "all limits of commands can be set")

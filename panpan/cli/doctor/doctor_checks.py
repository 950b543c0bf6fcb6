"""What `panpan doctor` looks at: each check finds out one thing and says why it matters.

Nothing of the project is run, no key is shown, and nothing is changed. A check that cannot find out says so. What keeps
panpan from working is `broken`, what costs a feature is `missing`, and what most users never miss is `optional`.
"""

import os
import platform
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

import panpan
from panpan.cli.trust.trust_text import summary
from panpan.config.keys import shown
from panpan.config.locations import Locations, snapshots_folder
from panpan.config.sources import Loaded, load_settings
from panpan.config.trust import ProjectTrust
from panpan.config.vendors import VENDORS
from panpan.errors import ConfigError
from panpan.system.files.folder_tree import walk
from panpan.types.dataclass import dataclass

Status: TypeAlias = Literal["ok", "note", "optional", "missing", "broken"]

OLDEST_PYTHON = (3, 11)

MODEL = "model"
LOCAL_MODEL = "local model"
EMBEDDED_MODEL = "small model"
"""Names of the checks that the verdict looks at."""


@dataclass(frozen=True, slots=True)
class Check:
    """What was found about one thing."""

    name: str
    status: Status
    found: str
    """What is there."""
    advice: str = ""
    """Why it matters, or what to do; empty where all is well."""


def check_python() -> Check:
    """The interpreter that runs panpan."""
    found = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info[:2] < OLDEST_PYTHON:
        return Check("python", "broken", found, f"panpan needs {'.'.join(map(str, OLDEST_PYTHON))} or newer")
    return Check("python", "ok", found)


def check_panpan() -> Check:
    """The panpan that runs."""
    folder = Path(panpan.__file__).parent
    return Check("panpan", "ok", f"{panpan.__version__} ({folder})")


def check_snapshots(locations: Locations) -> Check:
    """What is kept of files to undo changes; it only grows, since nothing is deleted by age."""
    here = _size_mb(snapshots_folder(locations.home, locations.project_root))
    all_ = sum(_size_mb(folder) for folder in locations.home.glob("projects/*/snapshots*"))
    return Check("snapshots", "ok", f"{here:,.1f} MB of this project, {all_:,.1f} MB of all, below {locations.home}")


def _size_mb(folder: Path) -> float:
    """Return the MB (10⁶ bytes) of the files below a folder; 0 where there is none."""
    total = 0
    for here, _, files in walk(folder):
        for name in files:
            with suppress(OSError):
                total += (Path(here) / name).lstat().st_size
    return total / 1_000_000


def check_system() -> Check:
    """The operating system; Windows itself is not supported."""
    found = platform.platform()
    if sys.platform not in ("linux", "darwin"):
        return Check("system", "broken", found, "panpan runs on Linux and macOS, and on Windows inside WSL")
    return Check("system", "ok", found)


def check_terminal(env: Mapping[str, str]) -> Check:
    """Where panpan would ask and answer."""
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
    """The folder with sessions, settings and logs."""
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
    """The settings files, and what they make; None where they are broken."""
    try:
        loaded = load_settings(locations.project_root, env, {}, locations)
    except ConfigError as exc:
        advice = "mend it; panpan does not start with settings that it cannot read"
        return [Check("settings", "broken", str(exc), advice)], None
    files = [
        Check("settings", "ok", f"{source.place} ({_OWNERS[source.kind]})") for source in loaded.sources if source.file
    ]
    warnings = [Check("settings", "note", warning) for warning in loaded.warnings]
    none = Check("settings", "ok", f"no file; yours would be {locations.user_settings}")
    return [*(files or [none]), _check_trust(loaded.trust), *warnings], loaded


def _check_trust(trust: ProjectTrust) -> Check:
    """Whether what the project brings along is believed."""
    brings_nothing = not trust.files.content and not trust.files.problems
    status: Status = "ok" if trust.is_trusted or brings_nothing else "note"
    advice = "" if status == "ok" else "`panpan trust` shows it; until then it may only ask for more care"
    return Check("trust", status, f"{trust.files.root} is {summary(trust)}", advice)


_OWNERS: Mapping[str, str] = {"user": "yours", "project": "the project's", "local": "yours for this project"}


def check_model(loaded: Loaded, locations: Locations, env: Mapping[str, str]) -> list[Check]:
    """Which model would be asked, and where its key comes from; nothing is sent."""
    from panpan.app import kinds_of
    from panpan.models.factory import resolve_from
    from panpan.models.model_choice import NoModelError

    try:
        model = resolve_from(loaded, env, kinds=kinds_of(loaded, locations))
    except NoModelError as exc:
        return [Check(MODEL, "missing", "none is chosen", str(exc)), check_embedded(env)]
    except ConfigError as exc:
        return [Check(MODEL, "broken", "the one that is chosen cannot be asked", str(exc)), check_embedded(env)]
    key = f"found in {model.key_place}" if model.key_place else "none is sent; fine for a server that asks for none"
    embedded = check_embedded(env, is_chosen=model.kind == "local")
    return [Check(MODEL, "ok", model.reason), Check("key", "ok", key), embedded]


def check_other_keys(loaded: Loaded, env: Mapping[str, str]) -> list[Check]:
    """Which keys are in the environment, by the name of the variable; what is in it is not looked at further."""
    variables = ["PANPAN_API_KEY", *(variable for vendor in VENDORS for variable in vendor.key_variables)]
    variables += [provider.api_key_env or "" for provider in loaded.settings.providers.values()]
    present = [variable for variable in dict.fromkeys(variables) if env.get(variable, "").strip()]
    if not present:
        return [Check("keys", "optional", "no variable holds a key")]
    return [Check("keys", "ok", f"set: {', '.join(present)}")]


def check_search(loaded: Loaded, env: Mapping[str, str]) -> Check:
    """Which search engine WebSearch would ask; nothing is sent."""
    from panpan.capabilities.web.search.choice import NoEngine, chosen_engine

    engine = chosen_engine(loaded.settings.web, env)
    if isinstance(engine, NoEngine):
        return Check("web search", "missing" if engine.is_mistake else "optional", "no WebSearch", engine.why)
    from panpan.models.network_variables import network_variables

    found = f"asks {engine.title} at {engine.host}"
    if proxies := [name for name in network_variables() if name.lower() in ("http_proxy", "https_proxy", "all_proxy")]:
        return Check("web search", "note", found, f"the tools of the web go there directly, not over {proxies[0]}")
    return Check("web search", "ok", found)


def check_embedded(env: Mapping[str, str], *, is_chosen: bool = False) -> Check:
    """Whether the embedded model can be used; the hash of its weights is compared when it is.

    Args:
        env: The environment.
        is_chosen: Whether it is the one that would be asked.
    """
    from panpan.capabilities.local_model.warm_up import MODEL_NAME
    from panpan.capabilities.local_model.weight_store import embedded_store
    from panpan.capabilities.local_model.weights import require_machine

    try:
        store = embedded_store(env)
        store.require_ready()
        require_machine()
    except ConfigError as exc:
        return Check(EMBEDDED_MODEL, "broken" if is_chosen else "optional", "cannot be used", str(exc))
    return Check(EMBEDDED_MODEL, "ok", f"{store.path}; use --model {MODEL_NAME}")


async def check_servers() -> list[Check]:
    """Which model servers run on this machine, and the flag that uses each."""
    from panpan.models.local_servers import find_local_servers

    found = await find_local_servers()
    if not found:
        return [Check(LOCAL_MODEL, "optional", "no model server runs here", "only matters if you want local models")]
    return [Check(LOCAL_MODEL, "ok", f"{server.title} at {server.base_url}; use {server.flag}") for server in found]


def check_network() -> list[Check]:
    """Variables that lead requests elsewhere; their values may hold passwords, so only names are told."""
    from panpan.models.network_variables import network_variables, variables_fault

    variables = network_variables()
    checks = [Check("network", "ok", f"requests follow {', '.join(variables)}")] if variables else []
    if variables and (fault := variables_fault()):
        checks.append(Check("network", "broken", str(fault), "requests will fail"))
    return checks

import fcntl
import json
import os
import stat
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from panpan.capabilities.background.doctor import check_tasks
from panpan.capabilities.language_servers.doctor import check_language_servers
from panpan.capabilities.subagents.worktrees.worktree import Worktree, WorktreeRecords
from panpan.capabilities.web.doctor import check_browser
from panpan.cli.doctor_command import check_sandbox, command, judge_checks, limits_check, sandbox_check
from panpan.cli_kit.doctor import Check, Machine
from panpan.config.locations import Locations, snapshots_folder
from panpan.config.sources import load_settings
from panpan.config.trust import TrustStore, trust_of
from panpan.system.processes.limits import Limits
from panpan.system.sandbox.choice import SandboxChoice
from panpan.system.sandbox.profile import Boxed, Profile
from panpan.system.sandbox.seatbelt import Seatbelt
from tests.capabilities.background.harness import Home, start
from tests.fakes.runtime_weights import RUNTIME, installed_weights
from tests.needed_programs import need

KEY = "sk-doctor-0123456789abcdef"


def examine(folder: Path, env: Mapping[str, str]) -> tuple[int, dict[str, list[dict[str, Any]]], str]:
    """Run `panpan doctor --json` with nothing but `env` in the environment."""
    empty = {name: None for name in os.environ}
    arguments = ["--json", "--cwd", str(folder)]
    result = CliRunner().invoke(command, arguments, env=empty | dict(env), standalone_mode=False)
    found = json.loads(result.stdout)
    assert found["ok"] == (result.return_value == 0)
    by_name: dict[str, list[dict[str, Any]]] = {}
    for check in found["checks"]:
        by_name.setdefault(check["name"], []).append(check)
    return result.return_value, by_name, result.output


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {
        "PANPAN_HOME": str(tmp_path / "home"),
        "HOME": str(tmp_path),
        "PATH": os.environ["PATH"],
        "ANTHROPIC_API_KEY": KEY,
    }


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def machine_of(project: Path, env: Mapping[str, str]) -> Machine:
    locations = Locations.find(project, env)
    return Machine(locations, env, load_settings(project, env, {}, locations))


def test_doctor_is_ready_with_a_key_and_no_settings(project: Path, env: dict[str, str]) -> None:
    need("git")

    code, checks, output = examine(project, env)

    assert code == 0
    assert json.loads(output)["verdict"].startswith("panpan is ready; it asks claude-")
    assert [checks[name][0]["status"] for name in ("panpan", "python", "home", "settings", "git", "bash")] == ["ok"] * 6
    assert not Path(env["PANPAN_HOME"]).exists()


def test_doctor_reports_the_size_of_snapshots(project: Path, env: dict[str, str]) -> None:
    home = Path(env["PANPAN_HOME"])
    here = snapshots_folder(home, project)
    for folder, size in ((here, 2_500_000), (home / "projects" / "other" / "snapshots_around" / "x", 1_000_000)):
        folder.mkdir(parents=True)
        (folder / "pack").write_bytes(b"x" * size)

    _, checks, _ = examine(project, env)

    assert [check["found"] for check in checks["snapshots"]] == [f"2.5 MB of this project, 3.5 MB of all, below {home}"]


def test_doctor_names_leftovers_and_their_removal(project: Path, env: dict[str, str]) -> None:
    locations = Locations.find(project, env)
    worktree = locations.worktrees_folder / "panpan-0a1b2c3d"
    worktree.mkdir(parents=True)
    WorktreeRecords(worktree.parent).write(Worktree("0a1b2c3d", worktree, "", project, "0" * 40, "1" * 40))
    locations.sessions_folder.mkdir(parents=True)
    unfinished = locations.sessions_folder / "01a.unfinished"
    unfinished.write_text("{}")

    code, checks, _ = examine(project, env)

    assert code == 0
    (worktrees,), (files,) = checks["worktrees"], checks["unfinished"]
    assert (worktrees["status"], files["status"]) == ("note", "note")
    assert str(worktree) in worktrees["found"]
    assert f"git worktree remove --force {worktree}" in worktrees["advice"]
    assert f"rm {unfinished}" in files["advice"]


async def test_doctor_names_running_tasks_with_their_session(project: Path, env: dict[str, str]) -> None:
    locations = Locations.find(project, env)
    locations.sessions_folder.mkdir(parents=True)
    (locations.sessions_folder / "tasks.jsonl").touch()
    home = Home(locations.tasks_folder)  # of a session called "tasks"
    async with home.serving(keep=True) as tasks:
        await start(tasks, "sleep 600", title="npm run dev")

    checks = list(check_tasks(Machine(locations, env, None)))
    async with home.serving():
        pass  # which ends it

    assert checks == [Check("tasks", "note", "running in the background: npm run dev", "panpan -r tasks takes them up")]
    assert list(check_tasks(Machine(locations, env, None))) == []


def test_doctor_ignores_a_worktree_in_use(project: Path, env: dict[str, str]) -> None:
    locations = Locations.find(project, env)
    worktree = locations.worktrees_folder / "panpan-0a1b2c3d"
    worktree.mkdir(parents=True)
    WorktreeRecords(worktree.parent).write(Worktree("0a1b2c3d", worktree, "", project, "0" * 40, "1" * 40))
    fd = os.open(worktree, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)

    _, checks, _ = examine(project, env)
    os.close(fd)

    assert "worktrees" not in checks


def test_doctor_without_a_model_says_what_to_do(project: Path, env: dict[str, str]) -> None:
    del env["ANTHROPIC_API_KEY"]

    code, checks, output = examine(project, env)

    has_server = checks["local model"][0]["status"] == "ok"  # on the machine of who runs this
    assert code == (0 if has_server else 1)
    assert checks["model"][0]["status"] == "missing"
    assert checks["keys"][0]["status"] == "optional"
    assert has_server or "set ANTHROPIC_API_KEY" in json.loads(output)["verdict"]


SMALL = Check("small model", "ok", "/cache/model.gguf; use --model local")
SERVER = Check("local model", "ok", "Ollama at http://127.0.0.1:11434/v1; use --model ollama/qwen")


@pytest.mark.parametrize(
    ("checks", "is_fit", "said"),
    [
        ([Check("model", "ok", "m at p")], True, "panpan is ready; it asks m at p"),
        ([Check("model", "missing", "none"), SERVER], True, "use --model ollama/qwen"),
        ([Check("model", "missing", "none"), Check("local model", "optional", "none")], False, "panpan demo"),
        ([Check("model", "missing", "none"), SMALL], True, "it asks the small local one"),
        ([Check("model", "missing", "none"), SMALL, SERVER], True, "offers what runs here (Ollama at"),
        ([Check("model", "ok", "small"), Check("small model", "broken", "a")], False, "fixed: small model"),
        ([Check("model", "broken", "no such"), SERVER], False, "until this is fixed: model"),
        (
            [Check("home", "broken", "a"), Check("model", "ok", "m"), Check("home", "broken", "b")],
            False,
            "fixed: home",
        ),
        ([Check("model", "ok", "m"), Check("git", "missing", "not found")], True, "panpan is ready"),
        ([Check("settings", "broken", "a")], False, "fixed: settings"),
    ],
)
def test_verdict_depends_on_the_required_checks(checks: list[Check], is_fit: bool, said: str) -> None:
    found, verdict = judge_checks(checks)

    assert found == is_fit
    assert said in verdict


def test_doctor_accepts_the_embedded_model_once_set_up(
    project: Path, env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(RUNTIME)
    del env["ANTHROPIC_API_KEY"]

    def small_model(**more: str) -> tuple[int, str, str, str]:
        code, checks, output = examine(project, env | more)
        (check,) = checks["small model"]
        return code, check["status"], f"{check['found']}: {check['advice']}", json.loads(output)["verdict"]

    _, status, said, _ = small_model()
    assert (status, said) == (
        "optional",
        "cannot be used: the embedded model is not set up; run: panpan local setup",
    )
    code, status, _, verdict = small_model(PANPAN_MODEL="local")
    assert (code, status) == (1, "broken")
    assert verdict.endswith("until this is fixed: small model")

    weights = installed_weights(tmp_path / ".cache" / "panpan" / "models")

    code, status, said, verdict = small_model()
    assert (code, status) == (0, "ok")
    assert said == f"{weights.path}; use --model local: "
    assert "asks the small local one" in verdict
    code, _, _, verdict = small_model(PANPAN_MODEL="local")
    assert (code, verdict) == (
        0,
        "panpan is ready; it asks the small local model, on this machine, since the environment chose it",
    )
    assert weights.starts == []


def test_doctor_calls_an_unusable_model_broken(project: Path, env: dict[str, str]) -> None:
    code, checks, _ = examine(project, env | {"PANPAN_MODEL": "antropic/x"})

    assert code == 1
    assert checks["model"][0]["status"] == "broken"


def test_doctor_names_keys_by_their_variable_only(project: Path, env: dict[str, str]) -> None:
    home = Path(env["PANPAN_HOME"])
    home.mkdir(mode=0o700)
    (home / "settings.toml").write_text(f'[providers.x]\napi_key = "{KEY}-2"\n')
    (home / "settings.toml").chmod(0o600)
    env |= {"ANTHROPIC_API_KEY": KEY, "PANPAN_API_KEY": KEY + "-3", "HTTPS_PROXY": f"http://me:{KEY}-4@proxy"}

    code, checks, output = examine(project, env)

    assert code == 0
    assert checks["keys"][0]["found"] == "set: PANPAN_API_KEY, ANTHROPIC_API_KEY"
    assert checks["network"][0]["found"] == "requests follow HTTPS_PROXY"
    assert checks["model"][0]["status"] == "ok"
    assert KEY not in output


def test_doctor_advises_how_to_get_a_search_engine(project: Path, env: dict[str, str]) -> None:
    _, checks, _ = examine(project, env)

    [search] = checks["web search"]
    assert search["status"] == "optional"
    assert "put a key into TAVILY_API_KEY, BRAVE_API_KEY or EXA_API_KEY" in search["advice"]


@pytest.mark.parametrize(("more", "status"), [({}, "ok"), ({"https_proxy": "http://proxy:3128"}, "note")])
def test_doctor_names_the_search_engine_without_its_key(
    project: Path, env: dict[str, str], more: dict[str, str], status: str
) -> None:
    _, checks, output = examine(project, env | more | {"EXA_API_KEY": KEY + "-5"})

    [search] = checks["web search"]
    assert (search["status"], search["found"]) == (status, "asks Exa at api.exa.ai")
    assert KEY not in output


def test_doctor_names_broken_settings_and_exits_1(project: Path, env: dict[str, str]) -> None:
    need("git")
    (project / ".panpan").mkdir()
    (project / ".panpan" / "settings.toml").write_text("\nmodle = 1\n")

    code, checks, _ = examine(project, env)

    assert code == 1
    assert checks["settings"][0]["status"] == "broken"
    assert f"{project}/.panpan/settings.toml:2: there is no setting modle" in checks["settings"][0]["found"]
    assert checks["git"][0]["status"] == "ok"


def test_doctor_notes_ignored_settings_of_the_project(project: Path, env: dict[str, str]) -> None:
    (project / ".panpan").mkdir()
    (project / ".panpan" / "settings.toml").write_text('base_url = "http://evil"\n')

    code, checks, _ = examine(project, env)

    assert code == 0
    assert [check["status"] for check in checks["settings"]] == ["ok", "note"]
    assert "base_url is ignored" in checks["settings"][1]["found"]


def test_doctor_notes_an_untrusted_project(project: Path, env: dict[str, str]) -> None:
    (project / ".panpan").mkdir()
    (project / ".panpan" / "settings.toml").write_text('permission.allow = ["Bash"]\n')

    code, checks, _ = examine(project, env)

    assert code == 0
    assert (checks["trust"][0]["status"], checks["trust"][0]["found"]) == ("note", f"{project} is not trusted yet")
    assert "is not believed (permission.allow)" in checks["settings"][1]["found"]


def test_doctor_notes_a_home_that_others_may_read(project: Path, env: dict[str, str]) -> None:
    Path(env["PANPAN_HOME"]).mkdir()
    Path(env["PANPAN_HOME"]).chmod(0o755)

    code, checks, _ = examine(project, env)

    assert code == 0
    assert checks["home"][0]["status"] == "note"
    assert stat.S_IMODE(Path(env["PANPAN_HOME"]).stat().st_mode) == 0o755


@pytest.mark.parametrize("name", ["home", "home/below"])
def test_doctor_calls_a_home_that_is_no_folder_broken(
    project: Path, env: dict[str, str], tmp_path: Path, name: str
) -> None:
    (tmp_path / "home").touch()

    code, checks, _ = examine(project, env | {"PANPAN_HOME": str(tmp_path / name)})

    assert code == 1
    assert checks["home"][0]["status"] == "broken"


def test_doctor_names_language_servers_without_a_start(project: Path, env: dict[str, str], tmp_path: Path) -> None:
    env["PATH"] = f"{tmp_path}/bin:{project}/bin"
    program(tmp_path / "bin" / "ty", f"touch {tmp_path}/was-run")
    program(project / "bin" / "gopls", f"touch {tmp_path}/was-run")
    locations = Locations.find(project, env)

    [untrusted] = check_language_servers(machine_of(project, env))
    TrustStore(locations.home).keep(trust_of(locations).files, is_trusted=True)
    [trusted] = check_language_servers(machine_of(project, env))

    assert (untrusted.status, trusted.status) == ("note", "ok")
    assert "`panpan trust add`" in untrusted.advice
    assert untrusted.found == "language servers: ty"
    assert trusted.found == "language servers: ty, gopls"
    assert not (tmp_path / "was-run").exists()


def test_doctor_names_disabled_language_servers(project: Path, env: dict[str, str]) -> None:
    settings = Path(env["PANPAN_HOME"]) / "settings.toml"
    settings.parent.mkdir()
    settings.write_text("[language_servers]\nenabled = false\n")

    [check] = check_language_servers(machine_of(project, env))

    assert check.found.startswith("language servers are switched off by ")


@pytest.mark.parametrize(
    ("chosen", "status", "said"),
    [("off", "note", "the browser is switched off by "), ("/no/such/chromium", "missing", "no browser")],
)
def test_doctor_checks_the_browser_of_the_settings(
    project: Path, env: dict[str, str], chosen: str, status: str, said: str
) -> None:
    settings = Path(env["PANPAN_HOME"]) / "settings.toml"
    settings.parent.mkdir()
    settings.write_text(f'[web]\nbrowser = "{chosen}"\n')

    [check] = check_browser(machine_of(project, env))

    assert check.status == status
    assert check.found.startswith(said)


def test_doctor_advises_how_to_get_a_browser(project: Path, env: dict[str, str]) -> None:
    [check] = check_browser(machine_of(project, {**env, "PATH": "/nonexistent"}))

    assert check.status == "optional"
    assert "there is no Chromium or Chrome" in check.advice


def test_doctor_advises_how_to_install_the_browser_driver(
    project: Path, env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "chromium", "true")
    monkeypatch.setitem(sys.modules, "playwright", None)

    [check] = check_browser(machine_of(project, {**env, "PATH": str(tmp_path)}))

    assert check.status == "optional"
    assert f"{sys.executable} -m pip install 'playwright>=" in check.advice


def test_doctor_never_runs_programs_of_the_project(project: Path, env: dict[str, str], tmp_path: Path) -> None:
    for name in ("git", "bash", "bwrap", "chromium", "true"):
        program(project / "bin" / name, f"touch {tmp_path}/was-run; echo evil")
    (tmp_path / "link").symlink_to(project / "bin")
    env["PATH"] = f"{project}/bin:{tmp_path}/link:bin:."

    _, checks, output = examine(project, env)

    assert checks["git"][0]["status"] == checks["bash"][0]["status"] == "missing"
    assert checks["browser"][0]["status"] == "optional"
    assert not (tmp_path / "was-run").exists()
    assert "evil" not in output


def test_doctor_names_a_program_that_does_not_start(project: Path, env: dict[str, str], tmp_path: Path) -> None:
    program(tmp_path / "bin" / "git", "exit 3")
    program(tmp_path / "bin" / "bash", "printf 'bash 9 \\033[2J\\nmore\\n'")
    env["PATH"] = str(tmp_path / "bin")

    code, checks, _ = examine(project, env)

    assert code == 0
    assert checks["git"][0]["found"] == f"{tmp_path}/bin/git does not start"
    assert checks["bash"][0]["found"].startswith("bash 9 ")


def test_doctor_escapes_control_characters_in_its_lines(project: Path, env: dict[str, str]) -> None:
    program(project.parent / "bin" / "git", "printf 'git \\033[2J9\\n'")
    env["PATH"] = f"{project.parent}/bin"

    empty: dict[str, str | None] = {name: None for name in os.environ}
    result = CliRunner().invoke(command, ["--cwd", str(project)], env=empty | env)

    assert result.exit_code == 0
    assert "ok       git         git \\u001b[2J9 (" in result.output
    assert all(line.isprintable() for line in result.output.splitlines())
    lines = result.output.splitlines()
    assert lines[0] == lines[-1], "what there is to do, at the top and at the end"
    assert lines.index("Model") < lines.index("Programs") < lines.index("This machine")


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("SSL_CERT_FILE", "/nowhere/ca.pem", "SSL_CERT_FILE names /nowhere/ca.pem, which cannot be used: No such file"),
        ("https_proxy", f"http://me:{KEY}-4@:0", "https_proxy names an unusable proxy: http://:0;"),
    ],
)
def test_doctor_calls_a_wrong_network_variable_broken(
    project: Path, env: dict[str, str], variable: str, value: str, said: str
) -> None:
    code, checks, output = examine(project, {**env, variable: value})

    assert code == 1
    assert [check["status"] for check in checks["network"]] == ["ok", "broken"]
    assert checks["network"][0]["found"] == f"requests follow {variable}"
    assert checks["network"][1]["found"].startswith(said)
    assert KEY not in output


@dataclass
class ScriptedSandbox:
    """A sandbox that is only talked about."""

    name: str = "Second best"
    limits: Sequence[str] = ("it leaks", "it creaks")

    def wrap(self, argv: Sequence[str], profile: Profile, cwd: Path) -> AbstractContextManager[Boxed]:
        raise AssertionError

    async def tidy(self, needed: Collection[Path] = ()) -> None:
        raise AssertionError


def test_sandbox_check_says_why_no_better_sandbox_is_used() -> None:
    best = sandbox_check(SandboxChoice(ScriptedSandbox("The best")))
    on_mac = sandbox_check(SandboxChoice(Seatbelt()))
    second = sandbox_check(SandboxChoice(ScriptedSandbox(), ("the best cannot be used: it is not installed",)))
    none = sandbox_check(SandboxChoice(None, ("the best is old", "the second best is broken")))

    assert (best.status, best.found, best.advice) == ("ok", "commands run in The best", "")
    assert (on_mac.status, on_mac.found) == ("ok", "commands run in Seatbelt")
    assert (second.status, second.found) == ("note", "commands run in Second best")
    assert second.advice.endswith("the best cannot be used: it is not installed. Its limits: it leaks; it creaks")
    assert none.status == "missing"
    assert none.advice.startswith("commands that you or a rule allow run with all your rights")
    assert none.advice.endswith("the best is old; the second best is broken")


async def test_sandbox_check_names_the_setting_that_disables_it(tmp_path: Path, env: dict[str, str]) -> None:
    places = Locations.find(tmp_path, env)
    places.user_settings.parent.mkdir(parents=True)
    places.user_settings.write_text('[sandbox]\nmode = "off"\n')
    check = await check_sandbox(load_settings(tmp_path, env, {}, places))
    assert check.status == "note"
    assert check.found == f"switched off by {places.user_settings}:2"
    assert check.advice.startswith("commands run with all your rights; ")


def test_doctor_reports_limits_that_cannot_be_set() -> None:
    default = Limits(already_running=1)
    required = Limits(already_running=1, required=frozenset({"file_gb"}))

    assert limits_check(default, []).status == "ok"
    assert limits_check(default, ["processes"]) == Check(
        "limits", "note", "cannot be set: limits.processes", "commands run without it"
    )
    assert limits_check(required, ["processes"]).status == "note"
    assert limits_check(required, ["file_gb", "processes"]) == Check(
        "limits",
        "missing",
        "cannot be set: limits.file_gb, limits.processes",
        "no command runs; remove it from your settings",
    )
    assert limits_check(Limits(already_running=None), []) == Check(
        "limits", "note", "processes of commands are not counted", "/proc/loadavg cannot be read"
    )
    assert limits_check(Limits(already_running=None, processes=None), []).status == "ok"


def test_doctor_tries_real_limits(project: Path, env: dict[str, str]) -> None:
    _, checks, _ = examine(project, env)

    [found] = checks["limits"]
    assert found["status"] in ("ok", "note")


def test_doctor_tries_the_real_sandbox(project: Path, env: dict[str, str]) -> None:
    _, checks, _ = examine(project, env)

    [found] = checks["sandbox"]
    assert found["found"] in ("commands run in bubblewrap", "commands run in Landlock", "none works here")
    assert (found["status"] == "missing") == (found["found"] == "none works here")
    assert found["status"] == "ok" or found["advice"]

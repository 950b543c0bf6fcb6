"""The flags that a refusal names let the call run, whatever was refused."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from panpan.cli_kit.options import overrides_of
from panpan.config.locations import Locations
from panpan.config.sources import load_settings
from panpan.config.trust import trust_of
from panpan.types.permission import Allow, Ask, Decision, Deny, PermissionMode
from tests.capabilities.packages.conftest import make_environment
from tests.cli_kit.test_options import read
from tests.fakes.every_tool import FolderGate

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("Bash", {"command": "make"}),
    ("Bash", {"command": "python -m pytest -x tests"}),
    ("Bash", {"command": "cd src && make 'a b'"}),
    ("Bash", {"command": "for i in 1 2; do make $i; done"}),
    ("Bash", {"command": 'git commit -m "it\'s done"', "sandbox": "off"}),
    ("Bash", {"command": "git add -A && git commit -m x", "sandbox": "off"}),
    ("Bash", {"command": "a=$(make); echo $a", "sandbox": "off"}),
    ("Bash", {"command": "make fetch", "sandbox": "network"}),
    ("Bash", {"command": "git commit -m x"}),
    ("Bash", {"command": "pip install lamp"}),
    ("Bash", {"command": "curl https://example.org/x"}),
    ("Edit", {"file_path": "a.txt", "old_string": "a", "new_string": "b"}),
    ("Write", {"file_path": "new.txt", "content": "x"}),
    ("Write", {"file_path": "/outside/new.txt", "content": "x"}),
    ("Read", {"file_path": "/outside/new.txt"}),
    ("WebFetch", {"url": "https://example.org/page"}),
    ("WebSearch", {"query": "lamp"}),
    ("DatasetDownload", {"action": "prepare", "source": "https://example.org/a.csv"}),
    ("pip", {"operation": "install", "packages": ["lamp"]}),
    ("pip", {"operation": "uninstall", "packages": ["lamp"]}),
    ("pip", {"operation": "install", "packages": ["lamp @ https://example.org/lamp.whl"]}),
]


class Folder:
    """A project in which calls are judged as with `-p`."""

    def __init__(self, root: Path) -> None:
        self.env = {"HOME": str(root), "PANPAN_HOME": str(root / "home")}
        self.project = root / "project"
        make_environment(self.project / ".venv")
        libraries = next((self.project / ".venv").glob("lib/*/site-packages"))
        (libraries / "pip").mkdir(exist_ok=True)
        (libraries / "pip" / "__init__.py").touch()
        (self.project / ".git").mkdir()
        (self.project / "a.txt").write_text("a")
        (self.project / "src").mkdir()

    async def judged(self, tool: str, args: dict[str, Any], *flags: str) -> Decision:
        options = read(*flags)
        places = Locations.find(self.project, self.env)
        trust = trust_of(places).for_this_run() if options["trusts_project"] else None
        loaded = load_settings(self.project, self.env, overrides_of(options), places, trust=trust)
        gate = FolderGate(self.project, loaded, places)
        if await gate.sandbox.is_missing():
            pytest.skip("; ".join((await gate.sandbox.choice()).passed_over))
        decision = (await gate.judge(tool, args)).decision
        is_answered = options["auto_approve"] and isinstance(decision, Ask) and not decision.is_protected
        return Allow(decision.reason) if is_answered else decision


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "dontAsk", "plan"])
@pytest.mark.parametrize(("tool", "args"), CALLS)
async def test_flags_named_by_a_refusal_let_the_call_run(
    folder: Folder, tool: str, args: dict[str, Any], mode: PermissionMode
) -> None:
    refused = await folder.judged(tool, args, "--permission-mode", mode)
    if isinstance(refused, Allow):
        return
    flags = refused.reason.flags
    assert flags or mode == "dontAsk"

    if flags:
        allowed = await folder.judged(tool, args, "--permission-mode", mode, *shlex.split(flags))
        assert isinstance(allowed, Allow), f"{flags}: {allowed.reason.text}"


@pytest.mark.parametrize(
    ("tool", "args", "flags"),
    [
        ("Bash", {"command": "python -m pytest -x tests"}, "--allowedTools 'Bash(python -m pytest *)'"),
        (
            "Bash",
            {"command": "git add -A && git commit -m x", "sandbox": "off"},
            "--allowedTools 'Bash(git add -A && git commit -m x)' "
            "--allow-outside 'git add *' --allow-outside 'git commit *'",
        ),
        (
            "Bash",
            {"command": "git commit -m x"},
            "--allowedTools 'Bash(git commit *)' --allow-outside 'git commit *'",
        ),
        (
            "Bash",
            {"command": "pip install lamp"},
            "--allowedTools 'Bash(pip install lamp)' --allow-network=package-indexes",
        ),
        (
            "Bash",
            {"command": "pip install lamp", "sandbox": "network"},
            "--allowedTools 'Bash(pip install lamp)' --allow-network=package-indexes",
        ),
        ("Bash", {"command": "pip debug"}, "--allowedTools 'Bash(pip debug)'"),
        (
            "Bash",
            {"command": "curl https://example.org/x"},
            "--allowedTools 'Bash(curl https://example.org/x)' --allow-network=example.org",
        ),
        ("Edit", {"file_path": "a.txt", "old_string": "a", "new_string": "b"}, "--permission-mode acceptEdits"),
        ("WebFetch", {"url": "https://example.org/x"}, "--allowedTools 'WebFetch(domain:example.org)'"),
        (
            "pip",
            {"operation": "install", "packages": ["lamp"]},
            "--allowedTools 'pip(install)' --allow-network=package-indexes",
        ),
        (
            "pip",
            {"operation": "install", "packages": ["lamp @ https://example.org/lamp.whl"]},
            "--allowedTools 'pip(install)' --allow-network=pypi.org,files.pythonhosted.org,example.org",
        ),
    ],
)
async def test_flags_of_a_refusal_are_the_narrowest(
    folder: Folder, tool: str, args: dict[str, Any], flags: str
) -> None:
    assert (await folder.judged(tool, args)).reason.flags == flags


@pytest.mark.parametrize(
    ("args", "flags"),
    [
        (("--disallowedTools", "Bash(make)"), ""),
        (("--permission-mode", "dontAsk"), "--allowedTools 'Bash(make)'"),
    ],
)
async def test_flags_are_named_for_a_mode_but_not_for_a_deny_rule(
    folder: Folder, args: tuple[str, ...], flags: str
) -> None:
    denied = await folder.judged("Bash", {"command": "make"}, *args)

    assert isinstance(denied, Deny)
    assert denied.reason.flags == flags


async def test_flags_for_plan_mode_are_named(folder: Folder) -> None:
    denied = await folder.judged("Bash", {"command": "make > out.txt"}, "--permission-mode", "plan")

    assert isinstance(denied, Deny)
    assert denied.reason.flags == "--permission-mode default --allowedTools 'Bash(make > out.txt)'"


async def test_protected_file_names_no_flag(folder: Folder) -> None:
    asked = await folder.judged("Write", {"file_path": ".env", "content": "x"})

    assert isinstance(asked, Ask)
    assert asked.reason.flags == ""


async def test_trust_flag_is_named_for_an_untrusted_allow_rule(folder: Folder) -> None:
    (folder.project / ".panpan").mkdir()
    (folder.project / ".panpan" / "settings.toml").write_text('permission.allow = ["Bash(make)"]\n')

    asked = await folder.judged("Bash", {"command": "make"})

    assert asked.reason.flags == "--trust"
    assert isinstance(await folder.judged("Bash", {"command": "make"}, "--trust"), Allow)

"""Runs that nobody watches do what their flags allow, and say which flag was missing."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from panpan.system.sandbox.choice import find_sandbox
from tests.capabilities.packages.conftest import make_environment, write_wheel
from tests.e2e.conftest import Panpan
from tests.e2e.test_packages import unpacked_pip
from tests.fakes.served_folder import serving_files
from tests.model_server import ToolCall, calls, say, serving

DOCS = Path(__file__).parent.parent.parent / "docs"

WORKS = "from shelf import version\nassert version == '2.0', version\nprint('it works')\n"


@pytest.fixture(autouse=True)
async def _needs_sandbox() -> None:
    choice = await find_sandbox()
    if choice.sandbox is None:
        pytest.skip("; ".join(choice.passed_over))
    if not choice.sandbox.can_grant_domains:
        pytest.skip(f"{choice.sandbox.name} cannot let commands to single hosts")


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """Address of a package index on the loopback ("Simple repository API", packaging.python.org)."""
    pages = tmp_path / "index"
    (pages / "shelf").mkdir(parents=True)
    for version in ("1.0", "2.0"):
        write_wheel(pages / "shelf", "shelf", version)
    with serving_files(pages) as address:
        yield f"{address}/"


@pytest.fixture
def repository(panpan: Panpan, index: str, tmp_path: Path) -> Panpan:
    """A project whose pin no index has, and a user whose pip asks the index."""
    make_environment(panpan.workspace / ".venv", unpacked_pip(tmp_path / "pip"))
    (panpan.workspace / "requirements.txt").write_text("shelf==0.0.1\n")
    (panpan.workspace / "check.py").write_text(WORKS)
    settings = panpan.home.parent / ".config" / "pip"
    settings.mkdir(parents=True)
    (settings / "pip.conf").write_text(f"[global]\nindex-url = {index}\n")
    panpan.env |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_RETRIES": "0"}
    return panpan


INSTALL = ToolCall("pip", {"operation": "install", "file": "requirements.txt"})
PIN = {"file_path": "requirements.txt", "old_string": "shelf==0.0.1", "new_string": "shelf==2.0"}
INSTALL_BY_COMMAND = ".venv/bin/python -m pip install -r requirements.txt"


@pytest.mark.parametrize("flag", ["--allow-network", "--allow-network=package-indexes"])
def test_wrong_pin_is_fixed_from_a_pipe_without_questions(repository: Panpan, flag: str) -> None:
    script = [
        calls(ToolCall("Read", {"file_path": "requirements.txt"})),
        calls(ToolCall("Bash", {"command": INSTALL_BY_COMMAND})),
        calls(ToolCall("Edit", PIN)),
        calls(INSTALL),
        calls(ToolCall("Bash", {"command": ".venv/bin/python check.py"})),
        say("it works"),
    ]
    with serving(script) as server:
        repository.use(server)
        done = repository.run("--yes", flag, "-f", "json", stdin="make this repository work")

    assert done.code == 0, done.stderr
    assert done.result["permission_denials"] == []
    _, failed, _, installed, checked = _results(server.requests[-1].messages)
    assert "shelf==0.0.1" in failed
    assert "2.0" in failed, "which is what the index has"
    assert "added: shelf 2.0" in installed
    assert "it works" in checked


def test_install_without_the_network_names_the_missing_flag(repository: Panpan) -> None:
    with serving([calls(INSTALL), say("not installed")]) as server:
        repository.use(server)
        done = repository.run("-p", "install it", "--yes", "-f", "json")

    flag = "--allow-network=package-indexes"
    (refused,) = _results(server.requests[-1].messages)
    assert flag in refused
    assert flag in done.stderr
    assert flag in done.result["permission_denials"][0]["allowed_with"]


def test_sandbox_off_lets_commands_write_outside(panpan: Panpan) -> None:
    outside = panpan.workspace.parent / "outside.txt"
    command = ToolCall("Bash", {"command": f"f={outside}; echo x >$f"})
    with serving([calls(command), say("done")]) as server:
        panpan.use(server)
        panpan.run("-p", "go on", "--yes", "--sandbox", "off")

    assert outside.read_text() == "x\n"


def test_allow_outside_covers_the_commands_of_its_pattern_only(panpan: Panpan) -> None:
    one, two = panpan.workspace.parent / "one", panpan.workspace.parent / "two"
    steps = [
        ToolCall("Bash", {"command": f"sh -c 'echo x >{one}'", "sandbox": "off"}),
        ToolCall("Bash", {"command": f"bash -c 'echo x >{two}'", "sandbox": "off"}),
    ]
    with serving([*map(calls, steps), say("done")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "go on", "--yes", "--allow-outside", "sh -c *", "-f", "json")

    assert (one.exists(), two.exists()) == (True, False)
    (denial,) = done.result["permission_denials"]
    assert "--allow-outside 'bash -c" in denial["allowed_with"].replace("'\"'\"'", "'")


def commands_of(page: str, heading: str) -> list[str]:
    """Return the commands that a section of a page in `docs` shows, its subsections included."""
    text = re.split(r"^#{1,2} ", (DOCS / page).read_text().split(f"# {heading}\n", 1)[1], flags=re.MULTILINE)[0]
    return [
        line
        for block in re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
        for line in block.split("\n")
        if line
    ]


def test_commands_of_the_permission_and_headless_pages_run(panpan: Panpan) -> None:
    (panpan.workspace / "run.toml").write_text("max_rounds = 200\n")
    sections = (
        ("permissions.md", "Modes"),
        ("permissions.md", "Ask what would happen"),
        ("headless.md", "What may run"),
    )
    commands = [command for section in sections for command in commands_of(*section)]
    with serving([say("done")] * len(commands)) as server:
        panpan.use(server)
        done = panpan.run_script("set -eo pipefail", *commands)

    assert done.code == 0, done.stderr
    assert len(server.requests) == sum("permissions" not in command for command in commands)
    assert "panpan: warning" not in done.stderr


def _results(messages: list[dict[str, object]]) -> list[str]:
    """Return the texts of all tool results in a request."""
    blocks = [block for message in messages for block in message["content"]]  # type: ignore[attr-defined]
    found = [block["content"] for block in blocks if block["type"] == "tool_result"]
    return [text if isinstance(text, str) else text[0]["text"] for text in found]

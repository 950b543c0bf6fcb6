import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from panpan.batch.cluster.security import PACKAGES as CLUSTER
from panpan.capabilities.local_model.weight_store import RUNTIME
from panpan.capabilities.mcp.settings import PACKAGE as MCP
from panpan.capabilities.web.browser.page_rendering import SCRIPTS
from panpan.capabilities.web.browser.running_chromium import DRIVER
from panpan.cli.acp_command import PACKAGE as ACP
from panpan.cli.serve_command import PACKAGES as SERVER
from panpan.config.stored_keys import PACKAGE
from panpan.system.environment import how_to_install, install_command

ROOT = Path(__file__).parents[2]


def test_install_command_targets_panpans_own_environment() -> None:
    command = shlex.split(how_to_install("lamp>=1,<2", "shade"))

    assert command == [sys.executable, "-m", "pip", "install", "lamp>=1,<2", "shade"]


def test_install_command_without_pip_uses_uv(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "pip", raising=False)

    command = shlex.split(how_to_install("lamp"))

    assert command == ["uv", "pip", "install", "--python", sys.executable, "lamp"]


def test_install_command_for_pipx_uses_pipx(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environment, programs = tmp_path / "venvs" / "panpan", tmp_path / "bin"
    for folder in (environment, programs):
        folder.mkdir(parents=True)
    (environment / "pipx_metadata.json").write_text("{}")
    monkeypatch.setenv("PATH", str(programs))
    assert install_command("lamp", prefix=environment)[0] == sys.executable

    (programs / "pipx").write_text("#!/bin/sh\n")
    (programs / "pipx").chmod(0o755)
    assert install_command("lamp", prefix=environment) == ["pipx", "inject", "panpan", "lamp"]


def test_install_bounds_equal_the_extras() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

    of_outside = {"inspect"}  # runs panpan, and is never asked for by it
    own = {
        "acp": [ACP],
        "browser": [DRIVER, SCRIPTS],
        "cluster": list(CLUSTER),
        "keyring": [PACKAGE],
        "local": [RUNTIME],
        "mcp": [MCP],
        "server": list(SERVER),
    }
    assert {name: extras[name] for name in extras if name not in of_outside} == own


def test_documents_never_install_panpan_from_an_index() -> None:
    texts = [ROOT / "README.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("panpan/**/*.py")]

    command = re.compile(r"(?:pipx?|tool) (?:install|run) (?:-\S+ )*['\"]?panpan\b|uvx ['\"]?panpan\b")

    found = [str(text) for text in texts if command.search(text.read_text())]

    assert found == []

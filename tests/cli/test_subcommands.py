"""Subcommands are found where they lie, without an import."""

import re
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import panpan.capabilities
from panpan.cli.main import cli
from panpan.cli.subcommands import feature_modules, foreign_subcommand, subcommands

FOLDERS = sorted(path.parent.name for path in Path(panpan.capabilities.__path__[0]).glob("*/cli.py"))


@pytest.mark.parametrize("folder", FOLDERS)
def test_cli_of_each_capability_is_reachable_and_in_the_help(folder: str) -> None:
    module = f"panpan.capabilities.{folder}.cli"
    found = {name: one for name, one in subcommands().items() if one.module == module}
    shown = CliRunner().invoke(cli, ["--help"], terminal_width=110).output.partition("Commands:")[2]

    assert found
    for name, one in found.items():
        assert one.load().name == name
        assert f"  {name} " in shown if one.help else re.search(f"[;,] {name} ", shown)  # beside another one
        assert one.help in " ".join(shown.split())


def test_subcommand_help_shows_its_usage() -> None:
    for name in subcommands():
        result = CliRunner().invoke(cli, [name, "--help"], prog_name="panpan")

        assert result.exit_code == 0, name
        assert f"Usage: panpan {name}" in result.output


@pytest.mark.parametrize(
    ("module", "name", "count"),
    [
        ("doctor", "CHECKS", 9),
        ("demo", "local_scene", 1),
        ("recording", "Recording", 1),
        ("model_detection", "detect_model", 1),
        ("no_such", "", 0),
    ],
)
def test_feature_modules_are_found_by_their_files(module: str, name: str, count: int) -> None:
    found = list(feature_modules(module))

    assert len(found) == count
    assert all(hasattr(one, name) for one in found)


@pytest.fixture
def other_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package as pip leaves it, with commands that work, fail, are none, and have a name of ours."""
    (tmp_path / "other_tools.py").write_text(
        "import click\n\n@click.command('greet')\ndef greet() -> None:\n    click.echo('hello')\n\nnothing = 3\n"
    )
    metadata = tmp_path / "other_tools-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: other-tools\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[panpan.commands]\ngreet = other_tools:greet\nundo = other_tools:greet\n"
        "gone = no_such_module:x\nnone = other_tools:nothing\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "other_tools", raising=False)
    return "other_tools"


def test_foreign_subcommand_runs(other_package: str) -> None:
    assert CliRunner().invoke(cli, ["greet"]).output == "hello\n"


def test_foreign_subcommand_never_takes_a_name_of_ours(other_package: str) -> None:
    assert foreign_subcommand("undo") is None
    assert subcommands()["undo"].module.startswith("panpan.")


@pytest.mark.parametrize("name", ["gone", "none"])
def test_broken_foreign_subcommand_is_told(other_package: str, name: str) -> None:
    with pytest.raises(click.UsageError, match=f"the command {name} of another package"):
        foreign_subcommand(name)

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from panpan.cli.main import cli
from panpan.errors import ConfigError

SETTINGS = """[permission]
allow = [
    {rule = "Bash(npm run *)", match = ["npm run build"], not_match = ["npm install"]},
    "Bash(rm -rf build)",
]
deny = ["Bash(rm *)"]
external_directory = "deny"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "home" / "settings.toml").write_text(SETTINGS)
    return tmp_path


def panpan(folder: Path, *words: str) -> Result:
    env = {name: None for name in os.environ} | {
        "PANPAN_HOME": str(folder / "home"),
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
    }
    return CliRunner().invoke(cli, ["--cwd", str(folder / "project"), *words], env=env, standalone_mode=False)


def test_list_shows_rules_strongest_first_with_their_place(folder: Path) -> None:
    settings = folder / "home" / "settings.toml"

    result = panpan(folder, "--allowedTools", "Edit", "permissions", "list")

    assert result.stdout.splitlines() == [
        "mode default; paths outside: deny; the same call again and again: ask",
        f"deny   Bash(rm *)  (from {settings}:6)",
        f"allow  Bash(npm run *)  (from {settings}:3)",
        f"allow  Bash(rm -rf build)  (from {settings}:4)",
        "allow  Edit  (from --allowedTools)",
    ]
    assert f"the rule Bash(rm -rf build) from {settings}:4 never matters" in result.stderr


def test_list_has_a_form_for_programs(folder: Path) -> None:
    settings = folder / "home" / "settings.toml"

    found = json.loads(panpan(folder, "permissions", "list", "--json").stdout)

    assert found["rules"][0] == {"behaviour": "deny", "rule": "Bash(rm *)", "place": f"{settings}:6"}
    assert [one["rule"] for one in found["never_matter"]] == ["Bash(rm -rf build)"]
    assert (found["mode"], found["external_directory"], found["doom_loop"]) == ("default", "deny", "ask")


def test_untrusted_project_rules_only_tighten(folder: Path) -> None:
    (folder / "project" / ".panpan").mkdir()
    (folder / "project" / ".panpan" / "settings.toml").write_text(
        'permission.allow = ["Bash(curl *)"]\npermission.deny = ["Bash(make)"]\n'
    )

    rules = {one["rule"] for one in json.loads(panpan(folder, "permissions", "list", "--json").stdout)["rules"]}

    assert "Bash(make)" in rules
    assert "Bash(curl *)" not in rules


def test_explain_takes_a_command_part_by_part(folder: Path) -> None:
    lines = panpan(folder, "permissions", "explain", "cat a.txt | sort > out.txt && rm x").stdout.splitlines()

    assert lines[0] == f"deny: the rule Bash(rm *) from {folder}/home/settings.toml:6 denies it"
    assert "  part:      rm x" in lines
    assert [line for line in lines if line[:1].isdigit()] == ["1. cat a.txt", "2. sort > out.txt", "3. rm x"]
    assert "     reads: a.txt" in lines
    assert "     writes: out.txt" in lines
    assert f"writes {folder}/project/out.txt: in the workspace" in lines


def test_explain_has_a_form_for_programs(folder: Path) -> None:
    found = json.loads(panpan(folder, "permissions", "explain", "--json", "ls; make").stdout)

    assert (found["decision"], found["reason"]["kind"], found["reason"]["command"]) == ("ask", "unknown", "make")
    assert found["always"] == "Bash(ls; make)"
    ls, make = found["commands"]
    assert (ls["program"], ls["reads"], ls["writes"], ls["runs_code"]) == ("ls", ["."], [], False)
    assert Path(ls["file"]).is_absolute()
    assert (make["program"], make["writes"]) == ("make", None)


def test_explain_names_no_program_of_the_workspace(folder: Path) -> None:
    fake = folder / "project" / "ls"
    fake.write_text("#!/bin/sh\n")
    fake.chmod(0o755)
    env = {"PATH": f"{fake.parent}:{os.environ['PATH']}", "PANPAN_HOME": str(folder / "home"), "HOME": str(folder)}

    result = CliRunner().invoke(
        cli,
        ["--cwd", str(folder / "project"), "permissions", "explain", "--json", "ls"],
        env=env,
        standalone_mode=False,
    )

    assert json.loads(result.stdout)["commands"][0]["file"] != str(fake)


def test_explain_takes_any_tool_and_mode(folder: Path) -> None:
    arguments = json.dumps({"file_path": ".env", "content": "x"})

    asked = panpan(folder, "permissions", "explain", "--tool", "Write", "--args", arguments).stdout
    denied = panpan(folder, "permissions", "explain", "--tool", "Write", "--args", arguments, "--mode", "plan").stdout

    assert asked.splitlines()[0] == f"ask: {folder}/project/.env is protected, since it holds credentials"
    assert "only a person may answer" in asked
    assert denied.startswith("deny: plan mode is on")


def test_explain_never_drives_the_terminal(folder: Path) -> None:
    assert "\x1b" not in panpan(folder, "permissions", "explain", "echo \x1b[31m; make '\x1b]0;x\x07'").stdout


@pytest.mark.parametrize(
    "words", [[], ["ls", "--tool", "Read"], ["ls", "--args", "{}"], ["--tool", "Read", "--args", "[1]"]]
)
def test_unclear_call_is_an_error(folder: Path, words: list[str]) -> None:
    result = panpan(folder, "permissions", "explain", *words)

    assert result.exception is not None
    assert not isinstance(result.exception, AssertionError)
    assert result.stdout == ""


def test_right_examples_exit_with_0(folder: Path) -> None:
    result = panpan(folder, "permissions", "test")

    assert result.return_value == 0
    assert result.stdout.splitlines() == [
        f"ok   {folder}/home/settings.toml:3: the rule Bash(npm run *) should allow 'npm run build'",
        f"ok   {folder}/home/settings.toml:3: the rule Bash(npm run *) should not allow 'npm install'",
    ]
    assert "2 examples, 0 failed" in result.stderr


def test_wrong_example_exits_with_1_after_all_are_tried(folder: Path) -> None:
    (folder / "home" / "settings.toml").write_text(
        'permission.deny = [{rule = "Bash(rm *)", match = ["ls", "rm x"], not_match = ["sudo rm x"]}]'
    )

    result = panpan(folder, "permissions", "test")

    assert result.return_value == 1
    assert [line[:4] for line in result.stdout.splitlines()] == ["FAIL", "ok  ", "FAIL"]
    explained = panpan(folder, "permissions", "explain", "ls")
    assert isinstance(explained.exception, ConfigError), "a session would not start either"


def test_explain_names_rule_and_bounds_of_a_question(folder: Path) -> None:
    (folder / "home" / "settings.toml").write_text("")

    text = panpan(folder, "permissions", "explain", "git commit -m one").stdout
    found = json.loads(panpan(folder, "permissions", "explain", "git commit -m one", "--json").stdout)

    if "no sandbox works here" in text:
        pytest.skip("no sandbox works on this machine, so that there are no bounds")
    assert "the like:  Bash(git commit *)" in text
    assert "bounds:    sandboxed · writes here, not .git · no network" in text
    assert found["bounds"] in text

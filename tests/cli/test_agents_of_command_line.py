import json
import os
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from panpan.cli.main import cli
from panpan.errors import ConfigError

GIVEN = '{"quick": {"description": "d", "prompt": "p"}}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "home").mkdir(mode=0o700)
    return tmp_path


def panpan(folder: Path, *words: str) -> Result:
    env = {name: None for name in os.environ} | {
        "PANPAN_HOME": str(folder / "home"),
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
    }
    return CliRunner().invoke(cli, ["--cwd", str(folder / "project"), *words], env=env, standalone_mode=False)


def refusal(result: Result) -> str:
    assert isinstance(result.exception, ConfigError | click.UsageError)
    return str(result.exception)


def write(folder: Path, name: str, *lines: str) -> Path:
    path = folder / "project" / ".panpan" / "agents" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["---", f"name: {name}", "description: d", *lines, "---", "prompt"]))
    return path


def test_agents_list_shows_place_and_description(folder: Path) -> None:
    write(folder, "mine", "description: Reads\x1b[2J a lot." + "x" * 200)
    write(folder, "explore")
    waiting = panpan(folder, "agents", "list")
    panpan(folder, "trust", "add")

    result = panpan(folder, "--agents", GIVEN, "agents", "list")

    rows = {line.split()[0]: line for line in result.stdout.splitlines()}
    assert {"mine", "quick", "explore", "code-reviewer"} <= rows.keys()
    assert "  ./.panpan/agents/mine.md  Reads a lot.xxx" in rows["mine"]
    assert rows["mine"].endswith("x…")
    assert "  --agents  d" in rows["quick"]
    assert "  ./.panpan/agents/explore.md  " in rows["explore"]
    assert result.stderr == "panpan: explore is defined by ./.panpan/agents/explore.md, which counts\n"
    assert "mine" not in waiting.stdout
    assert waiting.stderr == (
        "panpan: warning: agents of the project wait until you trust it: panpan trust (.panpan/agents/explore.md and 1 "
        "more)\n"
    )


def test_agents_list_json_has_all_fields_and_warnings(folder: Path) -> None:
    write(folder, "mine", "tools: Read, Grep", "maxTurns: 3", "maxSeconds: 1.5")
    write(folder, "broken", "maxTurns: x")
    panpan(folder, "trust", "add")

    found = json.loads(panpan(folder, "agents", "list", "--json").stdout)

    (mine,) = [one for one in found["agents"] if one["name"] == "mine"]
    assert mine["source"] == str(folder / "project/.panpan/agents/mine.md")
    assert (mine["tools"], mine["maxTurns"], mine["limits"]["seconds"]) == (["Read", "Grep"], 3, 1.5)
    assert "broken.md:4: maxTurns has to be" in found["warnings"][0]


def test_agents_show_prints_the_agent_in_force(folder: Path) -> None:
    path = write(folder, "mine", "tools: Read, Agent(x)", "model: opus")
    panpan(folder, "trust", "add")

    result = panpan(folder, "agents", "show", "mine")

    assert result.stdout == '---\nname: mine\ndescription: "d"\ntools: ["Read"]\nmodel: "opus"\n---\nprompt\n'
    assert result.stderr.splitlines() == [
        "from ./.panpan/agents/mine.md",
        f"panpan: note: {path}:4: Agent(x) names a part of a tool, so Agent is not given at all; "
        "say it in a permission rule",
    ]
    assert refusal(panpan(folder, "agents", "show", "nobody")).startswith("there is no agent 'nobody'; there are ")


def test_agents_new_makes_a_file_and_never_overwrites_it(folder: Path) -> None:
    path = folder / "project" / ".panpan" / "agents" / "fresh.md"

    made = panpan(folder, "agents", "new", "fresh")
    assert made.stdout == f"{path}\n"
    assert "then trust the project with it: panpan trust add" in made.stderr
    panpan(folder, "trust", "add")
    checked = panpan(folder, "agents", "check")
    assert checked.return_value == 0
    assert checked.stdout.startswith(f"{path}:4: note: its description is still that of a new file")
    assert checked.stderr == "0 usable, 0 errors, 1 notes\n"
    listed = panpan(folder, "agents", "list")
    assert "fresh.md" not in listed.stdout
    assert "fresh.md:4: its description is still" in listed.stderr

    path.write_text(path.read_text().replace("Say here when to use it.", "Reads."))
    assert panpan(folder, "agents", "check").stderr == "1 usable, 0 errors, 0 notes\n"
    panpan(folder, "trust", "add")
    assert "fresh.md" in panpan(folder, "agents", "list").stdout

    path.write_text("mine now")
    assert "exists already" in refusal(panpan(folder, "agents", "new", "fresh"))
    assert path.read_text() == "mine now"


def test_agents_new_for_the_user_is_private(folder: Path) -> None:
    path = folder / "home" / "agents" / "fresh.md"

    assert panpan(folder, "agents", "new", "--user", "fresh").stdout == f"{path}\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert not (folder / "project" / ".panpan").exists()


@pytest.mark.parametrize("name", ["../out", "a/b", "-x", "", "a b", "x" * 65])
def test_agents_new_refuses_names_that_are_paths(folder: Path, name: str) -> None:
    assert refusal(panpan(folder, "agents", "new", "--", name))
    assert not (folder / "project" / ".panpan").exists()


def test_agents_check_names_file_and_line_and_exits_1(folder: Path) -> None:
    broken = write(folder, "broken", "permissionMode: yolo", "disallowedTools: [Bsh]")
    noted = write(folder, "noted", "tools: Read, Grpe")

    result = panpan(folder, "agents", "check")

    assert result.return_value == 1
    assert result.stdout.splitlines() == [
        f"{broken}:4: error: there is no permission mode 'yolo'; there are default, acceptEdits, auto, plan, dontAsk, "
        "bypassPermissions",
        f"{broken}:5: note: there is no tool Bsh, so it means nothing; did you mean Bash?",
        f"{noted}:4: note: there is no tool Grpe, so it means nothing; did you mean Grep?",
    ]
    assert result.stderr == "1 usable, 1 errors, 2 notes\n"


def test_agents_check_knows_tools_of_the_command_line(folder: Path) -> None:
    given = '{"quick": {"description": "d", "prompt": "p", "tools": "Grpe"}}'

    assert panpan(folder, "--agents", given, "agents", "check").stdout == (
        "--agents: note: there is no tool Grpe, so it means nothing; did you mean Grep?\n"
    )


def test_agents_check_takes_files_and_folders(folder: Path) -> None:
    place = folder / "elsewhere" / ".gemini" / "agents"
    place.mkdir(parents=True)
    (place / "a.md").write_text("---\nname: a\ndescription: d\ntools: [read_file]\nmax_turns: no\n---\np")
    (place / "b.md").write_text("words")

    result = panpan(folder, "agents", "check", str(place))

    assert result.return_value == 1
    assert [line.partition(": ")[0] for line in result.stdout.splitlines()] == [f"{place}/a.md:5", f"{place}/b.md:1"]
    assert panpan(folder, "agents", "check", str(place / "b.md")).return_value == 1
    assert "there is no file or folder" in refusal(panpan(folder, "agents", "check", str(folder / "gone")))


def test_agents_check_accepts_the_shipped_agents() -> None:
    result = CliRunner().invoke(
        cli, ["agents", "check", str(Path(__file__).parents[2] / "agents")], standalone_mode=False
    )

    assert (result.return_value, result.stdout) == (0, "")


def test_agents_option_is_refused_with_other_commands(folder: Path) -> None:
    assert "--agents does not go with the command config" in refusal(
        panpan(folder, "--agents", GIVEN, "config", "show")
    )
    assert "is not JSON" in refusal(panpan(folder, "--agents", "{", "agents", "list"))

"""The documents are true: their examples run, and the names in them exist."""

import ast
import asyncio
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import click
import pytest

import panpan
from panpan import errors
from panpan.app import BUILTIN
from panpan.capabilities.subagents.definitions.files import read_text
from panpan.capabilities.subagents.definitions.load import shipped_definitions
from panpan.capabilities.subagents.definitions.read_definition import KEYS
from panpan.cli.main import EPILOG, cli
from panpan.config.models import VENDORS
from panpan.config.run_settings import OTHER_VARIABLES, VARIABLES
from panpan.config.settings_file import parse_settings
from panpan.core.hooks import Hook
from panpan.session.log.record_kinds import SYSTEM_RECORDS, subtypes_of
from panpan.system.environment import is_of_attempt
from panpan.types.events import Event
from panpan.types.permission import PermissionMode
from scripts.settings_page import page_with_list
from tests.fakes.every_tool import every_tool
from tests.model_server import call, say, serving

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
PAGES = sorted((ROOT / "docs").glob("*.md"))
DOCUMENTS = [README, CONTRIBUTING, ROOT / "CHANGELOG.md", *PAGES, *sorted((ROOT / "docs" / "adr").glob("*.md"))]
AGENTS, ARCHITECTURE, HEADLESS, MODELS, PERMISSIONS, PYTHON, REFERENCE, TERMINAL = (
    ROOT / "docs" / f"{name}.md"
    for name in (
        "subagents",
        "architecture",
        "headless",
        "models",
        "permissions",
        "python-api",
        "reference",
        "terminal",
    )
)
OF_USERS = {
    "AGENTS.md", "CLAUDE.md", "call.json", "hooks.json", "package.json", "table1.py", "SKILL.md",
    "hooks/hooks.json", "mcp.json", "plugin.json", "docs/check.md", "skills/deploy/SKILL.md", "check.sh",
    "marketplace.json", "DIGEST.json", "plugins.json", "panpan.json",
    "report.md", "state/campaign.json", "state/running.json", "state/ID/attempt-N/result.json",
    "results/metrics.json", "reproduce.sh", "train.py",
}  # fmt: skip
POINTS = [name for name, value in vars(Hook).items() if callable(value) and not name.startswith("_")]


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def blocks(path: Path, language: str) -> list[str]:
    """The fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text_of(path), re.DOTALL | re.MULTILINE)


def section(path: Path, heading: str) -> str:
    """Text below a heading, up to the next one of any level."""
    return re.split(r"^#+ ", text_of(path).split(f"# {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def table(text: str) -> list[list[str]]:
    """The cells of the first table, without its head."""
    rows = [line.strip().strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def in_backticks(text: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", text)


# examples


def test_agent_example_is_usable_and_every_key_is_documented() -> None:
    (example,) = blocks(AGENTS, "markdown")

    definition, problems = read_text(example, "example.md")

    assert definition is not None
    assert problems == ()
    assert {key for row in table(section(AGENTS, "Keys")) for key in in_backticks(row[0])} == set(KEYS)
    assert all(f"`{one.name}`" in text_of(AGENTS) for one in shipped_definitions())


@pytest.mark.parametrize(
    ("number", "printed"),
    [(0, "Corrected.\n"), (1, "[Read notes.txt]\n[Edit notes.txt]\nCorrected.\n3 rounds\n")],
    ids=["ask", "session"],
)
def test_python_examples_change_a_file(tmp_path: Path, number: int, printed: str) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "notes.txt").write_text("teh end\n")
    (tmp_path / "example.py").write_text(blocks(PYTHON, "python")[number])
    edit = {"file_path": "notes.txt", "old_string": "teh", "new_string": "the"}

    with serving([call("Read", {"file_path": "notes.txt"}), call("Edit", edit), say("Corrected.")]) as server:
        done = subprocess.run(
            [sys.executable, tmp_path / "example.py"],
            cwd=workspace,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path),
                "NO_PROXY": "*",
                "ANTHROPIC_API_KEY": "sk-ant-test-0123456789abcdef",
                "ANTHROPIC_BASE_URL": server.url,
            },
            capture_output=True,
            text=True,
            check=False,
        )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == printed
    assert (workspace / "notes.txt").read_text() == "the end\n"


def test_readme_code_is_the_code() -> None:
    loop, capability = blocks(README, "python")

    assert textwrap.indent(loop, "    ") in text_of(ROOT / "panpan" / "core" / "query.py")
    assert capability == blocks(ROOT / "docs" / "capabilities.md", "python")[0]


def test_settings_of_the_pages_exist() -> None:
    pages = [page for page in PAGES if page.stem not in ("campaigns", "reproduction")]  # which have files of their own
    examples = [block for page in pages for block in blocks(page, "toml") if "pyproject.toml" not in block]
    sources = [parse_settings(one.encode(), Path("settings.toml"), "user") for one in examples]

    assert ("Bash(make test)", "Bash(python -m pytest *)") in [source.rules("allow") for source in sources]


def test_list_of_all_settings_is_that_of_the_models() -> None:
    page = text_of(ROOT / "docs" / "settings.md")

    assert page == page_with_list(page), "run: .venv/bin/python -m scripts.settings_page"
    assert "| `reserve_tokens` | `16384` |" in page, "of a capability, too"


def commands() -> Iterator[str]:
    for document in DOCUMENTS:
        for block in blocks(document, "sh"):
            yield from (line for line in block.splitlines() if "panpan" in line and not line.startswith(("git clone",)))


def arguments_of_panpan(line: str) -> Iterator[list[str]]:
    """The words behind each `panpan` that the line runs."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if set(word) <= set("|&;"):
            if words and words[0] == "panpan":
                yield words[1:]
            words = []
        else:
            words.append(word)


def check_arguments(arguments: list[str]) -> None:
    """Parse them as the command line does; a usage error is raised."""
    command: click.Command = cli
    while isinstance(command, click.Group) and arguments and not arguments[0].startswith("-"):
        if " " in arguments[0]:
            break  # a prompt
        name, *arguments = arguments
        found = command.get_command(click.Context(command), name)
        assert found is not None, f"there is no command {name}"
        command = found
    command.make_context("panpan", list(arguments))


@pytest.mark.parametrize("line", list(commands()))
def test_documented_commands_can_be_given(line: str) -> None:
    for arguments in arguments_of_panpan(line):
        check_arguments(arguments)


def test_unknown_command_would_be_found() -> None:
    assert [*arguments_of_panpan("git diff | panpan -p 'a | b' -c  # panpan --no")] == [["-p", "a | b", "-c"]]
    with pytest.raises(click.UsageError):
        check_arguments(["--modle", "x"])
    with pytest.raises(click.UsageError):
        check_arguments(["config", "show", "--origin"])
    with pytest.raises(click.UsageError):
        check_arguments(["fix the test", "--modle", "x"])


# what is named exists


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", text_of(document)):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        linked = document.parent / path if path else document
        assert linked.exists(), target
        headings = re.findall(r"^#+ (.+)$", text_of(linked), re.MULTILINE) if anchor else []
        assert not anchor or anchor in {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}


def exists_somewhere(name: str) -> bool:
    if "/" in name:
        return any((folder / name).exists() for folder in (ROOT, ROOT / "panpan", ROOT / "docs"))
    return (ROOT / name).exists() or any((ROOT / "panpan").rglob(name)) or any((ROOT / "tests").rglob(name))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_named_files_exist(document: Path) -> None:
    prose = re.sub(r"^```python\n.*?^```$", "", text_of(document), flags=re.DOTALL | re.MULTILINE)
    names = re.findall(r"(?<![\w./<>*~-])(?<!\]\()(?:[\w-]+/)*[\w-]+\.(?:py|md|json|sh)\b(?!l)", prose)

    assert [name for name in names if not exists_somewhere(name) and name not in OF_USERS] == []


def layers() -> list[list[str]]:
    """Return the layers of the contract from the top to the bottom, each with the names of its modules."""
    contracts = tomllib.loads(text_of(ROOT / "pyproject.toml"))["tool"]["importlinter"]["contracts"]
    named = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[name.strip().removeprefix("panpan.") for name in layer.split("|")] for layer in named]


def test_layers_in_the_architecture_are_those_of_the_contract() -> None:
    assert [in_backticks(row[0]) for row in table(section(ARCHITECTURE, "The layers"))] == layers()


def test_architecture_names_every_folder_of_the_package() -> None:
    folders = {path.parent.name for path in (ROOT / "panpan").glob("*/__init__.py")}

    assert {name for name in folders if not re.search(rf"`{name}/?`", section(ARCHITECTURE, "The layers"))} == set()


@pytest.mark.parametrize("document", [ARCHITECTURE, REFERENCE], ids=lambda path: path.stem)
def test_named_folders_exist(document: Path) -> None:
    folders = [name for name in in_backticks(text_of(document)) if re.fullmatch(r"[\w/]+/", name)]
    inside = [ROOT, ROOT / "panpan", ROOT / "panpan" / "faces" / "terminal"]

    assert [name for name in folders if not any((folder / name).is_dir() for folder in inside)] == []


def test_hooks_in_the_architecture_are_those_of_the_program(tmp_path: Path) -> None:
    tape = tmp_path / "tape.toml"
    tape.write_text('version = 1\n[[reply]]\ntext = "hello"\n')
    (tmp_path / "home" / "commands").mkdir(parents=True)
    (tmp_path / "home" / "commands" / "fix.md").write_text("Fix it.")
    (tmp_path / "home" / "hooks.json").write_text('{"hooks": {"Stop": [{"hooks": [{"command": "true"}]}]}}')

    async def hooks() -> list[Hook]:
        opening = panpan.open_session(
            tmp_path,
            overrides={"model": f"cassette:{tape}", "max_budget_usd": 1.0},
            env={"HOME": str(tmp_path), "PANPAN_HOME": str(tmp_path / "home")},
        )
        async with opening as session:
            return list(session.agent.model.hooks)

    expected = [
        [type(hook).__name__, {point for point in POINTS if getattr(type(hook), point) is not getattr(Hook, point)}]
        for hook in asyncio.run(hooks())
    ]

    rows = table(section(ARCHITECTURE, "Hooks"))
    assert [[name.strip("`"), set(in_backticks(points))] for name, points, _ in rows] == expected
    assert set(POINTS) <= set(in_backticks(section(ARCHITECTURE, "Hooks")))


def test_events_are_all_in_the_reference() -> None:
    def members(union: Any) -> set[str]:
        return (
            {union.__name__}
            if isinstance(union, type)
            else {name for part in get_args(union) for name in members(part)}
        )

    assert members(Event) <= set(in_backticks(section(REFERENCE, "Events")))


def test_log_records_are_in_the_reference_with_their_fields() -> None:
    kinds = [*SYSTEM_RECORDS, *(record for capability in BUILTIN for record in capability.record_types)]
    rows = {
        row[1].strip("`"): in_backticks(row[2]) for row in table(section(REFERENCE, "Records of the log")) if row[1]
    }

    assert rows.keys() == {*subtypes_of(kinds), "system_reminder"}
    for kind in kinds:
        told = {name for subtype in subtypes_of([kind]) for name in rows[subtype]}
        fields = {field.alias or name for name, field in kind.model_fields.items()}
        assert fields - {"type", "subtype", "uuid"} <= told


def test_exit_codes_of_the_page_are_those_of_the_errors() -> None:
    codes = {int(code) for row in table(section(HEADLESS, "Exit codes")) for code in row[0].split(",")}
    classes = [value for value in vars(errors).values() if isinstance(value, type)]

    assert codes == {0, 129, 130, 143} | {kind.exit_code for kind in classes if issubclass(kind, errors.PanpanError)}
    assert codes == {int(code) for code in re.findall(r"\d+", EPILOG.partition("Exit codes:")[2])}


def test_pages_name_every_mode_tool_and_vendor() -> None:
    assert [row[0].strip("`") for row in table(section(PERMISSIONS, "Modes"))] == list(get_args(PermissionMode))
    assert {tool.name for tool in every_tool()} <= set(re.findall(r"\w+", section(TERMINAL, "What the model has")))
    vendors = text_of(MODELS)
    assert {vendor.name for vendor in VENDORS if vendor.name not in vendors} <= {"anthropic"}


def test_getting_started_lists_every_optional_part() -> None:
    parts = tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]["optional-dependencies"].keys()
    rows = table(section(ROOT / "docs" / "getting-started.md", "Optional parts"))
    named = [set(re.search(r"\[([\w,]+)\]'`$", row[1])[1].split(",")) for row in rows]  # type: ignore[index]

    assert set.union(*named[:-1]) == named[-1] == parts - {"inspect"}  # of the page on harnesses


def test_readme_is_short_and_links_every_page() -> None:
    linked = re.findall(r"\]\((docs/[\w-]+\.md)\)", section(README, "Documentation"))

    assert len(text_of(README).splitlines()) <= 150
    assert sorted(linked) == [str(page.relative_to(ROOT)) for page in PAGES]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_named_variables_are_read(document: Path) -> None:
    named = set(re.findall(r"\bPANPAN_[A-Z_]*[A-Z]", text_of(document)))

    assert {name for name in named if not is_of_attempt(name)} <= {*VARIABLES, *OTHER_VARIABLES}


def test_changelog_has_the_version() -> None:
    assert f"## [{panpan.__version__}]" in text_of(ROOT / "CHANGELOG.md")


# the picture


def screenshot() -> Any:
    spec = importlib.util.spec_from_file_location("screenshot", ROOT / "scripts" / "screenshot.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


def test_picture_is_a_small_png() -> None:
    data = (ROOT / "docs" / "images" / "demo.png").read_bytes()

    assert data.startswith(b"\x89PNG\r\n")
    assert len(data) <= 150_000


def test_picture_shows_lines_wrapped_and_styled_like_a_terminal() -> None:
    rows = screenshot().rows_of("abcde\r\n\x1b[1mf\x1b[0m\x1b[31mg\x1b[0m\r\n", 3)

    assert ["".join(char for char, _ in row) for row in rows] == ["abc", "de", "fg"]
    (_, bold), (_, red) = rows[2]
    assert (bold.is_bold, red.is_bold, red.colour) == (True, False, (240, 113, 120))


@pytest.mark.parametrize("output", ["\x1b[2J", "\x1b[4mx", "a\x07"])
def test_picture_refuses_output_that_it_cannot_draw(output: str) -> None:
    with pytest.raises(ValueError, match="not drawn here"):
        screenshot().rows_of(output, 80)


def test_python_in_the_documents_is_well_formed() -> None:
    for document in DOCUMENTS:
        for block in blocks(document, "python"):
            ast.parse(block)

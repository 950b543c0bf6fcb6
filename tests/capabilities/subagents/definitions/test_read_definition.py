import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.subagents.definitions.files import TO_FILL_IN, Form, Format, as_text, new_text, read_text
from panpan.capabilities.subagents.definitions.read_definition import (
    COLORS,
    KEYS,
    MAX_DESCRIPTION_CHARS,
    Problem,
    notes_on_tools,
)
from panpan.types.agent import AgentAccess, AgentDefinition, AgentModel, AgentRun, SpendingLimits
from panpan.types.llm import Sampling
from panpan.types.permission import PermissionMode

WHOLE = """---
name: reviewer
description: Reads a change.
tools: Read, Agent, Bash(git log, git diff), mcp__docs__*, Read
disallowedTools: [Write, "Bash(rm *)"]
model: haiku
permissionMode: plan
maxTurns: 12
background: yes
isolation: worktree
color: blue
maxBudgetUsd: 0.5
maxTokens: 9000
maxSeconds: 1.5
maxCalls: 7
somethingNew: 1
---

You review.

"""


def read(text: str, format_: Format = "panpan") -> tuple[AgentDefinition | None, tuple[Problem, ...]]:
    return read_text(text, "x.md", Form(format_))


def with_head(*lines: str) -> str:
    return "\n".join(["---", "name: x", "description: d", *lines, "---", "prompt"])


def defined(text: str, format_: Format = "panpan") -> AgentDefinition:
    definition, problems = read(text, format_)
    assert definition is not None, problems
    return definition


def errors(text: str) -> list[str]:
    definition, problems = read(text)
    found = [str(problem) for problem in problems if problem.is_error]
    assert (definition is None) == bool(found)
    return found


def notes(text: str) -> list[str]:
    definition, problems = read(text)
    assert definition is not None
    return [str(problem) for problem in problems]


def test_definition_understands_every_key() -> None:
    assert defined(WHOLE) == AgentDefinition(
        "reviewer",
        "Reads a change.",
        "You review.",
        AgentAccess(("Read", "Task", "mcp__docs__*"), ("Write", "Bash"), "plan"),
        AgentModel("haiku"),
        AgentRun(12, True, "worktree", SpendingLimits(usd=0.5, tokens=9000, seconds=1.5, calls=7)),
        color="blue",
        source="x.md",
    )
    assert notes(WHOLE) == [
        "x.md:4: Bash(git log, git diff) names a part of a tool, so Bash is not given at all; "
        "say it in a permission rule",
        "x.md:5: Bash(rm *) names a part of a tool, so all of Bash is taken away; say it in a permission rule",
    ]


def test_definition_leaves_the_rest_to_the_session() -> None:
    assert defined(with_head()) == AgentDefinition("x", "d", "prompt", source="x.md")


@pytest.mark.parametrize(
    ("line", "tools"),
    [
        ("tools: '*'", None),
        ("tools: All tools", None),
        ("tools:", None),
        ("tools: []", ()),
        ("tools: Read,, Grep ,", ("Read", "Grep")),
        ("tools:\n  - Read\n  - Grep", ("Read", "Grep")),
        ("tools: Bash(a), Agent(b, c)", ()),
    ],
)
def test_definition_gives_only_the_tools_it_names(line: str, tools: tuple[str, ...] | None) -> None:
    assert defined(with_head(line)).access.tools == tools


@pytest.mark.parametrize(
    ("line", "taken"),
    [
        ("disallowedTools: '*'", ("*",)),
        ("disallowedTools:", ()),
        ("disallowedTools: Agent(x), KillShell", ("Task", "TaskStop")),
    ],
)
def test_partly_disallowed_tool_is_disallowed_whole(line: str, taken: tuple[str, ...]) -> None:
    assert defined(with_head(line)).access.disallowed_tools == taken


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (
            "permissionMode: yolo",
            "x.md:4: there is no permission mode 'yolo'; there are default, acceptEdits, auto, plan, ",
        ),
        ("maxTurns: 0", "x.md:4: maxTurns has to be a whole number of 1 or more"),
        ("maxTurns: 2.5", "x.md:4: maxTurns has to be a whole number of 1 or more"),
        ("maxTurns: many", "x.md:4: maxTurns has to be a whole number of 1 or more, and not 'many'"),
        ("maxTokens: -3", "x.md:4: maxTokens has to be a whole number"),
        ("maxTokens: 1e999", "x.md:4: maxTokens has to be a whole number"),
        ("maxBudgetUsd: nan", "x.md:4: maxBudgetUsd has to be a number above 0"),
        ("maxSeconds: [1]", "x.md:4: maxSeconds has to be a text"),
        ("background: maybe", "x.md:4: background has to be true or false, and not 'maybe'"),
        ("isolation: container", "x.md:4: isolation has to be worktree, and not 'container'"),
        ("tools: {Read: true}", "x.md:4: tools has to be names with commas between them, or a list"),
        ("disallowedTools: {Read: true}", "x.md:4: disallowedTools has to be names"),
        ('model: "a\\nb"', "x.md:4: model is not the name of a model"),
        ("name: ../x", "x.md:4: the name has to be letters, digits and dashes"),
        ("name: " + "x" * 65, "x.md:4: the name has to be letters, digits and dashes"),
    ],
)
def test_meaningless_value_is_an_error_with_its_line(line: str, error: str) -> None:
    (found,) = errors(with_head(line))

    assert found.startswith(error)


def test_name_description_and_prompt_are_required() -> None:
    assert errors("---\nmodel: x\n---\n") == [
        "x.md:1: there is no name",
        "x.md:1: there is no description, which tells the model when to use it",
        "x.md:1: there is no prompt: write it below the head of the file",
    ]
    assert errors("just words") == [
        "x.md:1: it has no head: a line of ---, then name and description, then a line of ---"
    ]
    assert errors("---\nname: x\n") == ["x.md:1: the head that begins here has no end, which is a line of ---"]


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("color: mauve", "x.md:4: there is no colour 'mauve'; there are red, blue, "),
        ("permissionMode: manual", "x.md:4: panpan has no mode manual; the session's mode applies"),
        ("tools:", "x.md:4: tools is empty, so it has every tool"),
        ("permisionMode: plan", "x.md:4: there is no key permisionMode; did you mean permissionMode?"),
        ("memory: user", "x.md:4: panpan does not use memory"),
        ("name: x", "x.md:4: name appears twice; this one counts"),
        ("description: " + "d" * 5000, "x.md:4: the description is cut after 4,000 characters"),
    ],
)
def test_key_without_effect_is_noted_with_its_line(line: str, note: str) -> None:
    assert notes(with_head(line))[-1].startswith(note) or notes(with_head(line))[0].startswith(note)


@pytest.mark.parametrize(
    ("servers", "tools"),
    [
        ("[docs]", ("Read", "mcp__docs__*")),
        ("docs, sky", ("Read", "mcp__docs__*", "mcp__sky__*")),
        ("[docs, {sky: {command: x}}]", ("Read", "mcp__docs__*", "mcp__sky__*")),
        ("{sky: {command: x}}", ("Read", "mcp__sky__*")),
        ("[5, [a]]", ("Read",)),
    ],
)
def test_servers_give_their_tools_besides_the_others(servers: str, tools: tuple[str, ...]) -> None:
    assert defined(with_head("tools: Read", f"mcpServers: {servers}")).access.tools == tools
    assert defined(with_head(f"mcpServers: {servers}")).access.tools is None


def test_servers_that_cannot_be_read_are_noted() -> None:
    assert notes(with_head("mcpServers: &a [x]")) == [
        "x.md:4: its mcpServers cannot be read: anchors, aliases and tags are not read"
    ]


def test_description_is_bounded() -> None:
    assert len(defined(with_head("description: " + "d" * 50_000)).description) == MAX_DESCRIPTION_CHARS


def test_problem_drives_no_terminal() -> None:
    (error,) = errors(with_head('permissionMode: "\\e[2Jx"'))

    assert error.isprintable()


def test_unknown_tools_are_noted_in_any_case() -> None:
    definition = defined(with_head("tools: Read, bash, Grepp, mcp__x__*, Multi*", "disallowedTools: Nothing"))

    found = [problem.text for problem in notes_on_tools(definition, ["Read", "Bash", "Grep", "MultiEdit"])]

    assert found == [
        "there is no tool Grepp, so it means nothing; did you mean Grep?",
        "there is no tool Nothing, so it means nothing",
    ]


OPENCODE = """---
description: Reads docs
mode: subagent
model: anthropic/x
steps: 5
tools:
  write: false
  bash: true
permission:
  edit: deny
  webfetch: ask
  bash:
    "*": allow
    git push: deny
---
Read.
"""


def test_opencode_definition_is_understood() -> None:
    definition = defined(OPENCODE, "opencode")

    assert (definition.name, definition.description, definition.model.name) == ("x", "Reads docs", "anthropic/x")
    assert definition.run.max_turns == 5
    assert definition.access.tools is None
    assert set(definition.access.disallowed_tools) == {
        "Write",
        "Edit",
        "MultiEdit",
        "Patch",
        "Rename",
        "NotebookEdit",
        "LSP",
        "Bash",
    }


def test_opencode_definition_that_disables_all_gives_the_enabled() -> None:
    text = '---\ndescription: d\ntools: {"*": false, read: true, grep: true}\n---\np'
    denied = '---\ndescription: d\npermission: {"*": deny}\n---\np'

    assert defined(text, "opencode").access.tools == ("Read", "Grep")
    assert defined(text, "opencode").access.disallowed_tools == ()
    assert defined(denied, "opencode").access.disallowed_tools == ("*",)


@pytest.mark.parametrize(
    ("format_", "line"), [("opencode", "mode: primary"), ("opencode", "disable: true"), ("gemini", "kind: remote")]
)
def test_foreign_file_that_is_no_subagent_is_none(format_: Format, line: str) -> None:
    assert read(with_head(line), format_) == (None, ())


def test_gemini_definition_is_understood() -> None:
    definition = defined(
        with_head("tools: [read_file, replace, run_shell_command, other]", "max_turns: 9", "timeout_mins: 1.5"),
        "gemini",
    )

    assert definition.access.tools == ("Read", "Edit", "MultiEdit", "Bash", "other")
    assert (definition.run.max_turns, definition.run.limits) == (9, SpendingLimits(seconds=90.0))
    assert read(with_head("timeout_mins: soon"), "gemini")[0] is None
    assert read(with_head("tools: {a: b}"), "gemini")[0] is None


def test_new_file_defines_nothing_without_a_description() -> None:
    definition, (problem,) = read(new_text("my-agent"))

    assert definition is None
    assert (problem.line, problem.is_error) == (4, False)


def test_new_file_once_filled_in_works_and_shows_every_key() -> None:
    text = new_text("my-agent").replace(TO_FILL_IN, "Reads a change.")

    assert notes(text) == []
    assert defined(text).name == "my-agent"
    assert all(f"{key}: " in text for key in set(KEYS) - {"maxCalls"})
    uncommented = "\n".join(line.removeprefix("# ") if ": " in line[:20] else line for line in text.splitlines())
    assert defined(uncommented).run.isolation == "worktree"


WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60).filter(
    lambda text: text == text.strip()
)
LINES = st.lists(WORDS, min_size=1, max_size=4).map("\n".join)
NAMES = st.from_regex(r"[a-z0-9]+(-[a-z0-9]+)*", fullmatch=True).filter(lambda name: len(name) <= 64)
TOOLS = st.lists(st.from_regex(r"[A-Z][A-Za-z]{1,20}|mcp__\*", fullmatch=True), unique=True, max_size=4).map(tuple)
MODES: list[PermissionMode | None] = [None, "default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"]
SPENT = st.one_of(st.none(), st.floats(0.01, 1e6))
COUNTS = st.one_of(st.none(), st.integers(1, 10**9))
DEFINITIONS = st.builds(
    AgentDefinition,
    NAMES,
    LINES,
    LINES.filter(lambda text: bool(text.strip())),
    access=st.builds(AgentAccess, st.one_of(st.none(), TOOLS), TOOLS, st.sampled_from(MODES)),
    model=st.builds(AgentModel, WORDS.filter(str.isprintable), st.just(Sampling())),
    run=st.builds(
        AgentRun,
        COUNTS,
        st.booleans(),
        st.sampled_from([None, "worktree"]),
        st.builds(SpendingLimits, usd=SPENT, tokens=COUNTS, seconds=SPENT, calls=COUNTS),
    ),
    color=st.sampled_from(["", *COLORS]),
    source=st.just("x.md"),
)


@given(DEFINITIONS)
def test_shown_definition_round_trips(definition: AgentDefinition) -> None:
    assert defined(as_text(definition)) == definition


@given(st.one_of(st.text(), st.text("abn:-[]{}\"'#|> \n\\,&*").map(lambda text: f"---\n{text}\n---\nx")))
def test_definition_of_any_text_is_read_or_has_an_error(text: str) -> None:
    for format_ in ("panpan", "opencode", "gemini"):
        definition, problems = read(text, format_)
        assert (definition is None) == any(problem.is_error for problem in problems)
        assert all(problem.line >= 1 for problem in problems)


@pytest.mark.parametrize(
    "line", ["temperature: 2.5", "temperature: -1", "top_p: 0", "top_p: 1.5", "top_k: 0", "top_k: 1.5", "top_p: much"]
)
def test_sampling_out_of_its_bounds_is_an_error(line: str) -> None:
    (error,) = errors(with_head(line))

    assert line.partition(":")[0] in error


def test_sampling_is_read() -> None:
    sampling = defined(with_head("temperature: 0", "top_p: 0.9", "top_k: 40")).model.sampling

    assert sampling == Sampling(0.0, 0.9, 40)

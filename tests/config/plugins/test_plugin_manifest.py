"""Plug-ins of three formats, read into one model; what of them is refused, and what is only told."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.config.plugins.manifest import MCP_SCHEMA, SCHEMA, Plugin, PluginError, read_plugin, strict_fault
from panpan.config.plugins.store import SourceFile, content_of

CLAUDE = ".claude-plugin/plugin.json"
CODEX = ".codex-plugin/plugin.json"
FULL = {
    "skills/deploy/SKILL.md": "---\nname: deploy\n---\nx",
    "skills/deploy/references/SKILL.md": "not a skill of its own",
    "commands/docs/check.md": "x",
    "commands/hi.md": "x",
    "agents/reviewer.md": "x",
    "hooks/hooks.json": "{}",
    "output-styles/terse.md": "x",
    "bin/tool": "x",
    ".mcp.json": '{"mcpServers": {"db": {"command": "db"}}}',
    ".lsp.json": '{"lua": {"command": "lua-ls", "extensionToLanguage": {".lua": "lua"}}}',
    "README.md": "x",
}


def read(files: Mapping[str, Any], folder: str = "folder") -> Plugin:
    """Return the plug-in in files, of which those that are no text are written as JSON."""
    texts = {name: one if isinstance(one, str) else json.dumps(one, indent=1) for name, one in files.items()}
    return read_plugin(content_of({name: SourceFile(text.encode()) for name, text in texts.items()}), folder)


def parts(plugin: Plugin) -> set[tuple[str, str, str]]:
    return {(part.kind, part.path, part.name) for part in plugin.parts}


def refusal(files: Mapping[str, Any]) -> str:
    with pytest.raises(PluginError) as caught:
        read(files)
    return str(caught.value)


def test_layout_of_claude_code_has_all_parts() -> None:
    plugin = read({**FULL, CLAUDE: {"name": "acme", "version": "1.0", "description": "Tools\nof Acme"}})

    assert (plugin.name, plugin.format, plugin.version, plugin.description) == (
        "acme",
        "claude",
        "1.0",
        "Tools of Acme",
    )
    assert parts(plugin) == {
        ("skills", "skills/deploy/SKILL.md", ""),
        ("commands", "commands/docs/check.md", "docs:check"),
        ("commands", "commands/hi.md", "hi"),
        ("agents", "agents/reviewer.md", ""),
        ("hooks", "hooks/hooks.json", ""),
        ("output-styles", "output-styles/terse.md", ""),
        ("programs", "bin/tool", ""),
    }
    assert [(one.kind, one.name, one.title) for one in plugin.servers] == [
        ("mcp", "db", "db"),
        ("language", "lua", "lua-ls"),
    ]
    assert plugin.problems == []


def test_layout_needs_no_manifest() -> None:
    assert read(FULL, "acme").name == "acme"
    assert read({"SKILL.md": "x"}, "one").parts[0].path == "SKILL.md"


def test_layout_of_codex_has_skills_hooks_and_servers() -> None:
    manifest = {"name": "acme", "skills": "./more/", "interface": {"displayName": "Acme"}, "apps": "./.app.json"}
    plugin = read({**FULL, CODEX: manifest, "more/b/SKILL.md": "x"})

    assert parts(plugin) == {
        ("skills", "skills/deploy/SKILL.md", ""),
        ("skills", "more/b/SKILL.md", ""),
        ("hooks", "hooks/hooks.json", ""),
    }
    assert [one.name for one in plugin.servers] == ["db"]
    assert any("apps" in problem for problem in plugin.problems)
    assert "commands/: a Codex plug-in has none, so it is not used" in plugin.problems


def test_layout_of_agent_plugins_has_skills_and_servers() -> None:
    servers = {"$schema": MCP_SCHEMA, "mcpServers": {"a": {"type": "stdio", "command": "a"}, "b": {"type": "stdio"}}}
    plugin = read({**FULL, "plugin.json": {"$schema": SCHEMA, "name": "acme.tools", "odd": 1}, "mcp.json": servers})

    assert parts(plugin) == {("skills", "skills/deploy/SKILL.md", "")}
    assert [one.name for one in plugin.servers] == ["a"]
    assert plugin.problems == [
        'plugin.json:4: the key "odd" is not known and not used',
        "mcp.json:8: the server b does not count: it has no command",
    ]


def test_paths_of_the_manifest_replace_or_add() -> None:
    manifest = {
        "name": "acme",
        "commands": ["./other/go.md"],
        "agents": "./people",
        "skills": ["./extra", "./one"],
        "hooks": {"Stop": []},
        "mcpServers": {"web": {"url": "https://example.org/mcp"}},
    }
    plugin = read({**FULL, CLAUDE: manifest, "other/go.md": "x", "people/a.md": "x", "extra/b/SKILL.md": "x",
                   "one/SKILL.md": "x"})  # fmt: skip

    found = parts(plugin)
    assert {path for kind, path, _ in found if kind == "commands"} == {"other/go.md"}
    assert {path for kind, path, _ in found if kind == "agents"} == {"people/a.md"}
    assert {path for kind, path, _ in found if kind == "skills"} == {
        "skills/deploy/SKILL.md",
        "extra/b/SKILL.md",
        "one/SKILL.md",
    }
    inline = next(part for part in plugin.of_kind("hooks") if part.content is not None)
    assert json.loads(inline.content or b"") == {"hooks": {"Stop": []}}
    assert [one.name for one in plugin.servers if one.kind == "mcp"] == ["db", "web"]


def test_commands_may_be_named_in_the_manifest() -> None:
    given = {"about": {"source": "./README.md"}, "hi": {"content": "Say hi \ud800"}, "odd": {}}
    plugin = read({CLAUDE: {"name": "acme", "commands": given}, "README.md": "x"})

    assert parts(plugin) == {("commands", "README.md", "about"), ("commands", CLAUDE, "hi")}
    assert any("odd has neither source nor content" in problem for problem in plugin.problems)


@pytest.mark.parametrize("path", ["../out", "/etc", "~/x", "./a/../../b", "..\\out"])
def test_path_out_of_the_plugin_is_told_and_not_used(path: str) -> None:
    plugin = read({CLAUDE: {"name": "acme", "skills": path, "commands": [path], "mcpServers": path}})

    assert plugin.parts == []
    assert plugin.servers == []
    assert sum("leads out of the plug-in" in problem for problem in plugin.problems) == 3


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        ("{", "is no JSON"),
        ("[]", "holds no JSON object"),
        ({}, "the plug-in has no name"),
        ({"name": 1}, "the plug-in has no name"),
        ({"name": ""}, "the plug-in has no name"),
        ({"name": "a/b"}, "can be no name"),
        ({"name": ".."}, "can be no name"),
        ({"name": "a" * 65}, "can be no name"),
        ({"name": "\u0430cme"}, "Cyrillic small letter a"),
        ({"name": "acme\n"}, "can be no name"),
    ],
)
def test_wrong_manifest_costs_the_plugin(manifest: Any, why: str) -> None:
    for place in (CODEX, CLAUDE) if manifest != {} else (CODEX,):
        assert why in refusal({**FULL, place: manifest})


def test_problem_names_file_and_line() -> None:
    manifest = '{\n "name": "acme",\n "version": 3,\n "monitors": "./m.json"\n}'

    assert read({CLAUDE: manifest}).problems == [
        f"{CLAUDE}:3: version is no text and is not used",
        f'{CLAUDE}:4: the key "monitors" has no effect in panpan',
    ]


def test_folder_without_any_part_is_no_plugin() -> None:
    assert "neither a manifest nor any part" in refusal({"README.md": "x"})


# Agent Plugins 1.0.0: generated manifests, each as specified but for one violation.

TEXT = st.text(max_size=8)
NAMES = st.from_regex(r"[a-z0-9]([.-]?[a-z0-9]){0,20}", fullmatch=True)
VALID = st.fixed_dictionaries(
    {"$schema": st.just(SCHEMA), "name": NAMES},
    optional={
        "version": TEXT,
        "description": TEXT,
        "homepage": TEXT,
        "repository": TEXT,
        "license": TEXT,
        "author": st.fixed_dictionaries({}, optional={"name": TEXT, "email": TEXT, "url": TEXT}),
        "keywords": st.lists(TEXT, max_size=3),
        "extensions": st.dictionaries(st.just("com.example"), st.dictionaries(TEXT, TEXT, max_size=2), max_size=1),
    },
)
NO_TEXT = st.one_of(st.integers(), st.none(), st.lists(TEXT, max_size=1), st.booleans())
VIOLATIONS = st.one_of(
    st.tuples(st.sampled_from(["version", "description", "homepage", "repository", "license"]), NO_TEXT),
    st.tuples(st.just("$schema"), st.sampled_from([None, "", SCHEMA.replace("1.0.0", "1.1.0"), SCHEMA.upper()])),
    st.tuples(st.just("name"), st.sampled_from(["", "A", "-a", "a-", "a--b", "a..b", "a_b", "ä", "a" * 65, 1, None])),
    st.tuples(st.just("author"), st.sampled_from(["me", {"name": 1}, {"nick": "x"}, [], None])),
    st.tuples(st.just("keywords"), st.sampled_from(["a", [1], {}, None])),
)


@given(VALID)
def test_manifest_as_specified_is_read(manifest: Mapping[str, Any]) -> None:
    plugin = read({"plugin.json": manifest})

    assert plugin.name == manifest["name"]
    assert plugin.problems == []


@given(VALID, VIOLATIONS)
def test_each_violation_costs_the_plugin(manifest: Mapping[str, Any], wrong: tuple[str, Any]) -> None:
    with pytest.raises(PluginError):
        read({"plugin.json": {**manifest, wrong[0]: wrong[1]}})


@given(VALID, st.text(min_size=1, max_size=8), TEXT)
def test_unknown_key_is_told_and_ignored(manifest: Mapping[str, Any], key: str, value: str) -> None:
    known = {"$schema", "name", "version", "description", "author", "homepage", "repository", "license", "keywords"}
    if key in known | {"extensions"}:
        return
    assert len(read({"plugin.json": {**manifest, key: value}}).problems) == 1


@pytest.mark.parametrize(
    "settings",
    [
        {"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"A": "${PLUGIN_ROOT}/a"}, "cwd": "./d"},
        {"type": "stdio", "command": "./bin/x", "cwd": "${PLUGIN_DATA}"},
        {"type": "streamable-http", "url": "https://example.org/mcp", "headers": {"X-A": "b"}},
        {"type": "sse", "url": "http://127.0.0.1:8000/sse"},
        {"type": "streamable-http", "url": "http://localhost/mcp"},
        {"type": "streamable-http", "url": "http://[::1]:80/mcp"},
    ],
)
def test_server_as_specified_counts(settings: Mapping[str, Any]) -> None:
    assert strict_fault(settings) is None


@pytest.mark.parametrize(
    "settings",
    [
        [],
        {},
        {"type": "http", "url": "https://example.org"},
        {"type": "stdio"},
        {"type": "stdio", "command": ""},
        {"type": "stdio", "command": "/bin/sh"},
        {"type": "stdio", "command": "../x"},
        {"type": "stdio", "command": "./../x"},
        {"type": "stdio", "command": "a", "args": "b"},
        {"type": "stdio", "command": "a", "args": [1]},
        {"type": "stdio", "command": "a", "env": {"PLUGIN_ROOT": "x"}},
        {"type": "stdio", "command": "a", "env": {"A": 1}},
        {"type": "stdio", "command": "a", "cwd": "/tmp"},
        {"type": "stdio", "command": "a", "cwd": "${PLUGIN_ROOT}x"},
        {"type": "stdio", "command": "a", "cwd": "./../x"},
        {"type": "stdio", "command": "a", "url": "https://example.org"},
        {"type": "sse", "url": "http://example.org"},
        {"type": "sse", "url": "https://me@example.org"},
        {"type": "sse", "url": "https://example.org/#a"},
        {"type": "sse", "url": "example.org"},
        {"type": "sse", "url": "https://example.org", "headers": {"A b": "c"}},
        {"type": "sse", "url": "https://example.org", "headers": {"A": "c", "a": "d"}},
        {"type": "sse", "url": "https://example.org", "headers": {"A": "c\nB: d"}},
    ],
)
def test_server_against_the_specification_does_not_count(settings: Any) -> None:
    assert strict_fault(settings) is not None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda one: st.lists(one, max_size=2) | st.dictionaries(TEXT, one, max_size=2),
    max_leaves=6,
)
KEYS = [
    "version", "description", "skills", "commands", "agents", "hooks", "outputStyles", "mcpServers", "lspServers",
]  # fmt: skip


@given(st.sampled_from([CLAUDE, CODEX]), st.dictionaries(st.sampled_from(KEYS), JSON), JSON)
def test_wrong_types_are_told_and_never_more(place: str, manifest: Mapping[str, Any], servers: Any) -> None:
    plugin = read({**FULL, place: {**manifest, "name": "acme"}, ".mcp.json": json.dumps(servers)})

    assert all(part.path in (*FULL, place) for part in plugin.parts)

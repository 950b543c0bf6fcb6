"""The reader of Agent Plugins agrees with the published schemas of version 1.0.0, over generated manifests.

The schemas stand here as far as they decide: https://agent-plugins.org/schemas/1.0.0/plugin.schema.json and
mcp.schema.json. Where the specification says otherwise (unknown keys and a wrong `extensions` are told and ignored;
paths, addresses and headers have further rules), the tests say so.
"""

import json
from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from panpan.config.plugins.manifest import SCHEMA, PluginError, read_plugin, strict_fault
from panpan.config.plugins.store import SourceFile, content_of

TEXT = {"type": "string"}
TEXTS = {"type": "object", "additionalProperties": TEXT}
PLUGIN = Draft202012Validator({
    "type": "object",
    "properties": {
        "$schema": {"const": SCHEMA},
        "name": {
            "type": "string",
            "minLength": 1,
            "maxLength": 64,
            "pattern": r"^(?!.*(?:--|\.\.))[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$",
        },
        "author": {
            "type": "object", "properties": dict.fromkeys(("name", "email", "url"), TEXT), "additionalProperties": False
        },
        "keywords": {"type": "array", "items": TEXT},
        **dict.fromkeys(("version", "description", "homepage", "repository", "license"), TEXT),
    },
    "required": ["$schema", "name"],
})  # fmt: skip


def _closed(required: list[str], **properties: Any) -> Mapping[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _remote(kind: str) -> Mapping[str, Any]:
    return _closed(["type", "url"], type={"const": kind}, url={"type": "string", "minLength": 1}, headers=TEXTS)


SERVER = Draft202012Validator({
    "oneOf": [
        _closed(
            ["type", "command"],
            type={"const": "stdio"},
            command={"type": "string", "minLength": 1},
            args={"type": "array", "items": TEXT},
            env={**TEXTS, "propertyNames": {"not": {"enum": ["PLUGIN_ROOT", "PLUGIN_DATA"]}}},
            cwd={"type": "string", "pattern": r"^(?:\./|\$\{PLUGIN_ROOT\}(?:/|$)|\$\{PLUGIN_DATA\}(?:/|$))"},
        ),
        _remote("streamable-http"),
        _remote("sse"),
    ]
})  # fmt: skip

WORD = st.text(max_size=4)
ANYTHING = st.one_of(
    st.none(), st.booleans(), st.integers(), WORD, st.lists(WORD, max_size=2), st.lists(st.integers(), max_size=2),
    st.dictionaries(st.sampled_from(["name", "email", "PLUGIN_ROOT", "A"]), st.one_of(WORD, st.integers()), max_size=2),
)  # fmt: skip
NAMES = st.one_of(st.text(alphabet="ab-.A1_", max_size=8), st.from_regex(r"[a-z0-9.-]{1,66}", fullmatch=True))
MANIFEST = {
    "$schema": SCHEMA, "name": "acme", "version": "1", "description": "d", "author": {"name": "a"}, "homepage": "h",
    "repository": "r", "license": "l", "keywords": ["k"],
}  # fmt: skip
SERVERS = [
    {"type": "stdio", "command": "npx", "args": ["a"], "env": {"A": "b"}, "cwd": "./x"},
    {"type": "sse", "url": "https://example.org/", "headers": {"A": "b"}},
    {"type": "streamable-http", "url": "https://example.org/"},
]
PLACES = ["./a", "${PLUGIN_ROOT}", "${PLUGIN_DATA}/x", "/a", "${PLUGIN_ROOT}a", ""]


@st.composite
def changed(draw: st.DrawFn, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """A mapping with up to two keys left out, and up to two with another value."""
    gone = draw(st.sets(st.sampled_from(sorted(values)), max_size=2))
    other = draw(st.dictionaries(st.sampled_from([*sorted(values), "odd"]), ANYTHING, max_size=2))
    special = {"name": NAMES, "cwd": st.sampled_from(PLACES)}
    other |= {key: draw(kind) for key, kind in special.items() if key in values and draw(st.booleans())}
    return {**{key: value for key, value in values.items() if key not in gone}, **other}


@settings(max_examples=200)
@given(changed(MANIFEST))
def test_manifest_is_read_if_its_schema_allows_it(manifest: Mapping[str, Any]) -> None:
    files = {"plugin.json": SourceFile(json.dumps(manifest).encode())}
    try:
        read_plugin(content_of(files), "folder")
        is_read = True
    except PluginError:
        is_read = False

    assert is_read is PLUGIN.is_valid(manifest)


@settings(max_examples=300)
@given(st.sampled_from(SERVERS).flatmap(changed))
def test_server_counts_only_if_its_schema_allows_it(server: Mapping[str, Any]) -> None:
    fault = strict_fault(server)

    if not SERVER.is_valid(server):
        assert fault is not None
    elif fault is not None:  # the text of the specification has more rules than the schema
        assert fault.startswith(("its url", "its headers", "its command is neither", "its cwd"))

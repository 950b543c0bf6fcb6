import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.cli_kit.options import FLAGS
from panpan.config.keys import KeyPath, flatten, json_key_lines, put
from panpan.config.locations import Locations
from panpan.config.run_settings import given_sources
from panpan.config.settings_file import Source
from panpan.config.sources import Names, load_settings
from panpan.errors import ConfigError
from tests.fakes.settings import settings_with

CHOSEN = {"model": "m", "sandbox": {"network": True, "domains": ["pypi.org"]}, "max_rounds": 7}


def one(folder: Path, *settings: str, sets: tuple[str, ...] = ()) -> Source:
    (source,) = given_sources(settings, sets, folder)
    return source


def refused(folder: Path, *settings: str, sets: tuple[str, ...] = ()) -> str:
    with pytest.raises(ConfigError) as caught:
        given_sources(settings, sets, folder)
    return str(caught.value)


def test_settings_are_read_from_toml_json_and_the_flag_itself(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(
        'model = "m"\nmax_rounds = 7\n[sandbox]\nnetwork = true\ndomains = ["pypi.org"]\n'
    )
    (tmp_path / "run.json").write_text(json.dumps(CHOSEN, indent=1))
    (tmp_path / "bare").write_text(json.dumps(CHOSEN))

    for text in ("run.toml", "run.json", "bare", str(tmp_path / "run.toml"), json.dumps(CHOSEN)):
        assert one(tmp_path, text).values == CHOSEN


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("sandbox.network=true", ("sandbox", "network"), True),
        ("sandbox.domains=['pypi.org']", ("sandbox", "domains"), ["pypi.org"]),
        ("max_rounds = 7", ("max_rounds",), 7),
        ("model=claude-opus-4-1", ("model",), "claude-opus-4-1"),
        ('model="claude"', ("model",), "claude"),
        ("base_url=http://127.0.0.1:1/v1?a=b", ("base_url",), "http://127.0.0.1:1/v1?a=b"),
        ('tools.enabled."mcp__*"=false', ("tools", "enabled", "mcp__*"), False),
        ("data.max_gb=1.5", ("data", "max_gb"), 1.5),
    ],
)
def test_set_takes_a_dotted_key_and_a_toml_value_or_bare_text(
    tmp_path: Path, text: str, path: KeyPath, value: object
) -> None:
    values: dict[str, object] = {}
    put(values, path, value)

    assert one(tmp_path, sets=(text,)).values == values


@pytest.mark.parametrize("text", ["", "=1", "sandbox.network", "a b=1", "a\nb=1", "[a]=1", "#=1", "a=1, b=2", '"="=1'])
def test_set_refuses_anything_but_a_single_setting(tmp_path: Path, text: str) -> None:
    assert refused(tmp_path, sets=(text,)).startswith("--set ")


@given(value=st.text())
def test_set_never_sets_more_than_its_key(value: str) -> None:
    try:
        source = one(Path("/"), sets=(f"model={value}",))
    except ConfigError:
        return

    assert set(source.values) == {"model"}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.toml", "\nmax_rounds = 'x'\n", ":2: max_rounds is a text; write a whole number"),
        ("a.toml", "\n[sandbox\n", ":2: is not valid TOML"),
        ("a.json", '{\n "sandbox": {\n  "netwrk": true}}', ":3: there is no setting sandbox.netwrk; did you mean"),
        ("a.json", '{\n "sandbox": {\n  "network": 1}}', ":3: sandbox.network is a whole number; write true or false"),
        ("a.json", '{"model": "a",\n}', ":2: not valid JSON"),
        ("a.json", '{"model": "a", "model": "b"}', ": 'model' is twice"),
        ("a.json", '{"temperature": NaN}', ": NaN is not a JSON number"),
        ("a.json", "[]", ": not a JSON object; write settings as"),
        ("a.json", '{"a":' * 40_000, ": nested too deeply"),
        ("a.json", '{"a":' * 200 + "1" + "}" * 200, ": nested too deeply"),
    ],
)
def test_mistakes_in_files_name_file_and_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)

    assert refused(tmp_path, name).startswith(f"{tmp_path / name}{said}")


def test_mistakes_on_the_command_line_name_the_flag(tmp_path: Path) -> None:
    assert refused(tmp_path, '{"model": 5}') == "--settings: model is a whole number; write a text in quotes"
    assert refused(tmp_path, "gone.toml").startswith("--settings: there is no file 'gone.toml'")
    assert refused(tmp_path, "").startswith("--settings: there is no file ''")
    assert refused(tmp_path, sets=("sandbox.network=yes",)).startswith(
        "--set sandbox.network: sandbox.network is a text; write"
    )
    assert "did you mean max_rounds" in refused(tmp_path, sets=("max_turns=3",))


def test_settings_can_all_be_given_for_one_run(tmp_path: Path) -> None:
    keys = [path for path, _ in flatten(settings_with())]

    for path in keys:
        values: dict[str, object] = {}
        put(values, path, None)
        told = str(_fault_of(json.dumps(values), tmp_path))
        assert "there is no setting" not in told


def _fault_of(text: str, folder: Path) -> ConfigError | None:
    try:
        given_sources([text], (), folder)
    except ConfigError as error:
        return error
    return None


def test_given_settings_stand_between_environment_and_flags(tmp_path: Path) -> None:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    env = {"PANPAN_HOME": str(tmp_path / "home"), "PANPAN_MODEL": "of-env", "PANPAN_EFFORT": "high"}
    given = given_sources(
        ['{"model": "of-settings", "effort": "low", "permission": {"allow": ["Read"]}}'], ["model=of-set"], tmp_path
    )
    overrides: dict[str, object] = {"permission.allow": ("Edit",), "thinking": True, "names": Names(FLAGS)}

    loaded = load_settings(
        tmp_path / "project",
        env,
        {**dict(zip("ab", given, strict=True)), **overrides},
        Locations.find(tmp_path / "project", env),
    )

    assert (loaded.settings.model, loaded.settings.effort) == ("of-set", "low")
    assert loaded.settings.permission.allow == ("Read", "Edit")
    assert str(loaded.origins["model"]) == "--set model"
    assert str(loaded.origins["effort"]) == "--settings"
    assert str(loaded.origins["permission.allow"]) == "--settings, --allowedTools"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=15,
)


@given(values=st.dictionaries(st.text(), json_values))
def test_json_key_lines_finds_each_key_of_nested_objects(values: dict[str, object]) -> None:
    text = json.dumps(values, indent=1)
    lines = text.split("\n")

    found = json_key_lines(text)

    assert set(found) == set(_keys(values, ()))
    assert all(f"{json.dumps(path[-1])}:" in lines[line - 1] for path, line in found.items())


def _keys(values: dict[str, object], above: KeyPath) -> list[KeyPath]:
    keys: list[KeyPath] = []
    for name, value in values.items():
        keys.append((*above, name))
        keys += _keys(value, (*above, name)) if isinstance(value, dict) else []
    return keys


CLAUDES = {
    "model": "m",
    "permissions": {"allow": ["Read"], "deny": ["Bash(rm *)"], "defaultMode": "plan"},
    "env": {"COLOUR": "red"},
    "sandbox": {"enabled": True, "excludedCommands": ["docker"], "network": {"allowedDomains": ["pypi.org"]}},
    "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]},
    "cleanupPeriodDays": 3,
}


def test_settings_in_the_words_of_claude_code_are_understood(tmp_path: Path) -> None:
    (tmp_path / "claude.json").write_text(json.dumps(CLAUDES))

    for text in ("claude.json", json.dumps(CLAUDES)):
        assert one(tmp_path, text).values == {
            "model": "m",
            "permission": {"allow": ["Read"], "deny": ["Bash(rm *)"], "mode": "plan"},
            "environment": {"variables": {"COLOUR": "red"}},
            "sandbox": {"mode": "on", "outside": ["docker *"], "domains": ["pypi.org"]},
            "hooks": CLAUDES["hooks"],
        }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"permissions": 3}', "permissions and sandbox are objects"),
        ('{"permissions": {"allow": "Read"}}', "permissions.allow is no list"),
        ('{"permissions": {"defaultMode": "careless"}}', "permission.mode is unknown"),
        ('{"env": {"A B": "x"}}', "'A B'"),
    ],
)
def test_unusable_settings_in_those_words_are_refused(tmp_path: Path, text: str, said: str) -> None:
    assert said in refused(tmp_path, text)

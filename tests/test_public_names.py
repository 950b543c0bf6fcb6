"""The public names of panpan: they load, are documented, and cover what they promise."""

import inspect
import re
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import pytest

import panpan
from panpan import events
from panpan.errors import ConfigError

DOCUMENT = Path(__file__).parent.parent / "docs" / "python-api.md"
MODULES = ["panpan", "panpan.capabilities", "panpan.events", "panpan.tools"]


def documented(module: str) -> set[str]:
    (names,) = re.findall(rf"^\| `{re.escape(module)}` \| (.+) \|$", DOCUMENT.read_text(), re.MULTILINE)
    return set(re.findall(r"`(\w+)`", names))


@pytest.mark.parametrize("module", MODULES)
def test_all_lists_the_documented_names(module: str) -> None:
    assert set(import_module(module).__all__) == documented(module)


@pytest.mark.parametrize("name", [f"{module}:{name}" for module in MODULES for name in import_module(module).__all__])
def test_public_name_loads_with_a_docstring(name: str) -> None:
    module, _, attribute = name.partition(":")
    value: Any = getattr(import_module(module), attribute)

    if inspect.isclass(value) or inspect.isfunction(value):
        assert inspect.getdoc(value)
    else:
        assert isinstance(value, str) or get_args(value)


@pytest.mark.parametrize("module", ["panpan", "panpan.capabilities", "panpan.tools"])
def test_unknown_name_is_an_attribute_error(module: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'nothing'"):
        _ = import_module(module).nothing


def test_events_name_every_member_of_the_union() -> None:
    members = {getattr(member, "__name__", member) for member in get_args(events.Event)}

    assert members <= set(events.__all__)


def test_package_says_that_it_is_typed() -> None:
    assert files("panpan").joinpath("py.typed").is_file()


def tape(folder: Path, *replies: str) -> str:
    path = folder / "tape.toml"
    path.write_text("version = 1\n" + "\n".join(f"[[reply]]\n{reply}" for reply in replies))
    return f"cassette:{path}"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PANPAN_HOME", str(tmp_path / "home"))
    return tmp_path


async def test_ask_returns_the_text_of_the_last_reply(home: Path) -> None:
    (home / "work").mkdir()
    touch = 'tool_use = [{ name = "Bash", input = { command = "touch made" } }]'

    answer = await panpan.ask("go", home / "work", model=tape(home, touch, 'text = "I could not."'))

    assert answer == "I could not."
    assert not (home / "work" / "made").exists()


async def test_ask_raises_errors_that_the_user_can_fix(home: Path) -> None:
    with pytest.raises(panpan.PanpanError, match="nothing"):
        await panpan.ask("go", home, model=f"cassette:{home / 'nothing.toml'}")


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"max_round": 2}, 'overrides["max_round"]: there is no setting max_round; did you mean max_rounds?'),
        ({"permissions.mode": "plan"}, 'overrides["permissions.mode"]: there is no setting permissions'),
        ({"web.pace_s": -1}, 'overrides["web.pace_s"]: web.pace_s is too small; write at least 0'),
        ({"max_rounds": -1}, 'overrides["max_rounds"]: max_rounds is too small; write at least 1'),
        ({"permission.mode": "nosuch"}, 'overrides["permission.mode"]: permission.mode is unknown; write '),
        ({"permission": {"mode": "nosuch"}}, 'overrides["permission"]: permission.mode is unknown; write '),
        ({"sandbox.mode": "nosuch"}, 'overrides["sandbox.mode"]: sandbox.mode is unknown; write '),
    ],
)
async def test_ask_names_the_override_that_is_wrong(home: Path, overrides: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        await panpan.ask("go", home, overrides=overrides)

    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("prompt", ["", " \n\t"])
async def test_ask_refuses_a_blank_prompt(home: Path, prompt: str) -> None:
    with pytest.raises(ConfigError, match=r"^there is no prompt; "):
        await panpan.ask(prompt, home, model=tape(home))

    assert not (home / "home").exists()


def test_ask_sync_needs_no_event_loop(home: Path) -> None:
    assert panpan.ask_sync("go", home, model=tape(home, 'text = "Yes."')) == "Yes."


async def test_ask_sync_inside_a_loop_names_ask(home: Path) -> None:
    with pytest.raises(RuntimeError, match=r"use `await panpan\.ask"):
        panpan.ask_sync("go", home)

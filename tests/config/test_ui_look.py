"""The first screen reads the same settings as the rest."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from panpan.config.locations import Locations
from panpan.config.settings_writer import save_setting
from panpan.config.sources import load_settings
from panpan.config.ui_look import read_ui_look

UI = st.fixed_dictionaries(
    {},
    optional={
        "theme": st.sampled_from(["auto", "light", "dark", "high-contrast", "plain"]),
        "vim": st.booleans(),
        "plain": st.booleans(),
        "notify": st.just("off"),
    },
)


def toml(values: dict[str, object]) -> str:
    lines = (
        f"{key} = {str(value).lower() if isinstance(value, bool) else repr(value)}" for key, value in values.items()
    )
    return "[ui]\n" + "\n".join(lines) + "\n"


@given(user=UI, local=UI, project=UI, flag=st.sampled_from([None, True]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=50)
def test_ui_look_equals_the_settings(tmp_path: Path, user: dict, local: dict, project: dict, flag: bool | None) -> None:
    env = {"HOME": str(tmp_path), "PANPAN_HOME": str(tmp_path / "home")}
    places = Locations.find(tmp_path, env)
    for path, values in (
        (places.user_settings, user),
        (places.local_settings, local),
        (places.project_settings, project),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(toml(values))

    look = read_ui_look(tmp_path, env, plain=flag)

    ui = load_settings(tmp_path, env, {"ui.plain": flag}, places).settings.ui
    assert (look.theme, look.vim, look.plain) == (ui.theme, ui.vim, ui.plain)
    assert look.history_file == places.history_file


@pytest.mark.parametrize(
    "text",
    ["ui = 3", "[ui]\ntheme = 'pink'\nvim = 'yes'\nplain = 1", "[ui", "\xff", "[ui]\n" + "a." * 200_000 + "b = 1"],
)
def test_ui_look_ignores_broken_files(tmp_path: Path, text: str) -> None:
    env = {"HOME": str(tmp_path), "PANPAN_HOME": str(tmp_path)}
    (tmp_path / "settings.toml").write_bytes(text.encode("latin-1"))

    look = read_ui_look(tmp_path, env, plain=None)

    assert (look.theme, look.vim, look.plain) == ("auto", False, False)


@given(user=UI, local=UI, theme=st.sampled_from(["auto", "light", "dark", "high-contrast", "plain"]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=20)
def test_ui_look_follows_a_saved_theme(tmp_path: Path, user: dict, local: dict, theme: str) -> None:
    env = {"HOME": str(tmp_path), "PANPAN_HOME": str(tmp_path / "home")}
    places = Locations.find(tmp_path, env)
    for path, values in ((places.user_settings, user), (places.local_settings, local)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(toml(values))

    save_setting(places, ("ui", "theme"), theme)

    assert read_ui_look(tmp_path, env, plain=None).theme == theme


def test_ui_look_prefers_the_command_line_to_files(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "settings.toml").write_text('[ui]\ntheme = "dark"\nvim = true\n')

    look = read_ui_look(tmp_path, {"PANPAN_HOME": str(home)}, plain=None, given={"theme": "light", "plain": True})

    assert (look.theme, look.vim, look.plain) == ("light", True, True)

import os
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from panpan.cli.config_command import command, settings_lines
from panpan.cli.main import cli
from panpan.config.keys import flatten, put
from panpan.config.sources import Loaded
from panpan.errors import ConfigError
from tests.fakes.settings import settings_with

KEY = "sk-config-0123456789"


def show(folder: Path, *flags: str, **env: str) -> Result:
    everything = {name: None for name in os.environ} | {"PANPAN_HOME": str(folder / "home"), "HOME": str(folder)} | env
    return CliRunner().invoke(command, ["show", "--cwd", str(folder / "project"), *flags], env=everything)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "project" / ".panpan").mkdir()
    (tmp_path / "home").mkdir(mode=0o700)
    return tmp_path


def test_config_show_prints_settings_in_force_as_toml(folder: Path) -> None:
    (folder / "home" / "settings.toml").write_text('model = "a"\n[permission]\nallow = ["Bash(ls)"]\n')

    result = show(folder, PANPAN_EFFORT="high")

    assert result.exit_code == 0
    values = tomllib.loads(result.stdout)
    assert (values["model"], values["effort"], values["permission"]["allow"]) == ("a", "high", ["Bash(ls)"])
    assert "# provider is not set\n" in result.stdout
    assert "# idle_timeout_s is not set\n" in result.stdout, "it depends on the server"


def test_config_show_origin_names_the_source_of_each_value(folder: Path) -> None:
    user = folder / "home" / "settings.toml"
    user.write_text('\nmodel = "a"\npermission.deny = ["B"]\n')
    project = folder / "project" / ".panpan" / "settings.toml"
    project.write_text('permission.deny = ["C"]\n')

    lines = show(folder, "--show-origin", PANPAN_EFFORT="high").stdout.splitlines()

    assert f'model = "a"  # {user}:2' in lines
    assert 'effort = "high"  # PANPAN_EFFORT' in lines
    assert "thinking = false  # default" in lines
    assert f'    "B",  # {user}:3' in lines
    assert f'    "C",  # {project}:1' in lines


def test_config_show_prints_no_secrets(folder: Path) -> None:
    user = folder / "home" / "settings.toml"
    user.write_text(f'[providers.x]\napi_key = "{KEY}-1"\nheaders.Authorization = "Bearer {KEY}-2"\n')
    user.chmod(0o600)

    for flags in ([], ["--show-origin"]):
        result = show(folder, *flags, PANPAN_API_KEY=KEY)
        assert KEY not in result.output
        assert result.stdout.count('"********"') == 3


def test_config_show_writes_warnings_to_standard_error(folder: Path) -> None:
    (folder / "project" / ".panpan" / "settings.toml").write_text('base_url = "http://evil"\n')

    result = show(folder)

    assert result.exit_code == 0
    assert "base_url is ignored" in result.stderr
    assert "evil" not in result.stdout


def test_config_show_names_the_model_and_its_reason(folder: Path) -> None:
    chosen = show(folder, ANTHROPIC_API_KEY=KEY).stdout.splitlines()
    none = show(folder).stdout.splitlines()

    assert chosen[0].startswith("# panpan would ask claude-")
    assert chosen[0].endswith("since ANTHROPIC_API_KEY is set")
    assert none[0].startswith("# panpan has no model to ask: no model is set up; run: panpan login, or set ")
    assert "# model is not set" in chosen


def test_config_show_raises_for_a_broken_file(folder: Path) -> None:
    (folder / "home" / "settings.toml").write_text("modle = 1\n")

    result = show(folder)

    assert isinstance(result.exception, ConfigError)
    assert result.stdout == ""


def test_config_show_takes_cwd_before_and_behind_the_command(folder: Path) -> None:
    (folder / "project" / ".panpan" / "settings.toml").write_text("max_rounds = 7\n")
    (folder / "empty").mkdir()

    @click.group()
    @click.option("--cwd")
    def panpan(cwd: str) -> None: ...

    panpan.add_command(command)
    env = {"PANPAN_HOME": str(folder / "home")}
    inner = ["--cwd", str(folder / "empty")]

    chosen = CliRunner().invoke(panpan, ["--cwd", str(folder / "project"), "config", "show"], env=env)
    overruled = CliRunner().invoke(panpan, ["--cwd", str(folder / "project"), "config", "show", *inner], env=env)

    assert "max_rounds = 7" in chosen.stdout
    assert "# max_rounds is not set" in overruled.stdout


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(
    model=_TEXT,
    aliases=st.dictionaries(_TEXT, _TEXT, max_size=3),
    rules=st.lists(_TEXT, max_size=3),
    temperature=st.floats(0, 2),
)
def test_settings_lines_round_trip_as_toml(
    model: str, aliases: dict[str, str], rules: list[str], temperature: float
) -> None:
    settings = settings_with(model=model, aliases=aliases, temperature=temperature, permission={"allow": rules})  # type: ignore[arg-type]

    lines = list(settings_lines(Loaded(settings, (), ()), show_origin=False))

    assert all(line.isprintable() for line in lines)
    expected: dict[str, object] = {}
    for path, value in flatten(settings):
        if value is not None:
            put(expected, path, list(value) if isinstance(value, tuple) else value)
    assert tomllib.loads("\n".join(lines)) == expected


def test_config_show_origin_names_flags_and_settings_files(folder: Path) -> None:
    (folder / "run.toml").write_text('\nmodel = "of-file"\n[sandbox]\nmode = "off"\n')
    flags = [f"--settings={folder / 'run.toml'}", "--set", "max_rounds=3", "--allow-network=pypi.org", "--sandbox=on"]
    env = {name: None for name in os.environ} | {"PANPAN_HOME": str(folder / "home"), "HOME": str(folder)}

    told = CliRunner().invoke(
        cli, [*flags, "--cwd", str(folder / "project"), "config", "show", "--show-origin"], env=env
    )

    assert f'model = "of-file"  # {folder / "run.toml"}:2' in told.stdout.splitlines()
    assert "max_rounds = 3  # --set max_rounds" in told.stdout.splitlines()
    assert '    "pypi.org",  # --allow-network' in told.stdout.splitlines()
    assert 'sandbox.mode = "on"  # --sandbox' in told.stdout.splitlines()


def test_config_show_names_the_flag_with_a_wrong_host(folder: Path) -> None:
    env = {name: None for name in os.environ} | {"PANPAN_HOME": str(folder / "home"), "HOME": str(folder)}

    told = CliRunner().invoke(cli, ["--allow-network=a.b/c", "config", "show"], env=env)

    assert str(told.exception).startswith("--allow-network: sandbox.domains holds 'a.b/c', which is not a domain")

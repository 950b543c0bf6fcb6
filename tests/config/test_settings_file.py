import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.config.settings_file import SourceKind, parse_settings, read_settings_file
from panpan.errors import ConfigError
from tests.config.conftest import Place

FILE = Path("/f.toml")


def fault(text: str | bytes) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_settings(text if isinstance(text, bytes) else text.encode(), FILE, "user")
    return str(caught.value)


def test_missing_settings_file_is_empty(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert read_settings_file(tmp_path / "none" / "settings.toml", "user") is None
    assert read_settings_file(tmp_path / "file" / "settings.toml", "user") is None


@pytest.mark.parametrize("link", ["h/.panpan/settings.toml", "h/.panpan", "h"])
@pytest.mark.parametrize("kind", ["user", "local"])
def test_settings_behind_a_lost_link_are_an_error(tmp_path: Path, link: str, kind: SourceKind) -> None:
    (tmp_path / link).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / link).symlink_to(tmp_path / "gone")

    with pytest.raises(ConfigError, match=f"the link {tmp_path / link} leads nowhere"):
        read_settings_file(tmp_path / "h/.panpan/settings.toml", kind)

    assert read_settings_file(tmp_path / "h/.panpan/settings.toml", "project") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('x = 1\n\nmodle = "a"', "/f.toml:1: there is no setting x; remove it (and 1 more)"),
        ('\n\nmodle = "a"', "/f.toml:3: there is no setting modle; did you mean model?"),
        ('[permissions]\nallow = ["a"]', "/f.toml:1: there is no setting permissions; did you mean permission?"),
        ("[permission]\nalow = []", "/f.toml:2: there is no setting permission.alow; did you mean permission.allow?"),
        ("max_turns = 5", "/f.toml:1: there is no setting max_turns; did you mean max_rounds?"),
        ('mode = "plan"', "/f.toml:1: there is no setting mode; did you mean permission.mode?"),
        ('[permission]\nmodel = "a"', "/f.toml:2: there is no setting permission.model; did you mean model?"),
        (
            "[permission]\nthinking = true",
            "/f.toml:2: there is no setting permission.thinking; did you mean thinking?",
        ),
        (
            '[providers.a]\nbase_ulr = "x"',
            "/f.toml:2: there is no setting providers.a.base_ulr; did you mean providers.a.base_url?",
        ),
        ('[providers.a]\nkind="x"', "/f.toml:2: providers.a.kind is unknown; write 'anthropic' or 'openai'"),
        ("MODEL = 1", "/f.toml:1: there is no setting MODEL; did you mean model?"),
    ],
)
def test_unknown_key_error_names_its_line_and_the_nearest_key(text: str, message: str) -> None:
    assert fault(text) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model = 1", "model is a whole number; write a text in quotes"),
        ('model = ""', "model is empty; write something or remove it"),
        ('thinking = "yes"', "thinking is a text; write true or false"),
        ('max_rounds = "5"', "max_rounds is a text; write a whole number"),
        ("max_rounds = 5.0", "max_rounds is a number; write a whole number"),
        ("max_rounds = true", "max_rounds is true or false; write a whole number"),
        ("max_rounds = 0", "max_rounds is too small; write at least 1"),
        ("idle_timeout_s = inf", "idle_timeout_s is not finite; write a number"),
        ("thinking_budget_tokens = 10", "thinking_budget_tokens is too small; write at least 1024"),
        ('permission = "plan"', "permission is a text; write a table"),
        ('permission.allow = "Bash"', "permission.allow is a text; write a list"),
        ("permission.allow = [1]", "permission.allow has an item that is a whole number; write a text in quotes"),
        ("providers = []", "providers is a list; write a table"),
        ("providers.a = 1", "providers.a is a whole number; write a table"),
        ("aliases.fast = 2000-01-01", "aliases.fast is a date; write a text in quotes"),
        ('aliases."" = "x"', 'aliases."" has an empty or too long name; write a shorter one, or remove it'),
        ('tools.enabled.Bash = "no"', "tools.enabled.Bash is a text; write true or false"),
        ('base_url = "ftp://x"', "base_url is not an address; write one such as https://api.example.com/v1"),
        ('base_url = "http://u:p@x"', "base_url holds a user name or password; use api_key_env or headers"),
        ('base_url = "http://x:99999"', "base_url is not an address; write one such as https://api.example.com/v1"),
        ('base_url = "http://x /y"', "base_url holds blanks; remove them"),
        (
            "additional_directories = [1]",
            "additional_directories has an item that is a whole number; write a path in quotes",
        ),
        ("version = 0", "version is unknown; write 1"),
        (
            'sandbox.outside = ["git commit *", ""]',
            "sandbox.outside has an item that is empty; write something or remove it",
        ),
        (
            "providers.a.body.x = 2026-01-01",
            "providers.a.body.x is a date; write a text, number, list or table",
        ),
        ("agents.max_depth = 9", "agents.max_depth is too large; write at most 3"),
        ("temperature = 9", "temperature is too large; write at most 2"),
        ("max_seconds = 0", "max_seconds is too small; write more than 0"),
        ("web.private_hosts = 5", "web.private_hosts is a whole number; write a list"),
        ('version = "1"', "version is unknown; write 1"),
    ],
)
def test_wrong_value_error_names_its_line(text: str, message: str) -> None:
    assert fault("\n" + text) == f"/f.toml:2: {message}"


def test_settings_of_a_newer_format_ask_for_an_update() -> None:
    assert fault("\nversion = 2\nnew_key = 1") == (
        "/f.toml:2: the settings have format version 2 and this panpan reads 1; update panpan"
    )


@pytest.mark.parametrize(
    "text", ['api_key = "se cret\\n"', "api_key = ['se cret']", 'providers.a.headers.X = "secrét"']
)
def test_wrong_secret_is_not_shown(text: str) -> None:
    assert "cr" not in fault(text).replace("secret", "", text.count("nothing"))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = ", 1),
        ("\n[x", 2),
        ("x = 1\nx = 2", 2),
        ('a = """\n\n', 3),
        ("\n\n= 1", 3),
        ("a = 1 b = 2", 1),
        ("a = \x00", 1),
    ],
)
def test_invalid_toml_error_names_its_line(text: str, line: int) -> None:
    message = fault(text)

    assert message.startswith(f"/f.toml:{line}: is not valid TOML: ")
    assert message.isprintable()


def test_invalid_utf_8_error_names_its_line() -> None:
    assert fault(b'model = "a"\n# caf\xe9\n') == "/f.toml:2: is not UTF-8; save the file as UTF-8"


def test_byte_order_mark_does_no_harm() -> None:
    assert parse_settings(b'\xef\xbb\xbfmodel = "a"\r\n', FILE, "user").values == {"model": "a"}


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 20_000,
        "a = " + "{a=" * 20_000,
        "a = " + "9" * 10_000,
        "a." * 20_000 + "b = 1",
        "a." * 900 + "b = 1",
    ],
)
def test_parser_bomb_is_only_an_error(text: str) -> None:
    assert fault(text).startswith("/f.toml")


def test_terminal_sequences_in_a_file_do_not_reach_a_terminal() -> None:
    message = fault('"\\u001b[2Jx\\u202e\\n" = 1')

    assert message.isprintable()
    assert "\\u001b" in message


def test_irregular_settings_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "huge").write_bytes(b"#" * 2_000_000)

    for name in ("fifo", "folder", "loop", "huge"):
        with pytest.raises(ConfigError, match="cannot read the settings"):
            read_settings_file(tmp_path / name, "project")


def test_broken_project_file_is_an_error_too(place: Place) -> None:
    path = place.project('permision.deny = ["Bash"]\n')

    with pytest.raises(ConfigError, match=rf"^{path}:1: there is no setting permision"):
        place.load()


@given(st.text(max_size=60) | st.text("abcmodel=[]{}\"'.\n# 1,", max_size=60))
def test_settings_of_any_text_are_read_or_refused_in_one_line(text: str) -> None:
    said = ""
    try:
        source = parse_settings(text.encode("utf-8", "surrogatepass"), FILE, "user")
    except ConfigError as exc:
        said = str(exc)
    else:
        assert source.values == tomllib.loads(text.removeprefix("\ufeff"))
    assert said == "" or said.startswith("/f.toml")
    assert said.isprintable()

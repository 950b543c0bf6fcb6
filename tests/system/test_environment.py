import pytest

from panpan.system.environment import child_environment


@pytest.mark.parametrize(
    "name",
    [
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        "OPENAI_ORG_ID",
        "PANPAN_API_KEY",
        "PANPAN_MODEL",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "GITHUB_TOKEN",
        "github_token",
        "DB_PASSWORD",
        "SMTP_PASS",
        "MYSQL_PWD",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "DOCKER_AUTH_CONFIG",
        "NPM_CONFIG__AUTH",
        "GITHUB_PAT",
        "GPG_PASSPHRASE",
        "SESSION_COOKIE",
    ],
)
def test_variables_named_like_secrets_do_not_reach_commands(name: str) -> None:
    assert name not in child_environment({name: "value", "HOME": "/root"})


@pytest.mark.parametrize(
    "name",
    ["PATH", "HOME", "PWD", "LANG", "SSH_AUTH_SOCK", "VIRTUAL_ENV", "TOKENIZERS_PARALLELISM", "PASSAGE", "PATHS"],
)
def test_ordinary_variables_reach_commands(name: str) -> None:
    assert child_environment({name: "value"})[name] == "value"


def test_a_key_under_an_innocent_name_is_known_by_its_shape() -> None:
    key = "sk-" + "ant-" + "a1B2" * 8

    env = child_environment({"MY_MODEL": key, "NOTE": "about sk-learn and more"})

    assert "MY_MODEL" not in env
    assert env["NOTE"] == "about sk-learn and more"


def test_commands_neither_page_nor_ask_nor_colour() -> None:
    env = child_environment({"PAGER": "less", "GIT_PAGER": "delta", "TERM": "xterm-256color", "FORCE_COLOR": "1"})

    assert env["PAGER"] == env["GIT_PAGER"] == "cat"
    assert env["GIT_TERMINAL_PROMPT"] == "0"
    assert env["TERM"] == "dumb"
    assert env["NO_COLOR"] == "1"
    assert "FORCE_COLOR" not in env


def test_what_the_caller_sets_is_taken_as_it_is() -> None:
    env = child_environment({"PAGER": "less"}, PAGER="more", SERVICE_TOKEN="wanted")

    assert env["PAGER"] == "more"
    assert env["SERVICE_TOKEN"] == "wanted"


def test_the_own_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SETTING", "on")
    monkeypatch.setenv("SOME_API_KEY", "off")

    env = child_environment()

    assert env["SOME_SETTING"] == "on"
    assert "SOME_API_KEY" not in env

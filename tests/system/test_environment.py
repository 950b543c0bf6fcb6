import subprocess
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from panpan.system.environment import PASSED_VARIABLES, child_environment, passed_names, user_environment
from panpan.system.sandbox.refusals import withheld_note

SECRETS = [
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
    "npm_config_//registry.npmjs.org/:_authToken",
    "GITHUB_PAT",
    "GPG_PASSPHRASE",
    "SESSION_COOKIE",
    "XDG_SESSION_COOKIE",
    "HF_TOKEN",
    "JUPYTER_TOKEN",
    "SLURM_JWT",
    "CARGO_REGISTRY_TOKEN",
    "UV_PUBLISH_PASSWORD",
    "HOMEBREW_GITHUB_API_TOKEN",
]
A_KEY = "sk-" + "ant-" + "a1B2" * 8
A_LOGIN = "https://me:" + "secret1@pypi.example.org/simple"


@pytest.mark.parametrize("name", SECRETS)
def test_secret_like_variables_do_not_reach_commands(name: str) -> None:
    assert name not in child_environment({name: "value", "HOME": "/root"})
    assert name not in user_environment({name: "value", "HOME": "/root"})


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "HOME",
        "PWD",
        "LANG",
        "LC_ALL",
        "SSH_AUTH_SOCK",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "PYTHONPATH",
        "CUDA_VISIBLE_DEVICES",
        "XLA_FLAGS",
        "JAX_PLATFORMS",
        "HF_HOME",
        "OMP_NUM_THREADS",
        "SLURM_JOB_ID",
        "CFLAGS",
        "LD_LIBRARY_PATH",
        "JAVA_HOME",
        "GOPATH",
        "CARGO_HOME",
        "NODE_ENV",
        "https_proxy",
        "SSL_CERT_FILE",
        "TOKENIZERS_PARALLELISM",
        "BASH_FUNC_module%%",
        "PANPAN_PROCESS_MARKS",
        "PANPAN_TASK",
        "PANPAN_AXIS_MAX_TOKENS",
        "PORT",
        "PORT_2",
    ],
)
def test_needed_variables_reach_commands(name: str) -> None:
    assert child_environment({name: "value"})[name] == "value"


@given(name=st.text(st.characters(codec="ascii", exclude_characters="=\0"), min_size=1))
@example("MY_DATA")
@example("BUNDLE_GITHUB__COM")
@example("TF_VAR_admin")
@example("DIRENV_DIFF")
@example("GIT_CONFIG_VALUE_0")
def test_unlisted_variables_do_not_reach_commands(name: str) -> None:
    whole, beginnings = passed_names()
    is_listed = name in whole or name.startswith(beginnings)

    added = child_environment({name: "1"}).keys() - child_environment({}).keys()

    assert added == set() or is_listed


def test_passed_names_are_unique() -> None:
    words = [word for line in PASSED_VARIABLES.splitlines() for word in line.partition("#")[0].split()]
    whole, beginnings = passed_names()

    assert len(words) == len(set(words)) == len(whole) + len(beginnings)
    assert all(len(beginning) > 1 for beginning in beginnings)
    assert not [name for name in whole if name.startswith(beginnings)]


@pytest.mark.parametrize("name", ["PYTHONPATH", "PIP_INDEX_URL", "MY_MODEL"])
@pytest.mark.parametrize("value", [A_KEY, A_LOGIN, "https://a1b2c3@index.example.org/simple"])
def test_key_under_an_innocent_name_is_known_by_its_shape(name: str, value: str) -> None:
    assert name not in child_environment({name: value}, pass_env=["MY_*"])
    assert name not in user_environment({name: value})


@pytest.mark.parametrize(
    "value", ["about sk-learn and more", "http://proxy.example.org:3128", "git@github.com:me/x.git", "ssh://git@host/x"]
)
def test_ordinary_values_are_no_keys(value: str) -> None:
    assert child_environment({"PIP_NOTE": value})["PIP_NOTE"] == value
    assert user_environment({"NOTE": value})["NOTE"] == value


def test_pass_env_takes_names_and_wildcards() -> None:
    base = {"MY_DATA": "/data", "WANDB_MODE": "offline", "WANDB_API_KEY": "k", "OTHER": "1", "DEPLOY_TOKEN": "t"}

    env = child_environment(base, pass_env=["MY_DATA", "WANDB_*", "DEPLOY_TOKEN"])

    assert base.items() & env.items() == {("MY_DATA", "/data"), ("WANDB_MODE", "offline"), ("DEPLOY_TOKEN", "t")}


@pytest.mark.parametrize("pattern", ["ANTHROPIC_API_KEY", "ANTHROPIC_*", "*", "PANPAN_API_KEY"])
def test_pass_env_never_passes_panpans_keys(pattern: str) -> None:
    base = {"ANTHROPIC_API_KEY": "k", "PANPAN_API_KEY": "k"}

    assert not base.keys() & child_environment(base, pass_env=[pattern]).keys()


def test_user_commands_get_all_the_users_variables() -> None:
    assert user_environment({"MY_DATA": "/data", "PASSAGE": "1"}).items() >= {("MY_DATA", "/data"), ("PASSAGE", "1")}


@pytest.mark.parametrize("environment", [child_environment, user_environment])
def test_commands_neither_page_nor_ask_nor_colour(environment: Callable[[dict[str, str]], dict[str, str]]) -> None:
    env = environment({"PAGER": "less", "GIT_PAGER": "delta", "TERM": "xterm-256color", "FORCE_COLOR": "1"})

    assert env["PAGER"] == env["GIT_PAGER"] == "cat"
    assert env["GIT_TERMINAL_PROMPT"] == "0"
    assert env["TERM"] == "dumb"
    assert env["NO_COLOR"] == "1"
    assert "FORCE_COLOR" not in env


def test_own_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SETTING", "on")
    monkeypatch.setenv("SOME_API_KEY", "off")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")

    assert child_environment().items() >= {("OMP_NUM_THREADS", "2")}
    assert not child_environment().keys() & {"SOME_SETTING", "SOME_API_KEY"}
    assert user_environment()["SOME_SETTING"] == "on"


@pytest.mark.parametrize(
    "script",
    [
        ["bash", "-uc", "echo $MY_DATA"],
        ["sh", "-uc", "echo $MY_DATA"],
        ["sh", "-c", 'echo "${MY_DATA:?}"'],
        ["python3", "-c", "import os; os.environ['MY_DATA']"],
        ["sh", "-c", "echo 'error: MY_DATA is not set' >&2; exit 1"],
        ["sh", "-c", "echo 'please set the environment variable MY_DATA'; exit 1"],
    ],
)
def test_withheld_note_says_how_to_pass_a_missing_variable(script: list[str]) -> None:
    own = {"PATH": "/usr/bin:/bin", "MY_DATA": "/data", "OTHER": "1"}
    env = child_environment(own)

    failed = subprocess.run(script, env=env, capture_output=True, text=True, check=False)
    note = withheld_note(failed.stdout + failed.stderr, env, own)

    assert failed.returncode != 0
    assert note is not None
    assert 'environment.pass_env = ["MY_DATA"]' in note
    assert "OTHER" not in note


@pytest.mark.parametrize(
    "output",
    [
        "bash: line 1: NOBODYS: unbound variable",
        "KeyError: 'OMP_NUM_THREADS'",
        "KeyError: 'MY'",
        "all of MY_DATA was read; MY_DATA is 3 GB",
        "",
    ],
)
def test_withheld_note_is_none_for_other_failures(output: str) -> None:
    own = {"PATH": "/usr/bin", "MY_DATA": "/data", "OMP_NUM_THREADS": "2", "_": "x"}

    assert withheld_note(output, child_environment(own), own) is None


def test_withheld_note_does_not_offer_to_pass_keys() -> None:
    own = {"WANDB_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}

    of_others = withheld_note("KeyError: 'WANDB_API_KEY'", child_environment(own), own)
    of_panpan = withheld_note("KeyError: 'ANTHROPIC_API_KEY'", child_environment(own), own)

    assert of_others is not None
    assert "named like a secret" in of_others
    assert of_panpan is not None
    assert "pass_env" not in of_panpan

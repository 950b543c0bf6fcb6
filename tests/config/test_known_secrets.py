from panpan.config.known_secrets import known_secrets, secrets_of_run
from panpan.config.run_settings import given_sources
from tests.config.conftest import Place


def test_known_secrets_include_variables_named_like_keys() -> None:
    env = {
        "OPENAI_API_KEY": " sk-one ",
        "GH_TOKEN": "two",
        "DB_PASSWORD": "three",
        "CLIENT_SECRET": "four",
        "PATH": "/usr/bin",
        "GIT_AUTHOR_NAME": "Ada",
        "PWD": "/home/ada",
        "EMPTY_TOKEN": "",
    }

    assert known_secrets(env) == {"sk-one", "two", "three", "four"}


def test_known_secrets_include_passwords_in_addresses() -> None:
    env = {"HTTPS_PROXY": "http://ada:p%40ss@proxy:3128", "A_URL": "postgres://u@h", "ODD": "http://[x@"}

    assert known_secrets(env) == {"p%40ss", "p@ss"}


def test_known_secrets_include_keys_in_settings_and_variables(place: Place) -> None:
    place.user(
        'api_key = "aaa"\n[providers.x]\napi_key = "bbb"\nheaders.Auth = "ccc"\napi_key_env = "ODDLY_NAMED"\n'
        '[aliases]\napi_key = "not-secret"\n[tools.enabled]\napi_key = true\n'
    )

    assert known_secrets({"ODDLY_NAMED": "ddd"}, place.load().settings) == {"aaa", "bbb", "ccc", "ddd"}


def test_log_secrets_include_settings_and_survive_broken_files(place: Place) -> None:
    place.user('api_key = "aaa"\n')
    assert secrets_of_run(place.locations, {"A_TOKEN": "bbb"}) == {"aaa", "bbb"}

    place.user('api_keys = "aaa"\n')
    assert secrets_of_run(place.locations, {"A_TOKEN": "bbb"}) == {"bbb"}


def test_log_secrets_include_keys_of_the_command_line(place: Place) -> None:
    sources = given_sources(['{"providers": {"x": {"api_key": "bbb"}}}'], ["api_key=ccc"], place.locations.home)
    overrides = {"api_key": "aaa", "model": "m", **{str(number): source for number, source in enumerate(sources)}}

    assert secrets_of_run(place.locations, {}, overrides) >= {"aaa", "bbb", "ccc"}

    place.user("no settings")
    assert secrets_of_run(place.locations, {}, overrides) == {"aaa", "bbb", "ccc"}

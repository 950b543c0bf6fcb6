from panpan.config.known_secrets import known_secrets, secrets_of_run
from panpan.config.run_settings import given_sources
from tests.config.conftest import Place


def test_keys_in_the_environment_are_known_by_the_names_of_their_variables() -> None:
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


def test_passwords_in_addresses_are_known() -> None:
    env = {"HTTPS_PROXY": "http://ada:p%40ss@proxy:3128", "A_URL": "postgres://u@h", "ODD": "http://[x@"}

    assert known_secrets(env) == {"p%40ss", "p@ss"}


def test_keys_in_the_settings_are_known_and_those_they_point_to(place: Place) -> None:
    place.user(
        'api_key = "aaa"\n[providers.x]\napi_key = "bbb"\nheaders.Auth = "ccc"\napi_key_env = "ODDLY_NAMED"\n'
        '[aliases]\napi_key = "not-secret"\n[tools.enabled]\napi_key = true\n'
    )

    assert known_secrets({"ODDLY_NAMED": "ddd"}, place.load().settings) == {"aaa", "bbb", "ccc", "ddd"}


def test_a_log_knows_the_secrets_of_the_files_too_and_works_where_they_are_broken(place: Place) -> None:
    place.user('api_key = "aaa"\n')
    assert secrets_of_run(place.locations, {"A_TOKEN": "bbb"}) == {"aaa", "bbb"}

    place.user('api_keys = "aaa"\n')
    assert secrets_of_run(place.locations, {"A_TOKEN": "bbb"}) == {"bbb"}


def test_a_log_knows_the_keys_that_the_command_line_gives(place: Place) -> None:
    sources = given_sources(['{"providers": {"x": {"api_key": "bbb"}}}'], ["api_key=ccc"], place.locations.home)
    overrides = {"api_key": "aaa", "model": "m", **{str(number): source for number, source in enumerate(sources)}}

    assert secrets_of_run(place.locations, {}, overrides) >= {"aaa", "bbb", "ccc"}

    place.user("no settings")
    assert secrets_of_run(place.locations, {}, overrides) == {"aaa", "bbb", "ccc"}

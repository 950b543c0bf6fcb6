import os
import pickle
from pathlib import Path

import pytest

from panpan.config.locations import Locations
from panpan.config.sources import load_settings
from panpan.errors import ConfigError
from tests.config.conftest import Place


def test_settings_without_sources_are_the_defaults(place: Place) -> None:
    loaded = place.load()

    assert loaded.settings.model is None
    assert loaded.settings.permission.mode == "default"
    assert not loaded.warnings
    assert not any(source.values for source in loaded.sources)
    assert {str(origin) for origin in loaded.origins.values()} == {"default"}


def test_later_source_overrides_an_earlier_one(place: Place) -> None:
    place.user("temperature = 0.1\n")
    seen = [place.load().settings.temperature]
    place.project("temperature = 0.2\n")
    place.trust()
    seen.append(place.load().settings.temperature)
    place.local("temperature = 0.3\n")
    seen.append(place.load().settings.temperature)
    env = {"PANPAN_TEMPERATURE": "0.4"}
    seen.append(place.load(env).settings.temperature)
    seen.append(place.load(env, temperature=0.5).settings.temperature)

    assert seen == [0.1, 0.2, 0.3, 0.4, 0.5]


def test_permission_lists_are_joined_and_other_lists_replaced(place: Place, tmp_path: Path) -> None:
    place.user(
        f'additional_directories = ["{tmp_path}/a"]\n'
        '[permission]\nallow = ["A", "B"]\ndeny = ["D"]\n'
        '[providers.here]\nmodels = ["one"]\nbase_url = "http://localhost:1"\n'
    )
    place.project('permission.deny = ["E"]\npermission.ask = ["F"]\n')
    place.local('permission.allow = ["B", "C"]\nproviders.here.models = ["two"]\n')

    settings = place.load(permission__allow=("G",), additional_directories=("b",)).settings

    assert settings.permission.allow == ("A", "B", "C", "G")
    assert settings.permission.deny == ("D", "E")
    assert settings.permission.ask == ("F",)
    assert settings.additional_directories == (tmp_path / "a", place.locations.project_root / "b")
    assert settings.providers["here"].models == ("two",)
    assert settings.providers["here"].base_url == "http://localhost:1"


def test_origin_of_every_value_is_known(place: Place) -> None:
    user = place.user('# mine\nmodel = "a"\neffort = "low"\n[permission]\nallow = [\n  "A",\n]\n')
    local = place.local('permission.allow = ["B", "A"]\n')

    origins = place.load({"PANPAN_EFFORT": "high"}, max_rounds=3, permission__mode="plan").origins

    assert str(origins["model"]) == f"{user}:2"
    assert str(origins["effort"]) == "PANPAN_EFFORT"
    assert str(origins["max_rounds"]) == "--max-turns"
    assert str(origins["permission.mode"]) == "--permission-mode"
    assert str(origins["temperature"]) == "default"
    assert str(origins["permission.allow"]) == f"{user}:6, {local}:1"
    assert [str(origins[f"permission.allow[{number}]"]) for number in (0, 1)] == [f"{user}:6", f"{local}:1"]
    assert [origins[key].kind for key in ("model", "effort", "max_rounds")] == ["user", "environment", "flag"]


def test_absent_flags_do_not_count(place: Place) -> None:
    place.user('permission.mode = "plan"\n')

    loaded = place.load(permission__mode=None, permission__allow=(), additional_directories=())

    assert loaded.settings.permission.mode == "plan"
    assert str(loaded.origins["permission.allow"]) == "default"


def test_wrong_flag_error_names_it_as_typed(place: Place) -> None:
    with pytest.raises(ConfigError, match=r"^--max-turns: max_rounds is too small; write at least 1$"):
        place.load(max_rounds=0)


def test_wrong_variable_error_names_it(place: Place) -> None:
    with pytest.raises(ConfigError, match=r"^PANPAN_EFFORT: effort is unknown; write 'low', .* or 'max'$"):
        place.load({"PANPAN_EFFORT": "lots"})
    with pytest.raises(ConfigError, match=r"^PANPAN_MAX_ROUNDS is not a whole number; write one, such as 20$"):
        place.load({"PANPAN_MAX_ROUNDS": "many"})
    with pytest.raises(ConfigError, match=r"^PANPAN_TEMPERATURE: "):
        place.load({"PANPAN_TEMPERATURE": "nan"})
    with pytest.raises(ConfigError, match=r"^PANPAN_BASE_URL: base_url is not an address; write one"):
        place.load({"PANPAN_BASE_URL": "localhost:8000"})


@pytest.mark.parametrize(("text", "value"), [("1", True), ("Yes", True), ("false", False), ("off", False)])
def test_boolean_variable_takes_the_usual_words(place: Place, text: str, value: bool) -> None:
    place.user(f"thinking = {str(not value).lower()}\n")

    assert place.load({"PANPAN_THINKING": text}).settings.thinking is value


def test_unknown_variable_warning_hides_its_value(place: Place) -> None:
    loaded = place.load({"PANPAN_MODLE": "sk-secret", "PANPAN_HOME": "/x", "PANPAN_EMPTY": "", "OTHER": "1"})

    assert loaded.warnings == ("there is no variable PANPAN_MODLE; did you mean PANPAN_MODEL?",)


def test_variables_of_an_attempt_warn_of_nothing(place: Place) -> None:
    loaded = place.load({"PANPAN_TASK": "0123456789abcdef", "PANPAN_ATTEMPT": "1", "PANPAN_AXIS_TOKEN": "a"})

    assert loaded.warnings == ()


def test_empty_variable_counts_as_not_set(place: Place) -> None:
    place.user('model = "a"\n')

    assert place.load({"PANPAN_MODEL": "", "PANPAN_API_KEY": " "}).settings.model == "a"


def test_keys_never_show_in_a_text_of_the_settings(place: Place) -> None:
    place.user('providers.a.api_key = "file-secret"\nproviders.a.headers.X = "header-secret"\n')

    loaded = place.load({"PANPAN_API_KEY": "  env-secret\n"})

    assert loaded.settings.api_key is not None
    assert loaded.settings.api_key.get_secret_value() == "env-secret"
    assert "secret" not in repr(loaded.settings).lower().replace("secretstr", "")
    assert "env-secret" not in loaded.settings.model_dump_json()


def test_broken_key_is_refused_without_showing_it(place: Place) -> None:
    with pytest.raises(ConfigError, match="PANPAN_API_KEY") as caught:
        place.load({"PANPAN_API_KEY": "sk-two\nlines"})

    assert "sk-two" not in str(caught.value)
    assert "sk-two" not in repr(caught.value.__cause__)
    assert "sk-two" not in str(caught.value.__cause__)


def test_key_in_a_file_readable_by_others_is_a_warning(place: Place) -> None:
    path = place.user('api_key = "sk-1234567"\n')
    assert not place.load().warnings

    path.chmod(0o644)

    assert place.load().warnings == (f"{path} holds a key and other users may read it; run: chmod 600 {path}",)


def test_file_writable_by_everybody_is_a_warning(place: Place) -> None:
    path = place.local("thinking = true\n")

    path.chmod(0o666)

    assert place.load().warnings == (f"{path} may be changed by every user of this machine; run: chmod 600 {path}",)


def test_file_of_both_user_and_project_is_the_users(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()  # as with a home folder under git
    (tmp_path / ".panpan").mkdir()
    (tmp_path / ".panpan" / "settings.toml").write_text('permission.allow = ["Bash"]\n')
    env = {"HOME": str(tmp_path)}

    loaded = load_settings(tmp_path, env, {}, Locations.find(tmp_path, env))

    assert loaded.settings.permission.allow == ("Bash",)
    assert not loaded.warnings
    assert [source.kind for source in loaded.sources if source.file] == ["user"]


def test_project_file_linked_to_the_users_is_not_the_projects(place: Place) -> None:
    user = place.user('permission.allow = ["Bash"]\n')
    place.locations.project_settings.parent.mkdir()
    place.locations.project_settings.symlink_to(user)

    assert not place.load().warnings


def test_relative_directory_is_an_error_except_as_a_flag(place: Place) -> None:
    place.user('additional_directories = ["~/x", "/y", "z"]\n')

    with pytest.raises(ConfigError, match=r"settings.toml:1: additional_directories is not an absolute path; write"):
        place.load()


def test_tilde_in_a_directory_is_the_home(place: Place) -> None:
    place.user('additional_directories = ["~/x"]\n')

    assert place.load().settings.additional_directories == (Path.home() / "x",)


def test_empty_provider_is_kept(place: Place) -> None:
    place.user("[providers.here]\n")
    place.local('providers.here.base_url = "http://localhost"\n')

    assert place.load().settings.providers["here"].base_url == "http://localhost"


def test_settings_are_immutable(place: Place) -> None:
    settings = place.load().settings

    with pytest.raises(ValueError, match="frozen"):
        settings.model = "other"  # type: ignore[misc]


def test_settings_survive_a_copy_to_another_process(place: Place) -> None:
    settings = place.load({"PANPAN_API_KEY": "sk-1234567"}).settings

    assert pickle.loads(pickle.dumps(settings)) == settings


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_settings_file_is_an_error(place: Place) -> None:
    path = place.user('permission.deny = ["Bash"]\n')
    path.chmod(0)

    with pytest.raises(ConfigError, match="cannot read the settings"):
        place.load()

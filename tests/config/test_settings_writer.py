import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from panpan.config.settings_file import parse_settings
from panpan.config.settings_writer import RuleFile, _add, _edited, _remove, save_setting
from panpan.errors import ConfigError
from tests.config.conftest import Place

LAYOUTS = [
    "",
    "# only a comment\n",
    'model = "a"',
    'permission.mode = "plan"\nmodel = "a"\n',
    'permission = { mode = "plan" }\n',
    'permission = { allow = ["a"] }\n',
    'permission.allow = ["a"]\nmodel = "b"',
    '[permission]\nmode = "plan"  # careful\n\n[tools.enabled]\nBash = false\n',
    '[permission]\nallow = [\n  "a",  # why\n  # last\n]\ndeny = ["x"] # no\n',
    '[permission]\nallow = [\n  "a",\n  "b"\n]\n',
    "[permission]\nallow = [] # none yet\n",
    '[permission]\r\nallow = ["a"]\r\n# end\r\n',
    "[tools]\nenabled = {}\n[permission]\ndeny = []\n[retry]\nmax_tries = 2\n",
]


def test_first_rule_makes_a_private_file_that_is_read_back(place: Place) -> None:
    path = place.locations.local_settings

    RuleFile(path).save("Bash(npm run *)")

    assert place.load().settings.permission.allow == ("Bash(npm run *)",)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert parse_settings(path.read_bytes(), path, "local").values["version"] == 1


def test_saving_a_present_rule_changes_nothing(place: Place) -> None:
    path = place.local('permission.allow = ["Bash(ls)"]\n')
    before = path.stat()

    RuleFile(path).save("Bash(ls)")

    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert path.stat().st_ino == before.st_ino


@pytest.mark.parametrize("text", LAYOUTS)
def test_saving_a_rule_keeps_comments_and_other_values(place: Place, text: str) -> None:
    path = place.local(text)
    expected = tomllib.loads(text or "version = 1")
    expected.setdefault("permission", {}).setdefault("allow", []).append("Edit(src/**)")

    RuleFile(path).save("Edit(src/**)")

    new = path.read_bytes().decode()
    assert tomllib.loads(new) == expected
    for comment in (part for line in text.splitlines() if (part := line.partition("#")[2])):
        assert comment in new
    if "\r\n" in text:
        assert "\n" not in new.replace("\r\n", "")


def test_byte_order_mark_stays(place: Place) -> None:
    path = place.local('\ufeffmodel = "a"\n')

    RuleFile(path).save("Read")

    assert path.read_bytes().startswith(b'\xef\xbb\xbfmodel = "a"\n')


@pytest.mark.parametrize("text", ["= broken", "modle = 1\n", 'permission.allow = "x"\n', "version = 9\n"])
def test_unreadable_layout_is_left_alone(place: Place, text: str) -> None:
    path = place.local(text)

    with pytest.raises(ConfigError, match=f"{path}:1: "):
        RuleFile(path).save("Read")

    assert path.read_text() == text
    assert {file.name for file in path.parent.iterdir()} <= {"settings.toml", "settings.lock"}


@pytest.mark.parametrize("rule", ["", "\ud800", "x" * 501])
def test_rule_that_no_file_can_hold_is_refused(place: Place, rule: str) -> None:
    path = place.locations.local_settings

    with pytest.raises(ConfigError, match="cannot be written into a settings file"):
        RuleFile(path).save(rule)

    assert not path.exists()


def test_link_is_written_through(place: Place, tmp_path: Path) -> None:
    target = tmp_path / "dotfiles.toml"
    target.write_text("# mine\n")
    place.locations.local_settings.parent.mkdir(parents=True)
    place.locations.local_settings.symlink_to(target)

    RuleFile(place.locations.local_settings).save("Read")

    assert place.locations.local_settings.is_symlink()
    assert target.read_text().startswith("# mine\n")
    assert place.load().settings.permission.allow == ("Read",)


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_unwritable_folder_is_an_error(place: Place) -> None:
    folder = place.locations.local_settings.parent
    folder.mkdir(parents=True)
    folder.chmod(0o500)

    with pytest.raises(ConfigError):
        RuleFile(place.locations.local_settings).save("Read")


def test_processes_that_save_at_the_same_time_lose_no_rule(place: Place) -> None:
    path = place.locations.local_settings
    program = (
        "import sys; from pathlib import Path; from panpan.config.settings_writer import RuleFile\n"
        "for number in range(5): RuleFile(Path(sys.argv[1])).save(f'Bash({sys.argv[2]} {number})')"
    )

    processes = [subprocess.Popen([sys.executable, "-c", program, str(path), name]) for name in "abc"]

    assert [process.wait() for process in processes] == [0, 0, 0]
    expected = {f"Bash({name} {number})" for name in "abc" for number in range(5)}
    assert set(place.load().settings.permission.allow) == expected


@given(st.sampled_from(LAYOUTS), st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=4, unique=True))
def test_rule_can_be_added_to_any_layout_and_removed_again(text: str, rules: list[str]) -> None:
    data = text.encode()
    before = rules_in(data)
    assume(not set(rules) & set(before))

    for rule in rules:
        data = _edited(data, lambda document, rule=rule: _add(document, "permission", "allow", [rule]))
    assert rules_in(data) == before + rules

    for rule in rules:
        data = _edited(data, lambda document, rule=rule: _remove(document, rule))
    assert rules_in(data) == before


def rules_in(data: bytes) -> list[str]:
    return list(parse_settings(data, Path("f"), "local").rules("allow"))


def test_removing_a_rule_keeps_the_comments_of_others(place: Place) -> None:
    path = place.local(
        '# mine\n[permission]\nallow = [\n  "Read",  # why\n  {rule = "Bash(ls)", match = ["ls"]},\n'
        '  "Edit", # last\n  "Bash(ls)",\n]\ndeny = ["Bash(ls)"]\n'
    )

    RuleFile(path).remove("Bash(ls)")

    text = path.read_text()
    assert tomllib.loads(text)["permission"] == {"allow": ["Read", "Edit"], "deny": ["Bash(ls)"]}
    assert "# mine" in text
    assert "# why" in text
    assert "# last" in text


def test_removing_a_missing_rule_writes_nothing(place: Place) -> None:
    RuleFile(place.locations.local_settings).remove("Bash(ls)")
    assert not place.locations.local_settings.exists()

    path = place.local('permission.allow = ["Read"]\n')
    RuleFile(path).remove("Bash(ls)")
    assert path.read_text() == 'permission.allow = ["Read"]\n'


@pytest.mark.parametrize(
    "text",
    ["", "# mine\n", '[ui]\ntheme = "light"  # bright\nplain = true\n', "ui = { plain = true }\n", 'model = "a"'],
)
def test_saving_the_theme_keeps_all_other_settings(place: Place, text: str) -> None:
    path = place.user(text) if text else place.locations.user_settings
    expected = tomllib.loads(text or "version = 1")
    expected["ui"] = {**expected.get("ui", {}), "theme": "dark"}

    save_setting(place.locations, ("ui", "theme"), "dark")

    assert tomllib.loads(path.read_text()) == expected
    assert ("# bright" in path.read_text()) == ("# bright" in text)
    assert place.load().settings.ui.theme == "dark"


@pytest.mark.parametrize("text", ["= broken", "modle = 1\n", "ui.theme = 3\n"])
def test_saving_the_theme_leaves_a_broken_file_alone(place: Place, text: str) -> None:
    path = place.user(text)

    with pytest.raises(ConfigError):
        save_setting(place.locations, ("ui", "theme"), "dark")

    assert path.read_text() == text


def test_adding_to_sandbox_lists_skips_present_items(place: Place) -> None:
    file = RuleFile(place.locations.local_settings)

    file.add("sandbox", "outside", ["git commit *", "git add *"])
    file.add("sandbox", "outside", ["git add *", "git push"])
    file.add("sandbox", "domains", ["pypi.org"])

    sandbox = place.load().settings.sandbox
    assert sandbox.outside == ("git commit *", "git add *", "git push")
    assert sandbox.domains == ("pypi.org",)


@pytest.mark.parametrize("text", ["", "# mine\n", "[ui]\nplain = true\n", "ui.plain = true\n[retry]\nmax_tries = 2\n"])
def test_setting_at_the_top_is_written_and_removed(place: Place, text: str) -> None:
    path = place.user(text) if text else place.locations.user_settings
    before = tomllib.loads(text or "version = 1")

    assert save_setting(place.locations, ("effort",), "high") == path
    assert tomllib.loads(path.read_text()) == {**before, "effort": "high"}

    save_setting(place.locations, ("effort",), None)
    assert tomllib.loads(path.read_text()) == before


def test_setting_is_written_where_it_is_decided(place: Place) -> None:
    local = place.local("ui = { vim = true }\n")

    assert save_setting(place.locations, ("ui", "vim"), False) == local
    assert save_setting(place.locations, ("ui", "plain"), True) == place.locations.user_settings
    assert not place.load().settings.ui.vim
    assert place.load().settings.ui.plain

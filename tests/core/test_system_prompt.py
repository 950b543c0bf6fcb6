import re

from panpan.session.models import system_prompt


def test_system_prompt_is_short_and_stable() -> None:
    prompt = system_prompt()

    assert prompt == system_prompt()
    assert 1_000 < len(prompt) <= 4_500


def test_system_prompt_names_neither_date_nor_place() -> None:
    assert not re.search(r"20\d\d|/home/|/root/|\{", system_prompt())


def test_system_prompt_names_the_tags_of_reminders() -> None:
    assert "<system-reminder>" in system_prompt()


def test_system_prompt_is_overridden_and_extended() -> None:
    assert system_prompt(override="Be brief.\n") == "Be brief."
    assert system_prompt(override="Be brief.", append="Speak Latin.") == "Be brief.\n\nSpeak Latin."
    assert system_prompt(append="Speak Latin.") == f"{system_prompt()}\n\nSpeak Latin."
    assert system_prompt(override="") == ""

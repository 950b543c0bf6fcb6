import re

from panpan.session.models import system_prompt


def test_the_prompt_is_short_and_the_same_every_time() -> None:
    prompt = system_prompt()

    assert prompt == system_prompt()
    assert 1_000 < len(prompt) <= 4_500


def test_the_prompt_holds_nothing_of_the_day_or_the_place() -> None:
    assert not re.search(r"20\d\d|/home/|/root/|\{", system_prompt())


def test_the_prompt_names_the_tags_that_reminders_come_in() -> None:
    assert "<system-reminder>" in system_prompt()


def test_an_override_replaces_the_prompt_and_an_addition_follows_it() -> None:
    assert system_prompt(override="Be brief.\n") == "Be brief."
    assert system_prompt(override="Be brief.", append="Speak Latin.") == "Be brief.\n\nSpeak Latin."
    assert system_prompt(append="Speak Latin.") == f"{system_prompt()}\n\nSpeak Latin."
    assert system_prompt(override="") == ""

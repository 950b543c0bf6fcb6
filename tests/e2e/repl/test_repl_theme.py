"""/theme, and where the theme is found from: the setting or the terminal."""

from typing import Any

import pytest

from tests.e2e.conftest import Panpan
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import Repl
from tests.model_server import say, serving
from tests.terminal_emulator import keys

HEADINGS = {"dark": {"1", "36"}, "light": {"1", "34"}, "high-contrast": {"1", "4"}}
"""Paint of `# Word`, as `panpan/faces/terminal/screen/theme.py` documents it by meaning."""


def heading_colours(repl: Repl, word: str) -> set[str]:
    """Run a turn whose answer is a heading, and return the attributes in which it was painted.

    It may have been painted twice: while it came, and for good; a 0 before the others turns off what was there before.
    """
    repl.turn("go", word)
    painted = repl.raw.decode()
    sequences = {before.rpartition("\x1b[")[2].removesuffix("m") for before in painted.split(word)[:-1]}
    (attributes,) = {frozenset(sequence.split(";")) - {"0"} for sequence in sequences}
    return set(attributes)


@pytest.mark.parametrize(
    ("setting", "options", "theme"),
    [
        ("auto", {"background": "rgb:ffff/ffff/ffff"}, "light"),
        ("high-contrast", {"background": "rgb:ffff/ffff/ffff"}, "high-contrast"),
    ],
    ids=["white", "setting"],
)
def test_theme_follows_the_setting_or_the_terminal(
    panpan: Panpan, start: Start, setting: str, options: dict[str, Any], theme: str
) -> None:
    panpan.home.mkdir(parents=True)
    (panpan.home / "settings.toml").write_text(f'[ui]\ntheme = "{setting}"\n')
    with serving([say("# Zebra")]) as server:
        panpan.use(server)
        repl = start(**options)

        assert heading_colours(repl, "Zebra") == HEADINGS[theme]


def test_theme_command_takes_a_name_or_a_choice(panpan: Panpan, start: Start) -> None:
    with serving([say("# Antelope"), say("# Zebra"), say("# Giraffe"), say("# Elephant")]) as server:
        panpan.use(server)
        repl = start(background="rgb:0000/0000/0000")
        dark = heading_colours(repl, "Antelope")
        repl.submit("/theme light")
        repl.wait_for("theme: light")
        repl.wait_for_prompt()
        light = heading_colours(repl, "Zebra")
        repl.submit("/theme pink")
        repl.wait_for("unknown theme pink; choose auto, light, dark, high-contrast, plain")
        repl.wait_for_prompt()
        still_light = heading_colours(repl, "Giraffe")
        repl.submit("/theme")
        repl.answer("Which theme?", "high")
        repl.wait_for(lambda screen: "❯   high-contrast" in "\n".join(screen.visible))
        repl.send(keys.ENTER)
        repl.wait_for("theme: high-contrast")
        repl.wait_for_prompt()
        picked = heading_colours(repl, "Elephant")

    assert dark == HEADINGS["dark"]
    assert light == still_light == HEADINGS["light"]
    assert picked == HEADINGS["high-contrast"]

"""The line below the input: what has to be known whatever else stands there."""

from tests.e2e.conftest import Panpan
from tests.e2e.repl.conftest import Start
from tests.model_server import serving
from tests.terminal_emulator import keys


def settings(panpan: Panpan, text: str) -> None:
    panpan.home.mkdir(parents=True)
    (panpan.home / "settings.toml").write_text(f"[ui]\n{text}\n")


def test_status_line_of_the_user_keeps_the_mode(panpan: Panpan, start: Start) -> None:
    settings(panpan, 'status_line = "echo my own line"')
    with serving([]) as server:
        panpan.use(server)
        repl = start()
        repl.wait_for("my own line")
        repl.send(keys.SHIFT_TAB)
        repl.wait_for("accept edits · my own line")


def test_status_line_shows_the_mode_of_vi_keys(panpan: Panpan, start: Start) -> None:
    settings(panpan, "vim = true")
    with serving([]) as server:
        panpan.use(server)
        repl = start()
        repl.wait_for("· INSERT ·")
        repl.send(keys.ESCAPE)
        repl.wait_for("· NORMAL ·")
        repl.send("i")
        repl.wait_for("· INSERT ·")


def test_status_line_shows_the_folder_of_commands(panpan: Panpan, start: Start) -> None:
    (panpan.workspace / "src").mkdir()
    with serving([]) as server:
        panpan.use(server)
        repl = start(columns=120)
        before = repl.visible
        repl.submit("!cd src")
        repl.wait_for("· in ./src")
        repl.wait_for_prompt()
        repl.submit("!cd ..")
        repl.wait_for(lambda screen: "· in ./src" not in "\n".join(screen.visible))

    assert "· in " not in before

"""Tools on the screen: while they run, what they say, and what of it can be unfolded."""

import re

from tests.e2e.conftest import Panpan, wait_until
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import INTERRUPTED
from tests.e2e.repl.test_repl_keys import leave_pager, shows_pager
from tests.model_server import ToolCall, call, calls, say, serving
from tests.terminal_emulator import keys

ALL_ALLOWED = ("--permission-mode", "bypassPermissions")


def numbered_lines(text: str) -> list[int]:
    return [int(found) for found in re.findall(r"\bline-(\d+)\b", text)]


def test_live_output_shows_its_last_lines_and_unfolds(panpan: Panpan, start: Start) -> None:
    (panpan.workspace / "run").write_text(
        "for n in $(seq 1 50); do echo line-$n; done; while [ ! -e go ]; do sleep 0.1; done\n"
    )
    with serving([call("Bash", {"command": "sh run"}), say("Fine.")]) as server:
        panpan.use(server)
        repl = start(*ALL_ALLOWED, rows=40)
        repl.submit("go")
        repl.wait_for("line-50")
        folded = numbered_lines(repl.visible)
        repl.send(keys.ctrl("o"))
        repl.wait_for(lambda screen: len(numbered_lines("\n".join(screen.visible))) > 10)
        repl.send(keys.ctrl("o"))
        repl.wait_for(lambda screen: len(numbered_lines("\n".join(screen.visible))) <= 3)
        (panpan.workspace / "go").touch()
        repl.wait_for("Fine.")

    assert folded == [48, 49, 50]


def test_pager_shows_the_full_output_of_an_ended_tool(panpan: Panpan, start: Start) -> None:
    with serving([call("Bash", {"command": "for n in $(seq 1 200); do echo line-$n; done"}), say("Fine.")]) as server:
        panpan.use(server)
        repl = start(*ALL_ALLOWED)
        repl.turn("go", "Fine.")
        before = len(numbered_lines(repl.text))
        repl.send(keys.ctrl("o"))
        repl.wait_for(lambda screen: screen.is_alternate and numbered_lines("\n".join(screen.visible)))
        repl.send("g")
        repl.wait_for(lambda screen: 1 in numbered_lines("\n".join(screen.visible)))
        repl.send("G")
        repl.wait_for(lambda screen: 200 in numbered_lines("\n".join(screen.visible)))
        repl.send("q")
        repl.wait_for(lambda screen: not screen.is_alternate)
        repl.wait_for_prompt()
        repl.type("typed afterwards")

    assert before < 30


def test_endless_output_is_bounded_and_escape_ends_it(panpan: Panpan, start: Start) -> None:
    with serving([call("Bash", {"command": "yes flooded-line"}), say("Fine.")]) as server:
        panpan.use(server)
        repl = start(*ALL_ALLOWED)
        repl.submit("go")
        repl.wait_for("flooded-line")
        repl.type("typed in the flood")
        repl.send(keys.ESCAPE)
        repl.wait_for(INTERRUPTED)
        wait_until(lambda: repl.children() == [])

    assert repl.text.count("flooded-line") < 60
    assert len(repl.raw) < 1_000_000


def test_reads_share_one_row_and_the_pager_has_each(panpan: Panpan, start: Start) -> None:
    for name in ("one", "two", "three"):
        (panpan.workspace / f"{name}.txt").write_text(f"content of {name}\n")
    reads = [ToolCall("Read", {"file_path": f"{name}.txt"}) for name in ("one", "two", "three")]
    with serving([say("Hello."), calls(*reads), call("LS", {}), say("All read.")]) as server:
        panpan.use(server)
        repl = start()
        repl.turn("hi", "Hello.")
        repl.turn("go", "All read.")

        looks = [row for row in repl.text.splitlines() if row.startswith("●")]
        assert looks == ["● Read 3 files, listed 1 folder (ctrl+o)"]
        repl.send(keys.ctrl("o"))
        repl.wait_for(shows_pager("content of three"))
        repl.wait_for(lambda screen: screen.visible[0].startswith("❯ go"))  # where the last turn begins
        leave_pager(repl)


def test_error_of_a_command_shows_its_head_and_end(panpan: Panpan, start: Start) -> None:
    command = "echo the-head; for n in $(seq 1 500); do echo line-$n; done; echo the-very-end >&2; exit 3"
    with serving([call("Bash", {"command": command}), say("It failed.")]) as server:
        panpan.use(server)
        repl = start(*ALL_ALLOWED, columns=120)
        repl.turn("go", "It failed.")

    shown = repl.text.splitlines()
    assert any(row.strip().endswith("the-head") for row in shown)
    assert any(row.strip().endswith("the-very-end") for row in shown)
    assert len(numbered_lines(repl.text)) < 40


def test_edit_is_shown_as_a_diff_with_line_numbers(panpan: Panpan, start: Start) -> None:
    text = "".join(f"value_{number} = {number}\n" for number in range(1, 40))
    (panpan.workspace / "a.py").write_text(text)
    edit = {"file_path": "a.py", "old_string": "value_20 = 20", "new_string": "value_20 = 'twenty'"}
    with serving([call("Read", {"file_path": "a.py"}), call("Edit", edit), say("Changed.")]) as server:
        panpan.use(server)
        repl = start("--permission-mode", "acceptEdits")
        repl.turn("go", "Changed.")

    rows = [row for row in repl.text.splitlines() if "value_20" in row]
    assert any("20" in row.split("value_20")[0] and "-" in row.split("value_20")[0] for row in rows)
    assert any("'twenty'" in row and "+" in row.split("value_20")[0] for row in rows)

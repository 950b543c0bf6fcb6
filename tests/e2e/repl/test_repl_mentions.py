"""Files behind an @: pictures go along as pictures, folders as lists, and a large workspace holds nobody up."""

import base64
from io import BytesIO

from tests.e2e.conftest import Panpan
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import ends_input
from tests.model_server import say, serving
from tests.terminal_emulator import keys

SEEN = say("Seen.")


def picture() -> bytes:
    """Return a small picture as PNG."""
    from PIL import Image

    data = BytesIO()
    Image.new("RGB", (8, 8), "red").save(data, "PNG")
    return data.getvalue()


def test_mentioned_picture_and_folder_are_attached(panpan: Panpan, start: Start) -> None:
    (panpan.workspace / "my shot.png").write_bytes(picture())
    (panpan.workspace / "src").mkdir()
    (panpan.workspace / "src" / "swordfish.py").touch()
    with serving([SEEN]) as server:
        panpan.use(server)
        repl = start()
        repl.turn('compare @"my shot.png" and @src/ please', "Seen.")
        shown = repl.text

    said = server.requests[0].messages[0]["content"]
    (image,) = [block for block in said if block["type"] == "image"]
    texts = [block["text"] for block in said if block["type"] == "text"]
    assert image["source"]["media_type"] == "image/png"
    assert base64.b64decode(image["source"]["data"])[:8] == b"\x89PNG\r\n\x1a\n"
    assert any("attached_folder" in text and "swordfish.py" in text for text in texts)
    assert "[image " in shown
    assert "[src" in shown


def test_mentions_that_cannot_be_attached_are_reported(panpan: Panpan, start: Start) -> None:
    (panpan.home.parent / "outside.txt").write_text("outside swordfish\n")
    (panpan.workspace / ".env").write_text("KEY=swordfish\n")
    with serving([SEEN]) as server:
        panpan.use(server)
        repl = start(columns=200)
        repl.turn(f"look at @{panpan.home.parent}/outside.txt and @.env and @src/none.py", "Seen.")
        shown = repl.text

    assert "swordfish" not in str(server.requests[0].messages)
    assert shown.count("was not attached") == 3


def test_completion_among_20_000_files_loses_no_key(panpan: Panpan, start: Start) -> None:
    for folder in range(100):
        (panpan.workspace / f"folder{folder}").mkdir()
        for number in range(200):
            (panpan.workspace / f"folder{folder}" / f"file{number}.txt").touch()
    (panpan.workspace / "folder7" / "swordfish.txt").touch()
    with serving([]) as server:
        panpan.use(server)
        repl = start()
        repl.type("compare @f")
        repl.send("older7/sword")
        repl.wait_for(ends_input("compare @folder7/sword"))
        repl.wait_for("folder7/swordfish.txt")
        repl.send(keys.TAB)
        repl.wait_for(ends_input("@folder7/swordfish.txt"))
        repl.type(" with @file1")
        repl.type("99 and with more")

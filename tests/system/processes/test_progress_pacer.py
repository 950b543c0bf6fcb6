from panpan.system.processes.progress import BURST, FLOOD_BYTES, MAX_SHOWN_CHARS, ProgressPacer


def taken(*pieces: bytes) -> list[str]:
    pacer = ProgressPacer()
    texts = []
    for second, piece in enumerate(pieces):
        pacer.add(piece)
        texts.append(pacer.take(float(second)))
    return texts


def test_what_comes_seldom_is_shown_at_once() -> None:
    pacer = ProgressPacer()

    for second in range(30):
        pacer.add(b"x")
        assert pacer.pause_s(float(second)) == 0
        assert pacer.take(float(second)) == "x"


def test_what_comes_often_is_joined() -> None:
    pacer = ProgressPacer()
    shown = []
    for step in range(1000):  # one second, in milliseconds
        pacer.add(b"x")
        if text := pacer.take(step / 1000):
            shown.append(text)
    shown.append(pacer.take_rest())

    assert len(shown) <= BURST + 11
    assert "".join(shown) == "x" * 1000


def test_a_pause_is_short_and_never_taken_in_a_flood() -> None:
    pacer = ProgressPacer()
    for _ in range(BURST):
        pacer.add(b"x")
        assert pacer.take(0.0)

    pacer.add(b"x")
    assert pacer.take(0.0) == ""
    assert 0 < pacer.pause_s(0.0) <= 0.1
    assert pacer.take(0.1) == "x"
    pacer.add(b"x" * FLOOD_BYTES)
    assert pacer.pause_s(0.1) == 0


def test_of_a_flood_only_the_end_is_shown() -> None:
    pacer = ProgressPacer()
    for number in range(1000):
        pacer.add(b"%03d " % number * 100)

    text = pacer.take_rest()
    assert text.startswith("…")
    assert text.endswith("999 ")
    assert len(text) <= MAX_SHOWN_CHARS + 1


def test_states_of_a_bar_come_on_lines_of_their_own() -> None:
    assert taken(b"\r10%", b"\r20%\r30%", b"\rdone\n") == ["\n10%", "\n30%", "\ndone\n"]
    assert taken(b"10%\r", b"20%\r", b"\nend") == ["10%", "\n20%", "\nend"]
    assert taken(b"a\r\nb", b"c") == ["a\nb", "c"]


def test_half_a_character_waits_for_its_other_half() -> None:
    assert taken("é".encode()[:1], "é".encode()[1:]) == ["", "é"]

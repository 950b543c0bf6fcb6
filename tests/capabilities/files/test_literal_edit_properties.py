"""Edit against a reference that works on bytes."""

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from panpan.capabilities.files.literal_edit import Replacement, replace_text
from panpan.errors import ToolError
from panpan.system.text.file_text import decode_file

ENCODINGS = st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-be-bom", "latin-1"])
WORDS = st.sampled_from(["a", "b", "ab", "\t", " ", "é", "x\x0c", "\\", "$1", "\n", "\n\n"])
TEXTS = st.lists(WORDS, max_size=12).map("".join)


def encoded(text: str, encoding: str) -> bytes:
    if encoding == "utf-16-be-bom":
        return b"\xfe\xff" + text.encode("utf-16-be")
    return text.encode(encoding)


def body(text: str, encoding: str) -> bytes:
    """The bytes of a piece of text inside a file of the encoding."""
    codec = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-16-be-bom": "utf-16-be"}.get(encoding, encoding)
    return text.encode(codec)


def occurrences(text: str, part: str) -> list[int]:
    return [at for at in range(len(text)) if text.startswith(part, at)]


@given(before=TEXTS, old=TEXTS.filter(bool), new=TEXTS, after=TEXTS, encoding=ENCODINGS, is_crlf=st.booleans())
@example(before="\n", old="\n", new="", after="", encoding="utf-16", is_crlf=True)
def test_edit_is_a_replacement_of_bytes(before, old, new, after, encoding, is_crlf):
    # given a file with one kind of line break that holds the old text once
    text = before + old + after
    assume(len(occurrences(text, old)) == 1)
    assume(old != new)
    line_break = "\r\n" if is_crlf and "\n" in text else "\n"
    data = encoded(text.replace("\n", line_break), encoding)
    file_text = decode_file(data)
    assert file_text is not None
    addable = file_text.encoding.addable
    assume(addable is None or all(char.isascii() or char in addable for char in new))

    # when
    changed, count = replace_text(file_text, Replacement(old, new), "f")

    # then
    encoding = "utf-8" if data.isascii() else encoding  # ASCII takes letters as UTF-8
    wanted = encoded(before.replace("\n", line_break), encoding)
    wanted += body((new + after).replace("\n", line_break), encoding)
    assert changed.encoding.encode(changed.text) == wanted
    assert count == 1


@given(pieces=st.lists(TEXTS, min_size=2, max_size=5), old=TEXTS.filter(bool), new=TEXTS)
def test_replace_all_equals_pythons_replace(pieces, old, new):
    assume(old != new)
    text = old.join(pieces)
    file_text = decode_file(text.encode())
    changed, count = replace_text(file_text, Replacement(old, new, replace_all=True), "f")
    assert changed.encoding.encode(changed.text) == text.encode().replace(old.encode(), new.encode())
    assert count == text.count(old)


@given(text=TEXTS, old=TEXTS.filter(bool), new=TEXTS)
def test_missing_or_ambiguous_text_is_never_replaced(text, old, new):
    assume(old != new)
    assume(len(occurrences(text, old)) != 1)
    with pytest.raises(ToolError, match=r"not found|ambiguous"):
        replace_text(decode_file(text.encode()), Replacement(old, new), "f")


LINES = st.lists(st.tuples(st.sampled_from(["", "a", "b", "é ", "\tc"]), st.sampled_from(["\n", "\r\n"])), max_size=10)


@given(head=LINES, tail=LINES, middle=LINES, new=TEXTS, bad=st.sampled_from([b"", b"\xff", b"\xc3"]))
def test_bytes_outside_the_edit_never_change(head, tail, middle, new, bad):
    # given mixed line breaks, damaged bytes, and a match between two marks
    before = "".join(map("".join, head)).encode() + "éé".encode() + bad + b"<"
    after = b">" + "".join(map("".join, tail)).encode()
    old_middle = "".join(map("".join, middle))
    data = before + old_middle.encode() + after
    file_text = decode_file(data)
    assert file_text is not None
    old = f"<{old_middle}>".replace("\r\n", "\n")
    assume(old != f"<{new}>")

    # when
    changed, _ = replace_text(file_text, Replacement(old, f"<{new}>"), "f")

    # then
    result = changed.encoding.encode(changed.text)
    assert result.startswith(before)
    assert result.endswith(after)
    inside = result[len(before) : len(result) - len(after)]
    assert inside.replace(b"\r\n", b"\n") == new.encode()


@given(
    data=st.binary(max_size=400)
    | st.text(max_size=200).map(str.encode)
    | st.text(max_size=100).map(lambda t: t.encode("utf-16", "surrogatepass"))
)
def test_decoding_and_encoding_round_trips_or_refuses(data):
    file_text = decode_file(data)
    assert file_text is None or file_text.encoding.encode(file_text.text) == data


@given(text=st.text(max_size=100), codec=st.sampled_from(["shift_jis", "euc_jp", "gb18030", "big5", "koi8-r", "cp437"]))
def test_declared_encodings_round_trip_or_refuse(text, codec):
    data = f"# coding: {codec}\n".encode() + text.encode(codec, "ignore")
    file_text = decode_file(data)
    assert file_text is None or file_text.encoding.encode(file_text.text) == data

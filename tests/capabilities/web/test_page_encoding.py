import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.web.page_text import decode_page

JAPANESE = "再現性のある研究"
CHINESE = "可重复的研究"


@pytest.mark.parametrize(
    ("body", "charset", "text"),
    [
        ("é".encode(), None, "é"),
        ("né.".encode("latin-1"), None, "né."),
        ("“x”".encode("cp1252"), "ISO-8859-1", "“x”"),
        (JAPANESE.encode("shift_jis"), "Shift_JIS", JAPANESE),
        (JAPANESE.encode("euc_jp"), '"EUC-JP"', JAPANESE),
        (JAPANESE.encode("iso2022_jp"), "iso-2022-jp", JAPANESE),
        (CHINESE.encode("gb18030"), "gb2312", CHINESE),
        (CHINESE.encode("big5", "replace"), "big5", CHINESE.encode("big5", "replace").decode("big5")),
        ("é".encode("utf-16"), None, "é"),
        (b"\xef\xbb\xbfx", "latin-1", "x"),
        (b'<meta charset="gbk">' + CHINESE.encode("gbk"), None, f'<meta charset="gbk">{CHINESE}'),
        (b"<meta charset=latin-1>\xe9", "utf-8", "<meta charset=latin-1>\ufffd"),
        (b'<meta charset="utf-16">x', None, '<meta charset="utf-16">x'),
        (b"<?xml version='1.0' encoding='latin-1'?>\xe9", None, "<?xml version='1.0' encoding='latin-1'?>é"),
        ("é".encode(), "no-such", "é"),
        ("é".encode(), "zip", "é"),
        ("é".encode(), "punycode", "é"),
        ("é".encode()[:1], None, ""),
    ],
)
def test_bytes_are_decoded_as_in_browsers(body: bytes, charset: str | None, text: str) -> None:
    assert decode_page(body, charset) == text


@given(st.binary(max_size=200), st.one_of(st.none(), st.text(max_size=10)))
def test_page_of_any_bytes_is_decoded(body: bytes, charset: str | None) -> None:
    assert isinstance(decode_page(body, charset), str)

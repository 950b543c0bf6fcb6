"""Links of documents of each kind, as their repositories are read from them in the sandbox."""

from pathlib import Path

import pytest

from panpan.errors import ConfigError
from panpan.repro.papers.extract_command import read_named_repositories
from panpan.repro.papers.worker import read_repositories
from tests.repro.pdf_writer import Page, encrypted, pdf_of, text_width

TOYS = "https://github.com/ada/toys"


def candidates(kind: str, data: bytes) -> list[str]:
    return list(read_repositories(kind, data, "paper").candidates)


def broken_address(*, has_links: bool) -> bytes:
    """Return a PDF whose address is broken within a word."""
    page = Page()
    page.text(72, 100, "We thank the readers of https://github.com/ada/to")
    page.text(72, 112, "ys for their patience")
    if has_links:
        begin = 72 + text_width("We thank the readers of ", 10)
        page.link(begin, 72 + text_width("We thank the readers of https://github.com/ada/to", 10), 100, TOYS)
        page.link(72, 72 + text_width("ys", 10), 112, TOYS)
    return pdf_of(page)


def test_link_of_a_pdf_is_stronger_than_its_broken_text() -> None:
    assert candidates("pdf", broken_address(has_links=True)) == [TOYS]
    assert candidates("pdf", broken_address(has_links=False)) == ["https://github.com/ada/to"]


def test_link_of_a_pdf_stands_at_its_words() -> None:
    page = Page()
    end = page.text(72, 100, "We compare with a baseline. Our code is available here")
    page.text(72, 112, "References")
    cited = page.text(72, 124, "[1] Another paper")
    page.link(end - text_width("here", 10), end, 100, f"{TOYS}/tree/v1")
    page.link(72, cited, 124, "https://github.com/x/cited")
    page.link(400, 450, 700, "https://github.com/x/at-no-words")

    found = read_repositories("pdf", pdf_of(page), "paper")

    assert [one.address for one in found.repositories if one.is_of_code] == [f"{TOYS}#v1"]
    assert "https://github.com/x/cited" not in [one.address for one in found.repositories]


def test_address_in_the_text_of_a_pdf_is_joined_over_lines() -> None:
    page = Page()
    page.text(72, 100, "The code is available at https://github.com/ada/")
    page.text(72, 112, "toys and in github.com/ada/toys.")

    assert candidates("pdf", pdf_of(page)) == [TOYS]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("html", '<p>Our <a href="https://github.com/ada/toys">code</a> is here</p><p>We</p>'),
        ("html", "<p>https://github.com/ada/toys</p><script>github.com/x/y</script><p style='display:none'>We</p>"),
        ("html", '<a href="https://github.com/ada/toys">https://github.com/<wbr><b>ada/t</b>oys</a>'),
        ("html", '<h2>References</h2><ol><li><a href="https://github.com/x/y">y</a></ol><h2>Appendix</h2>github.com/ada/toys'),
        ("markdown", "[code](https://github.com/ada/toys), <https://github.com/ada/toys>\n\n[1]: https://github.com/ada/toys"),
        ("latex", r"\url{https://github.com/ada/toys} % https://github.com/x/y"),
        ("latex", r"\href{https://github.com/ada/toys}{c}\begin{thebibliography} github.com/x/y\end{thebibliography}"),
    ],
)  # fmt: skip
def test_link_of_a_text_is_its_repository(kind: str, text: str) -> None:
    assert candidates(kind, text.encode()) == [TOYS]


def test_escaped_underscore_of_latex_belongs_to_the_address() -> None:
    assert candidates("latex", rb"\url{https://github.com/ada/my\_toys}") == ["https://github.com/ada/my_toys"]


async def test_document_is_read_in_the_sandbox(tmp_path: Path) -> None:
    (tmp_path / "paper.pdf").write_bytes(broken_address(has_links=True))
    (tmp_path / "secret.pdf").write_bytes(encrypted(broken_address(has_links=True)))

    assert (await read_named_repositories(tmp_path / "paper.pdf")).candidates == [TOYS]
    with pytest.raises(ConfigError, match="encrypted"):
        await read_named_repositories(tmp_path / "secret.pdf")

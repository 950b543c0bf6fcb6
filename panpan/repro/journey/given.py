"""Given: a repository, a folder or a paper, as the user names it on the command line."""

from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from panpan.errors import ConfigError
from panpan.repro.claims.places import has_begun
from panpan.system.git.fetching import GitAddress, git_address
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

PAPER_SUFFIXES = (".pdf", ".html", ".htm", ".md", ".tex")
"""Ends of the names of papers that can be read."""
_SUFFIX = "-reproduction"
_ARXIV = ("arxiv.org", "www.arxiv.org", "export.arxiv.org")
_ARXIV_ID = compile_late(r"(?i)arxiv:(?P<id>\d{4}\.\d{4,5}(?:v\d+)?|[a-z-]+(?:\.[a-z]{2})?/\d{7}(?:v\d+)?)")
_UNUSUAL = compile_late(r"[^\w.-]+")
_MAX_NAME_CHARS = 60

Kind: TypeAlias = Literal["repository", "folder", "paper", "begun"]


@dataclass(frozen=True, slots=True)
class Given:
    """One thing that the user named."""

    kind: Kind
    text: str
    """As the user wrote it."""
    path: Path | None = None
    """Absolute path of a folder or file; None for an address."""
    address: GitAddress | None = None
    """Address of a repository."""
    url: str = ""
    """Address of a paper."""

    @property
    def folder_name(self) -> str:
        """Name for the folder of the reproduction."""
        if self.address is not None:
            name = self.address.name
        elif self.path is not None:
            name = self.path.name if self.kind == "folder" else self.path.stem
        else:
            name = urlsplit(self.url).path.rstrip("/").rpartition("/")[2].removesuffix(".pdf")
        plain = _UNUSUAL.sub("-", name).strip("-.")[:_MAX_NAME_CHARS]
        return f"{plain or 'paper'}{_SUFFIX}"


def read_given(text: str, cwd: Path) -> Given:
    """Return what the user named.

    Raises:
        ConfigError: It is nothing that can be reproduced.
    """
    path = cwd / Path(text).expanduser()
    if text and path.is_dir():
        return Given("begun" if has_begun(path) else "folder", text, path.resolve())
    if text and path.is_file():
        return read_paper(text, cwd)
    if _ARXIV_ID.fullmatch(text) or (text.startswith(("https://", "http://")) and _is_paper(text)):
        return read_paper(text, cwd)
    if (address := git_address(text)) is not None:
        return Given("repository", text, address=address)
    raise ConfigError(
        f"{text} is not there; give a folder, a paper ({', '.join(PAPER_SUFFIXES)}), the address of a git repository, "
        "OWNER/NAME on GitHub, or arxiv:ID"
    )


def read_paper(text: str, cwd: Path) -> Given:
    """Return the paper that the user named: a file or an address.

    Raises:
        ConfigError: It is neither.
    """
    if (arxiv := _ARXIV_ID.fullmatch(text)) is not None:
        return Given("paper", text, url=f"https://arxiv.org/pdf/{arxiv['id']}")
    if text.startswith(("https://", "http://")):
        return Given("paper", text, url=_pdf_of_arxiv(text))
    path = cwd / Path(text).expanduser()
    if not path.is_file():
        raise ConfigError(f"the paper {text} is not there; give a file or an address")
    if path.suffix.lower() not in PAPER_SUFFIXES:
        raise ConfigError(f"{text} is no paper that can be read; give one of {', '.join(PAPER_SUFFIXES)}")
    return Given("paper", text, path.resolve())


def read_repository(text: str, cwd: Path) -> Given:
    """Return the repository of a paper, as `--repo` names it: a folder or an address.

    Raises:
        ConfigError: It is neither.
    """
    found = read_given(text, cwd)
    if found.kind not in ("repository", "folder"):
        raise ConfigError(f"--repo {text} names no repository; give a folder or the address of a git repository")
    return found


def _is_paper(url: str) -> bool:
    parts = urlsplit(url)
    is_arxiv = (parts.hostname or "") in _ARXIV and parts.path.startswith(("/abs/", "/pdf/", "/html/"))
    return is_arxiv or parts.path.lower().endswith(PAPER_SUFFIXES)


def _pdf_of_arxiv(url: str) -> str:
    parts = urlsplit(url)
    if (parts.hostname or "") in _ARXIV and parts.path.startswith("/abs/"):
        return parts._replace(
            scheme="https", query="", fragment="", path=f"/pdf/{parts.path.removeprefix('/abs/')}"
        ).geturl()
    return url

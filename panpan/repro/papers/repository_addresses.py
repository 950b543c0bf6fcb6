"""Addresses of git repositories in the text of a paper. Pure: nothing is asked for.

The rule: an address counts as a repository by its form alone, and is written in one form, so that the same repository
is one candidate however often and by whatever page of it the paper names it.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from panpan.types.pattern import compile_late

MAX_CHARS = 300
"""Longest address."""
MAX_NAMED = 100
_HOSTS = ("github.com", "gitlab.com", "codeberg.org", "bitbucket.org", "huggingface.co")
_HOST = compile_late(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?")
_PART = compile_late(r"\w[\w.-]*")
_PAGES_OF_HOST = {
    "github.com": ("about", "apps", "collections", "explore", "features", "login", "marketplace", "orgs", "search",
                   "settings", "sponsors", "topics", "users"),
    "huggingface.co": ("api", "blog", "collections", "docs", "learn", "papers", "posts", "tasks"),
}  # fmt: skip
"""First parts of paths that are no owners."""
_PAGES_OF_REPOSITORY = ("-", "tree", "blob", "raw", "src", "commit", "commits", "issues", "releases", "wiki", "wikis")
_BRANCHES = ("main", "master", "HEAD")
"""Names of usual branches, which say nothing."""

_CHARS = r"[^\s<>()\[\]{}\"'`|\\^,;]"
_ADDRESS = compile_late(
    rf"https?://{_CHARS}{{1,400}}|git@[\w.-]{{1,200}}:{_CHARS}{{1,400}}|"
    rf"(?<![\w@./:-])(?:www\.)?(?:{'|'.join(host.replace('.', '[.]') for host in _HOSTS)})/{_CHARS}{{1,400}}"
)
_AT_END_OF_LINE = compile_late(
    rf"(?P<address>(?:https?://|git@|\b(?:{'|'.join(host.replace('.', '[.]') for host in _HOSTS)})/){_CHARS}{{0,400}})"
    rf"[ \t]*\n[ \t]*(?P<next>{_CHARS}{{1,400}})"
)
_AFTER_ADDRESS = ".,;:!?'\"*_"
_BROKEN_HOST = compile_late(
    r"(https?:)[ \t]{0,9}\n[ \t]{0,9}(?=//)|"
    r"(\b(?:github|gitlab|bitbucket|codeberg|huggingface)\.)\n[ \t]{0,9}(?=co|org)"
)
_MOST_LINES = 4
"""Most lines over which an address is broken."""

_REFERENCES = compile_late(
    r"(?im)^[ \t]*(?:#+[ \t]*|[\dIVX]+\.?[ \t]+)?(?:r[ \t]?eferences(?:[ \t]and[ \t]notes)?|b[ \t]?ibliography|"
    r"literature cited|works cited)[ \t]*:?[ \t]*$|\\begin\{thebibliography\}"
)
_AFTER_REFERENCES = compile_late(
    r"(?im)^[ \t]*(?:#+[ \t]*|[\dA-Z]{1,2}\.?[ \t]+)?(?:a[ \t]?ppendi(?:x|ces)|s[ \t]?upplement|acknowledge?ments?|"
    r"(?:code|data|software)(?: and \w+)? availability|availability of)\b.{0,80}$|\\end\{thebibliography\}|^#+[ \t]"
)
_CODE = r"(?:code|codebase|implementations?|scripts?|software|repository|programs?)"
_GIVEN = (
    r"(?:available|released?|found|published?|hosted|provided?|accessible|shared?|public(?:ly)?|open[- ]sourced?|at)"
)
_NAMES_CODE = compile_late(
    rf"(?is)\b{_CODE}\b.{{0,120}}\b{_GIVEN}\b.{{0,60}}$|\b{_GIVEN}\b.{{0,60}}\b{_CODE}\b.{{0,60}}$|"
    rf"\b{_CODE}(?: and data)?(?: availability)?[ \t]*[:(.-]*\s*$|\bcode availability\b.{{0,150}}$"
)
_OF_OTHERS = compile_late(r"(?is)\b(?:based|built|builds|relies|adapted|modified|borrow\w*|fork\w*|their|follow\w*)\b")
_SENTENCE = compile_late(r"(?s)(?:[.!?][ \t\n]+(?=[A-Z])|\n[ \t]*\n)")
_AND = compile_late(r"[\s)>\]`/,;&]*(?:and|or)?[\s(<\[`]*")
"""Text between two addresses of one statement."""
_CHARS_BEFORE = 200


class NamedRepository(BaseModel):
    """A repository that a paper names."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    address: str = Field(max_length=MAX_CHARS)
    """As git takes it, with `#REF` if the paper names a tag, branch or commit."""
    is_of_code: bool = False
    """True if the words before it say that the paper's code is there."""


class NamedRepositories(BaseModel):
    """Repositories that a paper names outside of its references, each once, in the order of the paper."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    repositories: tuple[NamedRepository, ...] = Field(default=(), max_length=MAX_NAMED)

    @property
    def candidates(self) -> Sequence[str]:
        """Addresses of which one may be that of the paper: those of code, if there are any."""
        of_code = [one.address for one in self.repositories if one.is_of_code]
        return of_code or [one.address for one in self.repositories]


def named_repositories(text: str) -> NamedRepositories:
    """Return the repositories that a text names.

    Args:
        text: Text of a paper, with the addresses of its links in it.
    """
    found: dict[str, NamedRepository] = {}
    for one in _named(_with_whole_addresses(text.replace("\r\n", "\n"))):
        location, _, ref = one.address.partition("#")
        key = location.lower().removesuffix(".git")
        before = found.get(key)
        if before is None:
            found[key] = one
            continue
        old_ref = before.address.partition("#")[2]
        same_ref = old_ref if not ref or ref == old_ref else ref if not old_ref else ""
        address = f"{before.address.partition('#')[0]}#{same_ref}".removesuffix("#")
        found[key] = NamedRepository(address=address, is_of_code=before.is_of_code or one.is_of_code)
    return NamedRepositories(repositories=tuple(found.values())[:MAX_NAMED])


def repository_address(text: str) -> str | None:
    """Return the address of a repository in its usual form; None if a text is none.

    The address of a page of a repository is that of the repository; one of a tag, branch or commit keeps it.
    """
    text = text.rstrip(_AFTER_ADDRESS)
    if text.startswith("git@"):
        host, _, path = text.removeprefix("git@").partition(":")
        text = f"https://{host}/{path}"
    elif not text.startswith(("https://", "http://")):
        text = f"https://{text}"
    try:
        split = urlsplit(text)
    except ValueError:  # brackets that hold no address of a host
        return None
    host = split.netloc.lower().removeprefix("www.")
    parts = [part for part in split.path.split("/") if part]
    if (
        not _HOST.fullmatch(host)
        or len(text) > MAX_CHARS
        or not all(_PART.fullmatch(part) or part == "-" for part in parts[:8])
    ):
        return None
    scheme = "https" if host in _HOSTS else split.scheme
    of_git = next((at for at, part in enumerate(parts) if part.endswith(".git") and part != ".git"), None)
    size = of_git + 1 if of_git is not None else _size(host, parts)
    if size is None or len(parts) < size:
        return None
    path = "/".join(parts[:size])
    if host in _HOSTS:
        path = path.removesuffix(".git")
    return f"{scheme}://{host}/{path}#{_ref(parts[size:])}".removesuffix("#")


def is_known(address: str) -> bool:
    """True if an address is on one of the well-known public hosts."""
    return urlsplit(address).netloc in _HOSTS


def _size(host: str, parts: Sequence[str]) -> int | None:
    """Return the number of parts of a path that name a repository; None if they name none."""
    if not parts or parts[0] in _PAGES_OF_HOST.get(host, ()):
        return None
    if host == "huggingface.co":
        return 3 if parts[0] in ("datasets", "spaces") else 2
    if host.startswith(("gitlab.", "git.")):  # groups of groups
        ends = [at for at, part in enumerate(parts) if at >= 2 and part in _PAGES_OF_REPOSITORY]
        return max(ends[0] if ends else len(parts), 2)
    return 2 if host in _HOSTS else None


def _ref(pages: Sequence[str]) -> str:
    match [page for page in pages if page != "-"]:
        case ["tree" | "commit", ref, *_] | ["releases", "tag", ref, *_] if ref not in _BRANCHES:
            return ref
        case _:
            return ""


def _with_whole_addresses(text: str) -> str:
    """Join addresses that are broken over lines."""
    text = _BROKEN_HOST.sub(lambda match: match[1] or match[2], text)
    for _ in range(_MOST_LINES - 1):
        joined = _AT_END_OF_LINE.sub(
            lambda match: match["address"] + _between(match["address"], match["next"]) + match["next"], text
        )
        if joined == text:
            break
        text = joined
    return text


def _between(address: str, following: str) -> str:
    """Return nothing if the next line goes on with an address, else the end of the line."""
    is_cut = address.endswith(("-", "_", "//", "@")) or (address.endswith(".") and following.startswith("git"))
    is_between_parts = address.endswith("/") or following.startswith("/")
    goes_on = is_cut or (is_between_parts and repository_address(address) is None)
    return "" if goes_on and not following.startswith(("http", "git@")) else "\n"


def _named(text: str) -> Iterator[NamedRepository]:
    lists = _reference_lists(text)
    end, is_of_code = 0, False
    for match in _ADDRESS.finditer(text):
        before = text[max(match.start() - _CHARS_BEFORE, end) : match.start()]
        is_of_code = _says_code(before) or (is_of_code and _AND.fullmatch(before) is not None)
        end = match.end()
        address = repository_address(match[0])
        at = bisect_right(lists, (match.start(), len(text)))
        is_reference = at > 0 and match.start() < lists[at - 1][1]
        if address is not None and not is_reference:
            yield NamedRepository(address=address, is_of_code=is_of_code)


def _says_code(before: str) -> bool:
    """True if the words before an address say that the paper's code is there."""
    sentence = _SENTENCE.split(before)[-1]
    return _NAMES_CODE.search(sentence) is not None and _OF_OTHERS.search(sentence) is None


def _reference_lists(text: str) -> Sequence[tuple[int, int]]:
    """Return the places of lists of references, from the first to the last."""
    lists, end = [], 0
    while (heading := _REFERENCES.search(text, end)) is not None:
        after = _AFTER_REFERENCES.search(text, heading.end())
        end = len(text) if after is None else after.start()
        lists.append((heading.start(), end))
    return lists

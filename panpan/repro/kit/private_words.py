"""Private words: places, names and keys of the machine on which a check ran, none of which gets into a kit.

The rule: every text passes `PrivateWords.clean` on its way into a kit, and every file of a kit passes `find` once it is
written. A kit in which `find` sees something is refused, so that a text that was forgotten does no harm.
"""

import json
import os
import pwd
import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from html import escape, unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from panpan.batch.reporting.report import in_markdown
from panpan.config.known_secrets import known_secrets
from panpan.repro.checking.results import CheckReport
from panpan.repro.claims.claim import Claims
from panpan.system.files.canonical import canonical_path, user_home
from panpan.system.text.redact import Redactor
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

_MIN_NAME_CHARS = 3
"""Shorter names of users and hosts are left: they would blank ordinary words."""
_COMMON_NAMES = """
    admin administrator anonymous app bench build builder centos code codespace conda container core data debian default
    demo dev developer docker ec2-user experiment fedora guest home host lab lab1 linux local localhost localdomain mac
    machine main master me node node1 nobody jovyan paper project pyodide python research root runner science server
    source src student test tests ubuntu user username users vagrant vm vscode work worker workspace

    media mnt nfs opt projects scratch shared srv storage tmp usr var volumes
"""
"""Names that tell nothing about a person or a machine, and that projects use for other things."""


@cache
def common_names() -> frozenset[str]:
    """Return names that do not count: those above, and the words that every kit has in its own files."""
    own = "\n".join(Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8") for name in _TEXTS)
    fields = json.dumps([model.model_json_schema() for model in (CheckReport, Claims)])
    return frozenset(_COMMON_NAMES.split()) | {word.lower() for word in re.findall("[A-Za-z0-9]+", own + fields)}


_TEXTS = ("compare", "contents", "crate", "hardware", "locks", "manifest", "script", "write_kit")
"""Modules whose words get into every kit."""


class PrivateWords:
    """Finds private words in texts, and replaces them by placeholders such as `[home]`.

    Args:
        places: Placeholders by folder. Their names count as they are and as a JSON string or an address has them.
        names: Placeholders by name of a user or a machine; short and common ones are left out.
        secrets: Keys in use. What has the shape of a key counts, too.
        public: Text that stays although it holds a name, such as the address of a repository; empty if there is none.
    """

    def __init__(
        self, places: Mapping[Path, str], names: Mapping[str, str], secrets: Iterable[str] = (), public: str = ""
    ) -> None:
        self._public = public
        self._redactor = Redactor(secrets)
        longest = sorted(places.items(), key=lambda one: -len(str(one[0])))
        self._places = [_place(str(path), said) for path, said in longest if path != Path("/")]
        told = [(name, said) for name, said in names.items() if is_telling(name)]
        self._names = [_name(name, said) for name, said in sorted(told, key=lambda one: -len(one[0]))]

    @classmethod
    def of_machine(cls, places: Mapping[Path, str], environ: Mapping[str, str], *, public: str = "") -> "PrivateWords":
        """Return those of the user and the machine here.

        Args:
            places: Further places, with their placeholders.
            environ: The user's environment.
            public: Text that stays; empty if there is none.
        """
        users, hosts = _users(environ), _hosts(environ)
        homes = [Path(environ["HOME"])] if environ.get("HOME", "").startswith("/") else []
        homes += [user_home(), *(Path(top, user) for top in ("/home", "/Users") for user in users)]
        named = {**dict.fromkeys(homes, "[home]"), **places}
        known = {one: said for path, said in named.items() for one in (path, canonical_path(path))}
        names = {**dict.fromkeys([*users, *(home.name for home in homes)], "[user]"), **dict.fromkeys(hosts, "[host]")}
        return cls(known, names, known_secrets(environ), public)

    def clean(self, text: str) -> str:
        """Return a text with placeholders."""
        if self._public and self._public in text:
            return self._public.join(self.clean(part) for part in text.split(self._public))
        for word in (*self._places, *self._names):
            text = word.pattern.sub(word.placeholder, text)
        return self._redactor.redact(text)

    def clean_page(self, text: str) -> str:
        """Return a page in Markdown or HTML with placeholders, also for words with signs that are escaped there."""
        return _TOKEN.sub(self._clean_token, self.clean(text))

    def _clean_token(self, token: re.Match[str]) -> str:
        plain = _without_escapes(token[0])
        cleaned = self.clean(plain)
        return token[0] if cleaned == plain else escape(cleaned).replace("|", "\\|")

    def clean_value(self, value: Any) -> Any:
        """Return a value of JSON whose texts are cleaned, keys of objects among them."""
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, Mapping):
            return {self.clean(str(key)): self.clean_value(one) for key, one in value.items()}
        return [self.clean_value(one) for one in value] if isinstance(value, list | tuple) else value

    def find(self, text: str, *, with_names: bool = True) -> str:
        """Return the kind of the first private word of a text, such as "a key"; empty if there is none.

        Args:
            text: The text.
            with_names: False if names of people and machines do not count.
        """
        if self._public:
            text = text.replace(self._public, " ")
        lowered = text.lower()
        for word in (*self._places, *(self._names if with_names else ())):
            # the look for plain texts is ten times as quick, and almost all texts hold none
            if word.tells and any(one in lowered for one in word.spellings) and word.pattern.search(text):
                return _KINDS.get(word.placeholder, "a private folder")
        return "" if self._redactor.redact(text) == text else "a key"

    def find_on_page(self, text: str) -> str:
        """Return the kind of the first private word of a page in Markdown or HTML as a reader sees it."""
        return self.find(text) or self.find(_without_escapes(text))


_TOKEN = compile_late(r"[^\s<>]+")
_ESCAPE = compile_late(r"\\([\\`*_{}\[\]|#~!])")


def _without_escapes(text: str) -> str:
    return unescape(_ESCAPE.sub(r"\1", text)) if "\\" in text or "&" in text else text


_KINDS = {"[home]": "your home folder", "[user]": "your user name", "[host]": "the name of this machine"}


def is_telling(name: str) -> bool:
    """True if a name tells who somebody is or which machine it was."""
    return len(name) >= _MIN_NAME_CHARS and name.lower() not in common_names()


def is_private_place(path: str) -> bool:
    """True if a folder tells who somebody is; `/root` and `/work/project` do not."""
    return any(is_telling(part) for part in path.split("/"))


def _users(environ: Mapping[str, str]) -> Sequence[str]:
    names = [environ.get(name, "") for name in ("USER", "LOGNAME", "USERNAME")]
    with suppress(KeyError):  # a user without a name
        names.append(pwd.getpwuid(os.getuid()).pw_name)
    return [name for name in names if name]


def _hosts(environ: Mapping[str, str]) -> Sequence[str]:
    names = [name for name in (environ.get("HOSTNAME", ""), socket.gethostname()) if name]
    return [*names, *(name.partition(".")[0] for name in names)]


@dataclass(frozen=True, slots=True)
class _Word:
    """A private word."""

    spellings: Sequence[str]
    """Ways in which it is written, in small letters."""
    pattern: re.Pattern[str]
    placeholder: str
    tells: bool = True
    """False if it tells nothing, so that it may stand in a kit where nobody could replace it."""


def _spellings(word: str) -> Sequence[str]:
    as_json = {json.dumps(word)[1:-1], json.dumps(word, ensure_ascii=False)[1:-1]}
    pages = {in_markdown(one) for one in as_json} | {escape(one) for one in as_json}
    found = {word, *as_json, *pages, quote(word, errors="replace"), quote(word, safe="", errors="replace")}
    return sorted(found, key=lambda one: (-len(one), one))


def _place(path: str, placeholder: str) -> _Word:
    tells = is_private_place(path)
    # anything may stand around a place that tells, such as an option in -I/srv/group/include
    return _word(path, placeholder, tells=tells) if tells else _word(path, placeholder, r"\w.-", r"\w-", tells=False)


def _name(name: str, placeholder: str) -> _Word:
    # only letters and digits make a longer name of it: behind a hyphen or an underscore it is still the same one
    return _word(name, placeholder, r"^\W_", r"^\W_")


def _word(word: str, placeholder: str, before: str = "", after: str = "", *, tells: bool = True) -> _Word:
    spellings = _spellings(word)
    choice = f"(?:{'|'.join(map(re.escape, spellings))})"
    pattern = (f"(?<![{before}])" if before else "") + choice + (f"(?![{after}])" if after else "")
    return _Word([one.lower() for one in spellings], re.compile(pattern, re.IGNORECASE), placeholder, tells)

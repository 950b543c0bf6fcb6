"""Claims in an answer: sentences that say a command has succeeded, or that a result holds.

The rule: a phrase that is no statement of fact, such as "should pass" or "if all tests pass", is no claim.
Phrases are English.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Literal, TypeAlias

from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

ClaimKind: TypeAlias = Literal["tests", "build", "command", "other"]
"""Kind of a claim: tests pass; it builds; a named command succeeds; anything that no receipt can show."""

MOST_CLAIMS = 8
"""Most claims of one answer that are looked at."""
_MOST_CHARS = 20_000
"""Characters of the beginning, and of the end, that are looked through."""
_MOST_QUOTED = 60
_MOST_BEFORE = 1_000
"""Characters of a sentence before a phrase that may make it no statement of fact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerClaim:
    """One claim of an answer."""

    kind: ClaimKind
    text: str
    """The claim in the words of the answer, cut to one short line."""
    is_all: bool = True
    """True if it speaks of all tests and not of some."""
    passed: int | None = None
    """Number of tests that it says have passed; None if it names none."""
    files: tuple[str, ...] = ()
    """Test files that it names, as far as they are written."""
    qualifier: str = ""
    """Word that narrows the tests down, such as "integration"; empty if there is none."""
    command: tuple[str, ...] = ()
    """Words of the command that it names."""
    is_tool: bool = False
    """True if that is the bare name of a tool that checks code, such as "mypy"."""

    @property
    def is_of_work(self) -> bool:
        """True if it speaks of what was done here, also where an answer only explains something."""
        return self.kind != "other" or re.match(r"(?i)(?:I|we)\b|verified|tested", self.text) is not None

    @property
    def is_count(self) -> bool:
        """True if it says no more than how many tests have passed."""
        return self.kind == "tests" and not self.is_all and not self.files


def claims_in(answer: str) -> Sequence[AnswerClaim]:
    """Return the claims of an answer in their order, each once."""
    found: dict[tuple[object, ...], AnswerClaim] = {}
    for claim in _all_claims(_bounded(answer)):
        key = (claim.kind, claim.text.casefold())
        found.setdefault(key, claim)
        if len(found) == MOST_CLAIMS:
            break
    return list(found.values())


def _bounded(answer: str) -> str:
    return answer if len(answer) <= 2 * _MOST_CHARS else f"{answer[:_MOST_CHARS]}\n{answer[-_MOST_CHARS:]}"


_ASCII = {0x2018: "'", 0x2019: "'", 0xD7: "x", 0x2013: "-", 0x2014: "-"}
"""Signs of typography that the patterns below need not know."""


def _all_claims(answer: str) -> Iterator[AnswerClaim]:
    is_in_fence = False
    for line in answer.translate(_ASCII).splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            is_in_fence = not is_in_fence
        elif is_in_fence:
            yield from _claims_of_output(line)
        elif not line.lstrip().startswith(">"):
            for sentence in _SENTENCE_END.split(line):
                yield from _claims_of_sentence(sentence.replace("**", "").replace("__", ""))


_SENTENCE_END = compile_late(r"(?<=[.!?;])\s+|\s-\s|(?<![Aa]ll),?\s+but\s+")

_COUNT = r"(?P<passed>\d[\d,]{0,8})(?:\s*(?:/|of|out of)\s*(?P<total>\d[\d,]{0,8}))?"
_SUMMARY = compile_late(rf"\b{_COUNT}\s+passed\b")
"""Words with which test programs report a run; an answer that shows them claims the run."""


def _claims_of_output(line: str) -> Iterator[AnswerClaim]:
    for match in () if _TELLS_FAILURES.search(line) else _SUMMARY.finditer(line):
        yield AnswerClaim(kind="tests", text=_quoted(match[0]), is_all=False, passed=_number(match["passed"]))


_NOUN = r"(?:unit[ -])?(?:tests?(?:[ -](?:suites?|cases?|runs?))?|suites?|specs)"
_ADVERBS = r"(?:(?:is|are|was|were|have|has|had|now|all|still|also|both|again|successfully|consistently|locally|"
_ADVERBS += r"already|been|continues?|to)\s+){0,4}"
_PASS = (
    r"(?:pass(?:es|ed|ing)?\b(?!\s+(?:the|an?|its|their|it|them|this|these|each|every|over|None|arguments?|parameters?|data|values?|along|"
    r"through|[\w.]{1,30}\s+(?:to|into|as))\b)|(?:succeed(?:s|ed)?|green|successful|clean|ok(?:ay)?)\b|"
    r"(?:ran|runs?|complete[sd]?|finish(?:es|ed)?)\s+(?:successfully|cleanly|without\s+(?:any\s+)?(?:errors?|failures?|"
    r"issues?|problems?))(?!\w))"
)
_WHERE = (
    r"(?:\s+(?:in|under|for|from|of)\s+(?:the\s+)?(?P<where>`?[\w./-]{1,80}`?(?:\s+and\s+`?[\w./-]{1,80}\.\w+`?)?))?"
)
_EVERY = r"(?P<all>all(?:\s+of)?(?:\s+(?:the|our|my|its))?|every|each|the|(?:the\s+)?(?:full|whole|entire|complete))"
_QUALIFIER = r"(?P<qualifier>(?:(?!(?:and|that|so|all|the|now|then|since|because|as|also|\d+)\b)[\w-]{1,30}\s+){0,2}?)"
_TESTS = (
    r"\b(?P<all>100\s?%)\s+(?:of\s+(?:the\s+)?tests\s+)?pass(?:es|ed|ing)?\b",
    rf"\b(?:{_EVERY}\s+)?(?:{_COUNT}\s+)?{_QUALIFIER}{_NOUN}{_WHERE}\s+{_ADVERBS}{_PASS}",
    rf"\b(?:pass(?:es|ed|ing)|pass(?=\s+all))\s+{_EVERY}\s+(?:{_COUNT}\s+)?{_QUALIFIER}{_NOUN}\b{_WHERE}"
    r"(?!\s+(?:to|as|into|through|on|folder|directory|files?)\b)",
    rf"\b(?:{_EVERY}\s+)?{_COUNT}\s+(?:(?:tests?\s+)?{_ADVERBS}pass(?:es|ed|ing)?\b)",
    r"\b(?P<all>everything|it all|all)\s+(?:is\s+|are\s+|now\s+|still\s+)*(?:passes|passed|passing|green)\b",
    rf"\b{_NOUN}\W{{0,6}}(?:✅|✓|✔|🟢)",
    rf"(?:✅|✓|✔|🟢)[\ufe0f]?\s*(?P<all>all\s+)?(?:\w+\s+)?{_NOUN}\s*$",
    r"\b(?:no|zero|0)\s+(?:test\s+failures|failing\s+tests|failed\s+tests|tests\s+fail(?:ed|ing)?)\b",
    r"\bnone\s+of\s+the\s+tests\s+fail(?:s|ed)?\b",
    rf"\b(?:pytest|tox|nox|jest|vitest|ctest|cargo\s+(?:nextest|test)|go\s+test)\s+{_ADVERBS}{_PASS}",
    r"\bthey\s+(?:now\s+|all\s+|both\s+|still\s+){0,2}pass(?:ed)?\b",
    rf"(?<![\w./-])(?P<where>test_\w{{1,60}})`?\s+{_ADVERBS}{_PASS}",
)
_FILE = (
    r"(?<![\w./-])`?(?P<where>[\w./-]{0,80}(?:test_[\w-]{1,60}|[\w-]{1,60}_test|[\w-]{1,60}\.(?:test|spec))\.\w{1,4}"
)
_FILE += r"(?:::[\w:\[\]-]{1,80})?)`?"
_TEST_FILE = rf"{_FILE}\s+{_ADVERBS}{_PASS}"
_BUILD_VERB = r"(?:builds?|built|compiles?|compiled)"
_WELL = (
    r"(?:successfully|cleanly|fine|correctly|without\s+(?:any\s+)?(?:errors?|warnings?|issues?|problems?)|again|now)"
)
_BUILD = (
    rf"\b(?:build|compilation|compile)\s+{_ADVERBS}(?:{_PASS}|(?:complete[sd]?|finishe[sd]|works?)\b)",
    rf"\b(?:it|this|that|everything|code|project|package|library|binary|extension|crate|module|program|app|paper|"
    rf"document|pdf|wheel|image|target|kernel|solver)\s+(?:now\s+|still\s+|also\s+|all\s+)?(?:is\s+|are\s+)?"
    rf"{_BUILD_VERB}\b(?!\s+(?:on\s+(?!Linux|macOS|Windows|ARM|CI\b|Python)|upon|in|with|using|from|against|a|an|the|by|to|for|around)\b)",
    rf"\b{_BUILD_VERB}\s+{_WELL}(?!\w)",
    r"\b(?:successfully|cleanly)\s+(?:built|compiled)\b",
    r"(?:✅|✓|✔|🟢)[\ufe0f]?\s*build\s*$",
    r"\bbuild\W{1,6}(?:✅|✓|✔|🟢|success(?:ful)?\b|pass(?:es|ed|ing)?\b|ok\b)",
)
_PLATFORM = (
    r"(?:the\s+)?(?:GPUs?|CUDA|ROCm|MPS|TPUs?|Windows|macOS|Mac|Linux|ARM|Apple Silicon|multi-?GPU|Python\s?[\d.]+)"
)
_PAPER = r"(?:paper|publication|published|reported|original\s+(?:results?|numbers?|figures?)|table|figure|baseline)"
_NO_LOOK = (
    r"(?!.{0,80}?\b(?:exists?|by\s+(?:reading|looking|inspecting|reviewing|searching)|with\s+you|"
    r"in\s+the\s+(?:code|sources?|docs|documentation))\b)"
)
"""Reading shows what it claims."""
_CHECKED = (
    r"(?:now\s+|all\s+|fully\s+|also\s+|carefully\s+|thoroughly\s+)?"
    rf"(?:verified|confirmed|validated|tested|double-checked)\b{_NO_LOOK}"
)
_NO_RULE = r"(?!\s+(?:by|with|against|in|before|on|when|at|using|as|via|through|for|every|each)\b)"
"""In the present tense, what code or people do each time, such as "input is validated before it is stored"."""
_OTHER = (
    rf"\b(?:works?|runs?|working|tested|verified|trains?)\s+(?:\w+\s+)?(?:on|with|under)\s+(?:both\s+)?(?:\w+\s+and\s+)?{_PLATFORM}\b",
    rf"\b{_PLATFORM}(?:\s+(?:support|version|path|training|mode))?\s+(?:now\s+)?works\b",
    r"\beverything\s+(?:now\s+|still\s+)?(?:works|is\s+working|looks\s+good|is\s+fine)\b",
    r"\b(?:twice|three\s+times|\d+\s+times)\s+as\s+fast\b",
    r"\b(?:runtime|run\s+time|time|latency|memory|duration)\s+(?:has\s+)?(?:dropped|fell|decreased|went\s+down|is\s+reduced)\s+"
    r"(?:from|by|to)\b",
    rf"\b(?:reproduc\w{{1,4}}|replicat\w{{1,4}}|match(?:es|ed|ing)?|agrees?(?:\s+with)?|consistent\s+with|"
    rf"identical\s+to|in\s+line\s+with)\s+(?:[\w'-]{{1,20}}\s+){{0,4}}{_PAPER}\b(?:\s+[\w-]{{1,20}}){{0,2}}",
    rf"\bwithin\s+[\d.]+\s?(?:%|percent|points?)\s+of\s+(?:the\s+)?{_PAPER}\b",
    r"\b(?:results?|numbers?|figures?|accuracy|metrics?)\s+(?:is\s+|are\s+|was\s+|were\s+|have\s+been\s+)?"
    r"(?:fully\s+)?(?:reproduced|replicated)\b",
    r"\b\d[\d.]{0,6}\s?(?:x|times|%|percent)\s+(?:faster|quicker|speed-?up|less\s+memory|more\s+efficient)\b",
    r"\b(?:is|are|runs?|now|was|were)\s+(?:much\s+|significantly\s+|noticeably\s+|about\s+)?(?:faster|quicker)\b"
    r"(?!\s+than\s+(?!before|baseline|it\s+was|the\s+(?:old|previous|original|last|baseline|first)\b))",
    r"\bspeed-?up\s+of\s+(?:about\s+)?\d[\d.]{0,6}",
    r"\b(?:works?|working|runs?|behaves?)\s+(?:correctly|perfectly|flawlessly|as\s+(?:expected|intended|designed)|"
    r"end[- ]to[- ]end|fine|without\s+(?:any\s+)?(?:errors?|issues?|problems?))(?!\w)",
    rf"\b(?:I(?:'ve|\s+have)?|we(?:'ve|\s+have)?|been|was|were)\s+{_CHECKED}(?:\s+[^\s.,;]{{1,30}}){{0,6}}",
    rf"\b(?:is|are)\s+{_CHECKED}{_NO_RULE}(?:\s+[^\s.,;]{{1,30}}){{0,6}}",
    rf"^\W{{0,4}}verified\b{_NO_LOOK}(?:\s+[^\s.,;]{{1,30}}){{0,6}}",
    r"\bno\s+regressions?\b(?!\s+tests?\b)",
    r"\ball\s+(?:the\s+)?checks\s+(?:now\s+|still\s+)?pass(?:es|ed|ing)?\b",
    r"\b(?:fully\s+functional|production[- ]ready)\b",
)
_TOOLS = r"mypy|pyright|pylint|ruff|flake8|black|isort|eslint|prettier|tsc|clippy|shellcheck|pre-commit"
_CLEAN = (
    rf"(?:{_PASS}|is\s+happy\b|exits?\s+(?:with\s+)?(?:code\s+)?0\b|(?:reports?|shows?|finds?|found|has)\s+no\s+"
    r"(?:errors?|issues?|problems?|warnings?)\b|(?:runs?|ran|complete[sd]?|finishe[sd])\s+(?:successfully|cleanly|fine|"
    r"without\s+(?:any\s+)?(?:errors?|issues?|problems?|warnings?))(?!\w))"
)
_COMMAND = (
    rf"`(?P<command>[^`\n]{{1,120}})`,?\s+(?:which\s+|and\s+it\s+)?(?:command\s+|check\s+|script\s+)?{_ADVERBS}{_CLEAN}",
    rf"\b(?P<command>(?:{_TOOLS})(?:\s+check)?)\s+{_ADVERBS}{_CLEAN}",
    rf"\b(?:lint\w*|type\s?checks?|(?P<command>{_TOOLS}))\W{{1,6}}"
    r"(?:✅|✓|✔|🟢|no\s+(?:errors?|issues?|problems?|warnings?)\b|clean\b)",
    rf"\b(?:type[- ]?check(?:ing|s|er)?|lint(?:ing|er|s)?|formatting|CI|pipeline)\s+(?:checks?\s+)?{_ADVERBS}{_CLEAN}",
)


_HINTS: Mapping[ClaimKind, str] = {
    "tests": r"test|suite|spec|pass|green|\bnox\b|\btox\b|✅|✓|✔|🟢",
    "build": "buil[dt]|compil",
    "command": rf"`|{_TOOLS}|lint|type|format|\bci\b|pipeline",
    "other": (
        "work|run|test|train|verif|confirm|valid|check|reproduc|replicat|match|agree|consistent|identical|in line|"
        "within|fast|quick|speed|memory|efficient|time|latency|duration|behav|everything|regression|functional|production"
    ),
}
"""Words of which each claim of a kind has at least one. Answers without them are most of the short ones."""


@cache
def _hint(kind: ClaimKind) -> re.Pattern[str]:
    return re.compile(_HINTS[kind], re.IGNORECASE)


@cache
def _patterns(kind: ClaimKind) -> Sequence[re.Pattern[str]]:
    """Return the patterns of a kind of claims; compiling them takes longer than looking for them."""
    patterns = {"tests": (*_TESTS, _TEST_FILE), "build": _BUILD, "command": _COMMAND, "other": _OTHER}[kind]
    return [re.compile(pattern, re.IGNORECASE) for pattern in patterns]


def _found_in(sentence: str) -> Iterator[tuple[ClaimKind, re.Match[str]]]:
    for kind in _HINTS:
        if _hint(kind).search(sentence):
            for pattern in _patterns(kind):
                yield from ((kind, match) for match in pattern.finditer(sentence))


_HEDGE = compile_late(
    r"(?i:\b(?:if|once|when|whenever|until|unless|whether|before|ensure|ensures|make\s+sure|makes\s+sure|so\s+that|"
    r"should|would|could|might|may|must|will|need\s+to|needs\s+to|want|expect\w*|hope\w*|assum\w+|check\s+that|"
    r"see\s+(?:if|that)|let\s+me|please|(?:to|can)\s+(?:now\s+)?(?:verify|confirm|check|see)|"
    r"going\s+to|cannot|unable|yet\s+to|fails?\s+to|according\s+to|"
    r"(?:readme|docs|documentation|changelog|commit(?:\s+message)?|badge|issue|author|paper|your\s+\w+)\s+"
    r"(?:says?|states?|claims?|reports?|shows?)|git\s+log)\b|"
    r"\b(?:not|never|nor|except)\s+(?:\w+\s+)?$|\bno\s+$|"
    r"(?:\b(?:not|never|cannot)|n't)\s+(?:\w+\s+){0,2}(?:run|ran|verif\w+|check\w*|confirm\w*|test(?:ed)?|sure|"
    r"certain|know|claim|say|mean|guarantee|able)\b)"
)
"""Words before a phrase that make it no statement of fact."""
_AFTER = compile_late(
    r"(?i:^\s*(?:\?|(?:once|if|when|after\s+you|as\s+soon\s+as|according\s+to)\b|in\s+(?:your|the\s+\w+\s+(?:that\s+)?you)\b))"
)
"""Words behind a phrase that do."""


_TELLS_FAILURES = compile_late(r"(?i:\b[1-9]\d*\s+(?:tests?\s+)?(?:fail(?:ed|ing|ures?|s)?|errors?)\b)")


def _claims_of_sentence(sentence: str) -> Iterator[AnswerClaim]:
    tells_failures = _TELLS_FAILURES.search(sentence) is not None
    taken: list[tuple[int, int]] = []
    found: list[tuple[int, AnswerClaim]] = []
    for kind, match in _found_in(sentence):
        begin, end = match.span()
        if any(begin < other_end and other_begin < end for other_begin, other_end in taken):
            continue
        taken.append((begin, end))
        until = max(begin, match.end("qualifier") if "qualifier" in match.groupdict() else 0)
        said_before = sentence[max(until - _MOST_BEFORE, 0) : until]
        if _HEDGE.search(said_before) or _AFTER.search(sentence[end : end + _MOST_QUOTED]):
            continue
        if (claim := _claim(kind, match)) is not None and not (tells_failures and claim.is_count):
            found.append((begin, claim))
    yield from (claim for _, claim in sorted(found, key=lambda one: one[0]))


_BY_TESTS = compile_late(
    r"(?i:\bby\s+running\s+(?:all\s+)?(?:the\s+)?(?:full\s+|whole\s+|entire\s+)?(?:tests?|test\s+suite|pytest)\b)"
)
"""Words with which a fix is said to be verified by all tests."""


def _claim(kind: ClaimKind, match: re.Match[str]) -> AnswerClaim | None:
    parts, text = match.groupdict(), _quoted(match[0])
    if kind == "command":
        words = tuple((parts.get("command") or "").split())
        is_tool = re.fullmatch(rf"(?i:{_TOOLS})(?: check)?", " ".join(words)) is not None
        return AnswerClaim(kind=kind, text=text, command=words, is_tool=is_tool)
    if kind == "other" and _BY_TESTS.search(match.string[match.start() : match.end() + _MOST_QUOTED]):
        return AnswerClaim(kind="tests", text=text)
    if kind != "tests":
        return AnswerClaim(kind=kind, text=text)
    passed, total = _number(parts.get("passed")), _number(parts.get("total"))
    if passed is not None and total is not None and passed < total:  # it does not say that all pass
        return None
    qualifier = _qualifier(parts.get("qualifier") or "")
    if qualifier is None:
        return None
    files = tuple(name for name in re.findall(r"[\w./:\[\]-]+", parts.get("where") or "") if "." in name or "/" in name)
    where = (parts.get("where") or "").strip("` ")
    if where and not files and where.casefold() not in _NO_PLACES:
        qualifier = qualifier or where
    is_counted = passed is not None and not (parts.get("all") or "").strip()
    is_all = not files and not (is_counted and total is None)
    return AnswerClaim(kind=kind, text=text, is_all=is_all, passed=passed, files=files, qualifier=qualifier.casefold())


_NO_PLACES = frozenset(
    {"suite", "repo", "codebase", "total", "the", "all", "project", "repository", "this", "it", "both"}
)
_NO_QUALIFIERS = frozenset({
    "all", "of", "the", "our", "my", "your", "its", "these", "those", "and", "that", "so", "existing", "full", "whole",
    "entire", "complete", "project", "test", "python", "now", "result", "then", "both", "every", "with", "remaining",
    "fix", "change", "changes", "unit", "a", "other", "verified", "confirmed", "code", "since", "because", "as",
    "shows", "show", "tests", "where", "automated", "previous", "is", "are", "or",
    "failing", "failed", "broken", "previously", "each",
})  # fmt: skip
"""Words before "tests" that narrow nothing down."""
_DENIALS = frozenset(
    ["no", "not", "few", "some", "most", "half", "many", "only", "none", "nor", "any", "but", "except", "broken"]
)


def _qualifier(words: str) -> str | None:
    """Return the word before "tests" that narrows them down; None if the words deny that all pass."""
    said = [word.casefold() for word in words.split()]
    if not _DENIALS.isdisjoint(said):
        return None
    return next((word for word in reversed(said) if word not in _NO_QUALIFIERS), "")


def _number(text: str | None) -> int | None:
    return int(text.replace(",", "")) if text else None


def _quoted(text: str) -> str:
    line = " ".join(text.replace("`", "").split())
    return line if len(line) <= _MOST_QUOTED else f"{line[: _MOST_QUOTED - 1]}…"

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.project_context.memory_loader import mentioned_paths, split_front_matter, without_code
from panpan.types.messages import strip_tags


def first_meanings(text: str) -> list[str]:
    return [candidates[0] for candidates in mentioned_paths(text)]


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("@a.md", ["a.md"]),
        ("see @docs/a.md and\n@~/b.md", ["docs/a.md", "~/b.md"]),
        ("- @./a\\ b.md", ["./a b.md"]),
        ("me@example.org", []),
        ("@", []),
        ("`@a.md` and ``x @b.md ` `` but @c.md", ["c.md"]),
        ("```\n@a.md\n```\n@b.md", ["b.md"]),
        ("~~~md\n@a.md\n```\n@b.md\n~~~\n@c.md", ["c.md"]),
        ("````\n```\n@a.md\n````\n@b.md", ["b.md"]),
        ("``` \n@a.md", []),
        ("an open ` tick @a.md", ["a.md"]),
        ("@a.md @a.md", ["a.md"]),
    ],
)
def test_mentions_are_found_outside_code(text: str, paths: list[str]) -> None:
    assert first_meanings(text) == paths


def test_mention_may_end_in_punctuation() -> None:
    assert mentioned_paths("(see @a.md).") == [("a.md).", "a.md")]


@given(st.text(alphabet="`~ a\n@", max_size=60))
def test_code_can_be_removed_from_any_text(text: str) -> None:
    assert len(without_code(text)) <= 2 * len(text) + 1


def test_many_open_ticks_take_no_longer_than_few() -> None:
    text = " ".join("`" * length for length in range(1, 1_000))

    assert without_code(text) == text


@pytest.mark.parametrize(
    ("head", "patterns"),
    [
        ('paths:\n  - "src/**/*.py"\n  - lib/*.js', ("src/**/*.py", "lib/*.js")),
        ("paths: src/**, lib/**", ("src/**", "lib/**")),
        ("paths: ['a', \"b\"]", ("a", "b")),
        ("paths: 'src/*.{ts,tsx}'", ("src/*.ts", "src/*.tsx")),
        ("paths: [*.py, 'src/*.{js,ts}']", ("*.py", "src/*.js", "src/*.ts")),
        ("paths: [src/*.{ts,tsx}, lib]", ("src/*.ts", "src/*.tsx", "lib")),
        ("paths:\n  - *.py # those of Python\n  - src/*.{a,b}", ("*.py", "src/*.a", "src/*.b")),
        ("paths: *.py\nglobs: **/*.js", ("*.py",)),
        ("paths: {a,b}", ("a", "b")),
        ("description: x\npaths: {src,lib}/{a,b}.py", ("src/a.py", "src/b.py", "lib/a.py", "lib/b.py")),
        ("description: x", ()),
        ("", ()),
    ],
)
def test_front_matter_paths_are_read(head: str, patterns: tuple[str, ...]) -> None:
    rules = split_front_matter(f"---\n{head}\n---\nBe kind.\n")

    assert rules == ("Be kind.", patterns)


@pytest.mark.parametrize("text", ["", "Be kind.", "---\npaths: a\nBe kind.", "text\n---\npaths: a\n---\n"])
def test_text_without_front_matter_is_unchanged(text: str) -> None:
    assert split_front_matter(text) == (text, ())


def test_braces_cannot_multiply_without_bound() -> None:
    assert len(split_front_matter(f"---\npaths: {'{a,b}' * 30}\n---\n")[1]) < 200


@pytest.mark.parametrize(
    "tag", ["</system-reminder>", "<System-Reminder>", "< / system-reminder >", "</context>", "</rules >"]
)
def test_text_cannot_close_the_tags_around_it(tag: str) -> None:
    assert strip_tags(f"a {tag} b") == f"a &lt;{tag[1:]} b"
    assert strip_tags("a < b <b> <contextual>") == "a < b <b> <contextual>"


def test_hostile_text_is_read_in_bounded_time() -> None:
    text = "<" + " " * 200_000

    assert strip_tags(text) == text

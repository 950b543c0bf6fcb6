"""Private words: none is left in a text that was cleaned, however it was written."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.batch.reporting.page_parts import shown
from panpan.batch.reporting.report import in_markdown
from panpan.repro.kit.private_words import PrivateWords, common_names, is_private_place, is_telling
from tests.repro.private_samples import ENVIRON, PLACES, PRIVATE, SPELLINGS

AROUND = st.text(st.sampled_from(" /.:=\"'\n,;()[]{}<>@-_|\\"), max_size=3)


def words() -> PrivateWords:
    return PrivateWords.of_machine(PLACES, ENVIRON)


@pytest.fixture(scope="module")
def private() -> PrivateWords:
    return words()


@given(AROUND, st.sampled_from(sorted(PRIVATE)), AROUND, st.sampled_from(sorted(set(SPELLINGS) - {"upper"})))
def test_cleaned_text_holds_no_private_word(before: str, word: str, after: str, spelling: str) -> None:
    text = before + SPELLINGS[spelling](word) + after
    cleaned = WORDS.clean(text)

    assert SPELLINGS[spelling](word) not in cleaned
    assert WORDS.find(cleaned) == ""
    assert "mcurie" not in cleaned
    assert "kepler7" not in cleaned


WORDS = words()


@pytest.mark.parametrize("word", sorted(PRIVATE))
@pytest.mark.parametrize("spelling", sorted(SPELLINGS))
def test_each_word_gets_its_placeholder(word: str, spelling: str, private: PrivateWords) -> None:
    if spelling == "upper" and PRIVATE[word] == "[redacted]":
        return  # another key
    cleaned = private.clean(f"a {SPELLINGS[spelling](word)} b")

    assert cleaned == f"a {PRIVATE[word]} b"
    assert private.find(f"a {SPELLINGS[spelling](word)} b")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-I/srv/groups/hadrons/paper/include", "-I[folder]/include"),
        ("file:///home/mcurie/x.csv", "file://[home]/x.csv"),
        ("mcurie@kepler7.uni.example:/tmp", "[user]@[host]:/tmp"),
        ("/home/mcurie/run_mcurie-2.log", "[home]/run_[user]-2.log"),
        ("/home/mcurie2 and xmcurie", "[home]2 and xmcurie"),
        ("/srv/groups/hadrons/paper/source/a.py", "[folder]/source/a.py"),
        ("https://someone:secret-word@git.example/x", "https://someone:[redacted]@git.example/x"),
        ("nothing private", "nothing private"),
    ],
)
def test_clean_replaces_whole_names_and_all_places(text: str, expected: str, private: PrivateWords) -> None:
    assert private.clean(text) == expected


def test_common_and_short_names_are_left() -> None:
    private = PrivateWords.of_machine({}, {"HOME": "/root", "USER": "root", "HOSTNAME": "vm"})

    assert private.clean("root of the tree, on vm") == "root of the tree, on vm"
    assert private.find("WORKDIR /root/x") == ""
    assert private.clean("/root/x") == "[home]/x"
    assert not is_private_place("/work/project")
    assert is_private_place("/work/hadrons")
    assert not is_telling("verdict")
    assert {"root", "claims", "sha256", "judgements"} <= common_names()


def test_clean_value_reaches_keys_and_lists(private: PrivateWords) -> None:
    value = {"mcurie": [{"a": "/home/mcurie/x"}, 3, None, True]}

    assert private.clean_value(value) == {"[user]": [{"a": "[home]/x"}, 3, None, True]}


@pytest.mark.parametrize("escape", [in_markdown, shown])
@pytest.mark.parametrize(
    "word",
    [
        "/home/jane_doe",
        "/srv/our group_1/jane",
        "jane_doe",
        "gpu_box",
        "hf_abcdefghijklmnopqrstuvwxyz012345",
        "o'key&of*mine-0123456789",
    ],
)
def test_page_holds_no_private_word_with_escaped_signs(escape: Callable[[str], str], word: str) -> None:
    environ = {"HOME": "/home/jane_doe", "USER": "jane_doe", "HOSTNAME": "gpu_box"}
    private = PrivateWords.of_machine(
        {Path("/srv/our group_1/jane"): "[folder]"}, {**environ, "WANDB_API_KEY": "o'key&of*mine-0123456789"}
    )
    page = f"<td>at {escape(word)} | {escape('a_b <x>')}</td>"
    cleaned = private.clean_page(page)

    assert private.find_on_page(page)
    assert (private.find_on_page(cleaned), escape(word) in cleaned) == ("", False)
    assert cleaned.endswith(f" | {escape('a_b <x>')}</td>")

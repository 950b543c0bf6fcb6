"""Addresses of repositories in the text of papers: their forms, broken lines, references, and words about code."""

import pytest

from panpan.repro.papers.repository_addresses import named_repositories, repository_address

TOYS = "https://github.com/ada/toys"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("https://github.com/ada/toys", TOYS),
        ("http://www.github.com/ada/toys.git", TOYS),
        ("https://GitHub.com/ada/toys/blob/main/run.py", TOYS),
        ("https://github.com/ada/toys/tree/main", TOYS),
        ("https://github.com/ada/toys/tree/v1.0/src", f"{TOYS}#v1.0"),
        ("https://github.com/ada/toys/releases/tag/v2", f"{TOYS}#v2"),
        ("github.com/ada/toys).", None),
        ("git@github.com:ada/toys.git", TOYS),
        ("https://gitlab.com/group/sub/toys/-/tree/paper", "https://gitlab.com/group/sub/toys#paper"),
        ("https://gitlab.example.org/ada/toys", "https://gitlab.example.org/ada/toys"),
        ("https://codeberg.org/ada/toys/src/branch/main", "https://codeberg.org/ada/toys"),
        ("https://bitbucket.org/ada/toys/src", "https://bitbucket.org/ada/toys"),
        ("https://huggingface.co/datasets/ada/toys", "https://huggingface.co/datasets/ada/toys"),
        ("https://git.example.org/toys.git", "https://git.example.org/toys.git"),
        ("http://127.0.0.1:8080/ada/toys.git", "http://127.0.0.1:8080/ada/toys.git"),
        ("https://github.com/ada", None),
        ("https://github.com/features/actions", None),
        ("https://huggingface.co/papers/2405.00001", None),
        ("https://example.org/ada/toys", None),
        ("https://ada:secret@github.com/ada/toys", None),
        ("https://github.com/ada/--upload-pack=x", None),
        ("https://[::1/ada/toys.git", None),
        ("file:///srv/toys.git", None),
    ],
)
def test_address_has_one_form(text: str, address: str | None) -> None:
    assert repository_address(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "See https://github.com/ada/toys.",
        "(github.com/ada/toys)",
        "https://github.com/\nada/toys is ours",
        "https://github.\ncom/ada/toys",
        "https:\n//github.com/ada/\r\ntoys",
        "github.com/ada\n/toys\nWe thank nobody.",
        "https://github.com/ada/toys/\nWe thank nobody.",
        "https://github.com/ada/toys and https://github.com/Ada/Toys.git, github.com/ada/toys/issues",
        "![ci](https://github.com/ada/toys/actions/workflows/ci/badge.svg) and `git clone git@github.com:ada/toys.git`",
        "We use https://github.com/pytorch/pytorch. Our code is available at https://github.com/ada/toys.",
        "Built on https://github.com/x/base. Code: https://github.com/ada/toys",
        "We release the implementation of all experiments (https://github.com/ada/toys); see github.com/x/y.",
        "Our code is based on https://github.com/x/base\n\nCode availability\nhttps://github.com/ada/toys",
        "github.com/ada/toys\nReferences\n[1] PyTorch. Code available at https://github.com/pytorch/pytorch",
        "# References\n1. https://github.com/x/y\n\n# Appendix\nhttps://github.com/ada/toys",
        "R EFERENCES\ngithub.com/x/y\nA Appendix\ngithub.com/ada/toys",
    ],
)
def test_text_names_one_repository(text: str) -> None:
    assert named_repositories(text).candidates == [TOYS]


def test_hyphen_at_the_end_of_a_line_belongs_to_the_address() -> None:
    assert named_repositories("https://github.com/ada/robust-\nmeans").candidates == [
        "https://github.com/ada/robust-means"
    ]


@pytest.mark.parametrize("text", ["", "no address", "References\nhttps://github.com/x/y", "https://github.com/ada/"])
def test_text_without_a_repository_names_none(text: str) -> None:
    assert named_repositories(text).candidates == []


def test_several_repositories_are_all_candidates() -> None:
    found = named_repositories("We compare github.com/ada/toys and https://gitlab.com/x/y#readme").candidates

    assert found == [TOYS, "https://gitlab.com/x/y"]
    assert len(named_repositories("Code is available at github.com/ada/toys and github.com/ada/more").candidates) == 2


def test_two_tags_of_a_repository_are_none() -> None:
    assert named_repositories(f"{TOYS}/tree/v1 and {TOYS}/tree/v2").candidates == [TOYS]
    assert named_repositories(f"{TOYS} and {TOYS}/tree/v2").candidates == [f"{TOYS}#v2"]

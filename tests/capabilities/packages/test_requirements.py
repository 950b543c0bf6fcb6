"""Requirements from the model never become an option, an index or an unseen address."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.packages.requirements import (
    channel,
    conda_package,
    environment_name,
    feature_name,
    names_asked,
    package_name,
    platform,
    program,
    python_package,
    python_version,
)
from panpan.errors import ToolError

CHECKS = (
    lambda text: python_package(text, lambda path: f"/work/{path}").argument,
    package_name,
    conda_package,
    channel,
    environment_name,
    feature_name,
    python_version,
    platform,
)
HOSTILE = st.one_of(
    st.text(max_size=40),
    st.builds(
        lambda dashes, rest: dashes + rest, st.sampled_from(["-", "--", " -", "\t--", "\u2013"]), st.text(max_size=20)
    ),
    st.sampled_from(
        ["-r x", "--index-url=https://x.org", "x --index-url y", "x\n--pre", "@file", "x;rm", "$(x)", "`x`"]
    ),
    st.from_regex(r"[a-z]{1,5}(==|>=|<)[0-9.]{1,5}", fullmatch=True),
)


@given(HOSTILE)
def test_requirement_never_becomes_an_option(text: str) -> None:
    for check in CHECKS:
        try:
            argument = check(text)
        except ToolError:
            continue

        assert not argument.startswith("-")
        assert argument.isprintable()


@given(HOSTILE)
def test_address_is_always_named_and_secure(text: str) -> None:
    try:
        wanted = python_package(f"x @ {text}", lambda path: path)
    except ToolError:
        return

    assert wanted.named
    assert re.match(r"(git\+)?https://", wanted.address, re.IGNORECASE)


@given(st.lists(HOSTILE, max_size=4))
def test_program_comes_first_in_a_command(words: list[str]) -> None:
    try:
        command = program(words)
    except ToolError:
        return

    assert command == words
    assert not command[0].startswith("-")


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        ("numpy", "numpy"),
        ("numpy >= 2, < 3", "numpy<3,>=2"),
        ("torch[opt]==2.1", "torch[opt]==2.1"),
        ('x>=1; python_version < "3.12"', 'x>=1; python_version < "3.12"'),
        ("./lib[extra]", "/work/lib[extra]"),
        ("git+https://example.org/a/b@v1", "git+https://example.org/a/b@v1"),
        ("b @ git+https://example.org/a/b", "b @ git+https://example.org/a/b"),
    ],
)
def test_requirements_are_passed_on_as_meant(text: str, argument: str) -> None:
    assert python_package(text, lambda path: f"/work/{path}").argument == argument


@pytest.mark.parametrize(
    "text",
    [
        "http://example.org/x.whl",
        "x @ http://example.org/x.whl",
        "x @ file:///etc/passwd",
        "git+ssh://example.org/x",
        "https://user:secret@example.org/x.whl",
        "x @ https://token@example.org/x.whl",
        "numpy pandas",
        "",
    ],
)
def test_insecure_or_unclear_requirement_is_refused(text: str) -> None:
    with pytest.raises(ToolError):
        python_package(text, lambda path: path)


@pytest.mark.parametrize("text", ["numpy", "numpy=2.0", "numpy>=2,<3", "pytorch::pytorch=2.1=py311*", "_libgcc_mutex"])
def test_conda_takes_names_with_versions(text: str) -> None:
    assert conda_package(text) == text


@pytest.mark.parametrize(
    "text", ["numpy[url=https://x.org/a.conda]", "https://x.org/a.conda", "a b c", "x;y", "/a/b.conda"]
)
def test_conda_gets_no_addresses(text: str) -> None:
    with pytest.raises(ToolError):
        conda_package(text)


def test_channel_is_a_name_and_no_address() -> None:
    assert channel("conda-forge/label/dev") == "conda-forge/label/dev"
    with pytest.raises(ToolError, match=re.escape("packages.channels")):
        channel("https://channels.example.org/x")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Py_Yaml[a]>=2; python_version > '3'", {"py-yaml"}), ("pytorch::numpy=1.26", {"numpy"}),
        ("lamp @ https://x.org/", {"lamp"}), ("./lib", set()), ("-e ./lib", set()),
        ("https://example.org/x.whl", set()), ("git+https://example.org/x", set()),
    ],
)  # fmt: skip
def test_requested_names_are_known(text: str, names: set[str]) -> None:
    assert names_asked([text]) == names


@pytest.mark.parametrize("text", ["./link/x.whl ; python_version > '3'", "-e ./lib;extra", "~/a;b"])
def test_path_with_a_condition_is_refused(text: str) -> None:
    with pytest.raises(ToolError, match="name a path without a condition"):
        python_package(text, str)


@pytest.mark.parametrize("text", ["evil-1.0-0.conda", "x::evil-1.0-0.tar.bz2", "Evil.CONDA"])
def test_file_is_no_conda_package(text: str) -> None:
    with pytest.raises(ToolError, match="is a file to conda"):
        conda_package(text)

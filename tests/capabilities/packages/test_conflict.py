"""Reasons why a solver found no answer, read from package managers; `printed/` names the version of each."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from panpan.capabilities.packages.conflict import conflict_in

PRINTED = Path(__file__).parent / "printed"


def printed() -> Iterator[Any]:
    for path in sorted(PRINTED.glob("*.toml")):
        for output in tomllib.loads(path.read_text(encoding="utf-8"))["output"]:
            yield pytest.param(output, id=f"{path.stem} {output['version']}: {output['asked']}")


@pytest.mark.parametrize("output", list(printed()))
def test_conflict_is_understood_in_each_version(output: dict[str, Any]) -> None:
    sentence = str(conflict_in(output["text"]))

    assert [part for part in output["says"] if part not in sentence] == []


LIBMAMBA = """
    error    libmamba Could not solve for environment specs
        The following packages are incompatible
        ├─ lamp 1.0**  is installable and it requires
        │  └─ shelf >=1,<2.0a0 , which can be installed;
        └─ desk is not installable because it requires
           └─ shelf >=2 , which conflicts with any installable versions previously reported.
    critical libmamba Could not solve for environment specs
"""
LIBMAMBA_OPTIONS = """
    Could not solve for environment specs
    The following packages are incompatible
    ├─ lamp 1.2**  is installable with the potential options
    │  ├─ lamp 1.2.0 would require
    │  │  └─ shelf >=3.10,<3.11.0a0 *_cpython, which can be installed;
    │  └─ lamp 1.2.1 would require
    │     └─ shelf >=3.11,<3.12.0a0 , which can be installed;
    └─ pin-1 is not installable because it requires
       └─ shelf 3.9** , which conflicts with any installable versions previously reported.
"""
RATTLER = """
    Error:   \u00d7 failed to solve the conda requirements of 'default' 'linux-64'
      ╰─▶ Cannot solve the request because of: The following packages are incompatible
          ├─ lamp * can be installed with any of the following options:
          │  └─ lamp 1.0 | 1.1 | 1.2 would require
          │     └─ shelf <2, which can be installed with any of the following options:
          │        └─ shelf 1.5
          └─ desk * cannot be installed because there are no viable options:
             └─ desk 1.0 would require
                └─ shelf >=2, which cannot be installed because there are no viable options:
                   └─ shelf 2.0, which conflicts with the versions reported above.
"""
RATTLER_NONE = """
    Error:   \u00d7 failed to solve the conda requirements of 'default' 'linux-64'
      ╰─▶ Cannot solve the request because of: lamp ==0.19.0 cannot be installed because there are no viable options:
          └─ lamp 0.19.0 would require
             └─ shelf_tool 0.* ,>=0.4.1, for which no candidates were found.
"""
CLASSIC = """
    UnsatisfiableError: The following specifications were found to be incompatible with each other:

    Package shelf conflicts for:
    lamp=1.0 -> shelf[version='<2']
    desk -> frame -> shelf[version='>=2']
"""
LEGACY = """
    LibMambaUnsatisfiableError: Encountered problems while solving:
      - package lamp-1.0-py_0 requires shelf <2, but none of the providers can be installed
      - package desk-1.0-py_0 requires shelf >=2, but none of the providers can be installed
"""
PIXI_OF_PYPI = """
    Error:   \u00d7 failed to solve the pypi requirements of 'default' 'linux-64'
      ├─▶ failed to resolve pypi dependencies
      ╰─▶ Because lamp>=1.0 depends on shelf<2 and desk==1.0 depends on shelf>=2, we can conclude that lamp>=1.0 and
          desk==1.0 are incompatible.
          And because you require lamp and desk==1.0, we can conclude that your requirements are unsatisfiable.
"""
NEEDS = {
    "libmamba": (LIBMAMBA, "lamp 1.0 needs shelf>=1,<2.0a0, desk needs shelf>=2"),
    "libmamba with options": (
        LIBMAMBA_OPTIONS,
        "lamp 1.2.0 needs shelf>=3.10,<3.11.0a0 *_cpython, lamp 1.2.1 needs shelf>=3.11,<3.12.0a0, "
        "pin-1 needs shelf==3.9",
    ),
    "rattler": (RATTLER, "lamp 1.0 to 1.2 needs shelf<2, desk 1.0 needs shelf>=2"),
    "classic conda": (CLASSIC, "lamp=1.0 needs shelf<2, desk needs shelf>=2"),
    "conda's first words of libmamba": (LEGACY, "lamp-1.0-py_0 needs shelf<2, desk-1.0-py_0 needs shelf>=2"),
    "pixi, of Python's index": (PIXI_OF_PYPI, "lamp>=1.0 needs shelf<2, desk==1.0 needs shelf>=2"),
}


@pytest.mark.parametrize(("output", "sentence"), NEEDS.values(), ids=NEEDS)
def test_conflict_is_one_sentence_with_both_demands(output: str, sentence: str) -> None:
    conflict = conflict_in(dedent(output))

    assert str(conflict) == sentence


MISSING = {
    "uv, a version": (
        "Because there is no version of shelf==9 and you require shelf==9, we can conclude x.",
        "shelf==9",
    ),
    "uv, a package": ("Because nosuch was not found in the package registry and you require nosuch, we can.", "nosuch"),
    "conda": (
        "The following packages are not available from current channels:\n\n  - nosuch=9\n\nChannels",
        "nosuch=9",
    ),
    "pixi": (
        "  \u00d7 Cannot solve the request because of: No candidates were found for nosuch 1.2.*.\n",
        "nosuch 1.2.",
    ),
    "pixi, beneath": (
        dedent(RATTLER_NONE),
        "lamp 0.19.0 needs shelf_tool==0.*,>=0.4.1; shelf_tool==0.*,>=0.4.1 is not to be had",
    ),
}


@pytest.mark.parametrize(("output", "said"), MISSING.values(), ids=MISSING)
def test_unavailable_package_is_named(output: str, said: str) -> None:
    assert said in str(conflict_in(output))


@pytest.mark.parametrize("output", ["", "ERROR: something else", "├─ a\n└─ b", "x requires y" * 1000])
def test_output_that_is_not_understood_is_no_conflict(output: str) -> None:
    assert conflict_in(output) is None

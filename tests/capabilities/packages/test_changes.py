import pytest

from panpan.capabilities.packages.target import Installed
from panpan.capabilities.packages.undo_log import Changes, difference


def package(name: str, version: str = "1.0") -> Installed:
    return Installed(name=name, version=version)


def test_summary_names_requested_changes_first_and_new_ones_last() -> None:
    before = [package("lamp"), package("numpy"), package("old")]
    after = [package("a-first"), package("b-second"), package("lamp", "2.0"), package("numpy", "2.0"), package("Shelf")]

    changes = difference(before, after)

    assert changes.summary({"shelf"}) == "+ Shelf 1.0, lamp 1.0 → 2.0, numpy 1.0 → 2.0, - old 1.0 and 2 more"
    assert changes.summary() == "lamp 1.0 → 2.0, numpy 1.0 → 2.0, - old 1.0, + a-first 1.0 and 2 more"


@pytest.mark.parametrize("asked", [(), {"lamp"}])
def test_summary_says_that_nothing_changed(asked: set[str]) -> None:
    assert Changes().summary(asked) == "nothing changed"

"""A start is not held up by looking for garbage; what comes after it is looked through again."""

import subprocess
import sys

SCRIPT = """
import gc
from weakref import ref

from panpan.cli.start import begin_collection, delay_collection


class Circle:
    def __init__(self):
        self.itself = self


def made():
    first = ref(Circle())
    kept = [[] for _ in range(50_000)]
    return first() is None


gc.collect()
delay_collection()
during = made()
begin_collection()
frozen = gc.get_freeze_count()
after = made()
begin_collection()
print(during, after, frozen > 0, gc.get_freeze_count() == frozen)
"""


def test_garbage_collection_is_put_off_during_a_start() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False", "True", "True", "True"]

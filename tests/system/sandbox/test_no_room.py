"""A machine on which nothing temporary can be written."""

import subprocess
import sys

FULL = """
import resource
from panpan.errors import ConfigError
from panpan.system.sandbox.command_sandbox import CommandSandbox
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
try:
    CommandSandbox()
except ConfigError as error:
    print(error)
"""


def test_full_disk_is_reported_in_words() -> None:
    ran = subprocess.run([sys.executable, "-c", FULL], capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert "is the disk full? The variable TMPDIR" in ran.stdout

"""What holds for all tests: a slow machine is no failure, and a failure of CI can be had again."""

import os

from hypothesis import settings

settings.register_profile("panpan", deadline=None, derandomize="CI" in os.environ, print_blob=True)
settings.load_profile("panpan")

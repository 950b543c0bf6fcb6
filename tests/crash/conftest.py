from tests.e2e.conftest import prepared

__all__ = ["prepared"]

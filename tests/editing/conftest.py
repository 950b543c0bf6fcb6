from tests.capabilities.files.conftest import workspace

__all__ = ["workspace"]

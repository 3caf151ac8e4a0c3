from tests.haptics.conftest import begin, trace

__all__ = ["begin", "trace"]

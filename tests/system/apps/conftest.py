from tests.apps.bench.conftest import compiled
from tests.system.parallel.apps.view.conftest import live, rows, started, trace, waiting

__all__ = ["compiled", "live", "rows", "started", "trace", "waiting"]

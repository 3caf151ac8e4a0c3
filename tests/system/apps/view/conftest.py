from tests.system.parallel.apps.view.conftest import live, rows, started, trace

__all__ = ["live", "rows", "started", "trace"]

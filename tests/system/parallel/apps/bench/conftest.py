from tests.apps.bench.conftest import compiled, few_rounds, no_compiler, reference

__all__ = ["compiled", "few_rounds", "no_compiler", "reference"]

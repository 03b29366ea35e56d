"""The real runtime under a seeded scheduler: `run_seed(seed)` is one run, repeatable bit for bit."""

from oneturn.testing.evidence import Violation
from oneturn.testing.simulation.run import Run, run_seed

__all__ = ["Run", "Violation", "run_seed"]

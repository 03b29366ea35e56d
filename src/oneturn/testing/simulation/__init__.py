"""The real runtime under a seeded scheduler: `run_seed(seed)` is one run, repeatable bit for bit."""

from oneturn.testing.evidence import Violation
from oneturn.testing.simulation.run import Run, run_seed
from oneturn.testing.simulation.seeds import SimulationFailed, simulate

__all__ = ["Run", "SimulationFailed", "Violation", "run_seed", "simulate"]

"""What tests of an application need: processes that can be crashed, and a simulated world in which they are."""

from oneturn.testing.harness import Harness
from oneturn.testing.simulation import SimulationFailed, simulate

__all__ = ["Harness", "SimulationFailed", "simulate"]

"""An explicit-state model of the core protocol: the design, small enough to be seen whole.

Two processes, one conversation, a few requests, a clock of a few ticks, and everything that may go wrong on the way. `explore`
sees every interleaving, breadth first. A `Switch` plants a design error, which a shortest trace refutes. `conform` holds the steps
of real stores against the same steps of the model. What is explored stands in `configurations`.
"""

from __future__ import annotations

from oneturn.testing.model.configurations import Planted
from oneturn.testing.model.conform import conform
from oneturn.testing.model.explore import Exploration, explore, replay
from oneturn.testing.model.state import Configuration
from oneturn.testing.model.switches import Switch

__all__ = [
    "Configuration",
    "Exploration",
    "Planted",
    "Switch",
    "conform",
    "explore",
    "replay",
]

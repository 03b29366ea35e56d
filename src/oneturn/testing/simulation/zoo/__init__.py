"""The zoo: planted bugs, each a small switchable mutation of the real code that the simulation has to find."""

from oneturn.testing.simulation.zoo.admission import BUGS as _ADMISSION
from oneturn.testing.simulation.zoo.bug import Bug
from oneturn.testing.simulation.zoo.ending import BUGS as _ENDING
from oneturn.testing.simulation.zoo.fencing import BUGS as _FENCING
from oneturn.testing.simulation.zoo.leases import BUGS as _LEASES
from oneturn.testing.simulation.zoo.logs import BUGS as _LOGS
from oneturn.testing.simulation.zoo.queueing import BUGS as _QUEUEING
from oneturn.testing.simulation.zoo.recovering import BUGS as _RECOVERING

__all__ = ["Bug", "ZOO"]  # noqa: RUF022 - sorted plainly, as everywhere

ZOO: tuple[Bug, ...] = (*_FENCING, *_LEASES, *_ADMISSION, *_QUEUEING, *_LOGS, *_ENDING, *_RECOVERING)

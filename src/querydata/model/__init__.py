"""The model: what turns a question into SQL. `port` says how it is asked; the other modules are the adapters."""

from querydata.model.port import (
    Attempt,
    Declined,
    Exchange,
    Model,
    ModelFailed,
    Proposal,
    Request,
    language_of,
)

__all__ = ["Attempt", "Declined", "Exchange", "Model", "ModelFailed", "Proposal", "Request", "language_of"]

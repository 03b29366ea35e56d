"""Who asks and what an execution is called: no two people and no two tenants ever share a name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who asks: stored with the record, so it must be stable (an account id, never a token).

    `claims` are what the handler needs to know of them (a role, a department); they do not name the execution.
    """

    tenant: str
    subject: str
    claims: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The name of one execution: at most one record has it."""

    tenant: str
    subject: str
    scope: str
    key: str

    def request_lock(self) -> str:
        """The lease key that stands for *life*: while it is held, this execution is being admitted or runs."""
        return f"r{_tag(self.tenant, self.scope)}{_joined(self.subject, self.key)}"

    def scope_lock(self) -> str:
        """The lease key that stands for *precedence* in the conversation."""
        return scope_lock(tenant=self.tenant, scope=self.scope)

    def topic(self) -> str:
        """The signal topic on which this execution is announced: admitted, started, ended."""
        return f"k{_joined(self.tenant, self.scope, self.subject, self.key)}"


def scope_lock(*, tenant: str, scope: str) -> str:
    """See `Identity.scope_lock`."""
    return f"s{_tag(tenant, scope)}"


def scope_topic(*, tenant: str, scope: str) -> str:
    """The signal topic on which anything new in a conversation is announced."""
    return f"c{_joined(tenant, scope)}"


def turn_topic(execution_id: str) -> str:
    """The signal topic on which new events of one execution are announced."""
    return f"t{execution_id}"


def stop_topic(execution_id: str) -> str:
    """The signal topic that says: this execution was ended from outside, look whether you may go on."""
    return f"x{execution_id}"


QUEUE_TOPIC = "q"
"""The signal topic that says: something queued may be startable now."""


def _joined(*parts: str) -> str:
    # Length-prefixed, never joined raw: ("a", "b:c") and ("a:b", "c") stay two names.
    return "".join(f"{len(part)}:{part}" for part in parts)


def _tag(*parts: str) -> str:
    # Braces make the hash tag by which a Redis Cluster keeps both keys of a lease on one node; a part may hold none.
    escaped = (part.replace("%", "%25").replace("{", "%7B").replace("}", "%7D") for part in parts)
    return "{" + _joined(*escaped) + "}"

"""What an operator may set, with the defaults of the published promises; impossible combinations are refused here."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Read from the environment with the prefix `ONETURN_`. Durations are seconds."""

    model_config = SettingsConfigDict(env_prefix="ONETURN_", extra="forbid")

    records: str = "sqlite:///oneturn.db"
    """Where records and events live: a URL, such as your DATABASE_URL as it is."""
    leases: str | None = None
    """Where leases live; None: where the records are."""
    ttl: float = Field(default=60, gt=0, allow_inf_nan=False)
    """After how long a crashed process's executions are free for others."""
    renew_every: float = Field(default=20, gt=0, allow_inf_nan=False)
    margin: float = Field(default=2, gt=0, allow_inf_nan=False)
    """How much earlier than the store this process believes a lease to have ended."""
    run_limit: float = Field(default=600, gt=0, allow_inf_nan=False)
    """The most that an execution may take, renewals or not."""
    check_every: float = Field(default=5, gt=0, allow_inf_nan=False)
    """How late a lost signal can make anything: every wait looks at the store this often."""
    sweep_every: float = Field(default=15, gt=0, allow_inf_nan=False)
    grace: float = Field(default=20, ge=0, allow_inf_nan=False)
    """How long a draining process lets running work go on."""
    hard_deadline: float = Field(default=30, gt=0, allow_inf_nan=False)
    """How long after the drain began finalisers may still take."""
    packing: float = Field(default=0.03, ge=0, allow_inf_nan=False)
    """For how long text is gathered before it is stored."""
    queue_limit: int = Field(default=8, ge=0)
    worker_threads: int = Field(default=32, ge=1)
    max_body: int = Field(default=1_048_576, ge=1)
    """Bytes of a request's body."""
    max_event: int = Field(default=262_144, ge=1024)
    """Bytes of one event; larger results belong behind a reference."""
    keep_results: float = Field(default=604_800, gt=0, allow_inf_nan=False)
    keep_tombstones: float = Field(default=2_592_000, gt=0, allow_inf_nan=False)
    keep_events: float = Field(default=86_400, gt=0, allow_inf_nan=False)
    keep_replays: float = Field(default=600, ge=0, allow_inf_nan=False)
    """How long the replay cache may answer; 0 turns it off."""
    keep_payloads: Literal["until_answered", "until_expired"] = "until_expired"
    unknown_handler_after: float = Field(default=300, gt=0, allow_inf_nan=False)
    """After how long a queued turn whose handler no process knows is failed."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.renew_every + self.margin >= self.ttl:
            raise ValueError(
                f"renew_every ({self.renew_every:g} s) plus margin ({self.margin:g} s) must be less than ttl "
                f"({self.ttl:g} s), or every lease lapses before its first renewal: raise ONETURN_TTL or lower "
                "ONETURN_RENEW_EVERY"
            )
        if self.hard_deadline < self.grace:
            raise ValueError(
                f"hard_deadline ({self.hard_deadline:g} s) must not be less than grace ({self.grace:g} s): "
                "raise ONETURN_HARD_DEADLINE or lower ONETURN_GRACE"
            )
        if self.keep_tombstones < self.keep_results:
            raise ValueError(
                "keep_tombstones must not be less than keep_results: a forgotten key would be executed again"
            )
        return self

"""What an operator of QueryData may set; the lists of rights and the engine's settings are elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Read from the environment with the prefix `QUERYDATA_`. Durations are seconds."""

    model_config = SettingsConfigDict(env_prefix="QUERYDATA_", extra="forbid", protected_namespaces=())

    data_dir: Path = Path("var/querydata")
    """Everything that this service writes is below it."""
    model: Literal["embedded", "openai"] = "embedded"
    """The parser that ships with the service, or any endpoint that speaks OpenAI's chat completions."""
    model_base_url: str | None = None
    model_name: str = "gpt-4o-mini"
    model_api_key: SecretStr | None = None
    model_timeout: float = Field(default=60, gt=0)
    statement_timeout: float = Field(default=10, gt=0)
    """The most that one SQL statement may take."""
    max_rows: int = Field(default=500, ge=1)
    access_file: Path | None = None
    """Who may ask what (TOML); None: the one for the demo campus that ships with the service."""
    demo: bool = True
    """Whether the demo accounts, whose passwords are printed, can sign in."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.model == "openai" and self.model_api_key is None:
            raise ValueError(
                "QUERYDATA_MODEL=openai needs QUERYDATA_MODEL_API_KEY (any text, if your endpoint asks for none)"
            )
        return self

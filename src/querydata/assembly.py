"""What the settings stand for: the campus database, made if it is not there, and the model that is asked."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import Path
from typing import Final, get_args

from querydata import campus
from querydata.access import Access, AccessInvalid
from querydata.accounts import Role
from querydata.chain import Source
from querydata.execute import Database
from querydata.model import Model
from querydata.model.embedded import EmbeddedModel
from querydata.model.openai_compatible import OpenAICompatible
from querydata.parser import Values
from querydata.settings import Settings

OPENAI: Final = "https://api.openai.com/v1"


def campus_file(settings: Settings) -> Path:
    """Where the campus database is, or has to be built: another generator means another file."""
    digest = hashlib.sha256()
    for source in sorted(files(campus).iterdir(), key=lambda each: each.name):
        if source.name.endswith((".py", ".sql")):
            digest.update(source.read_bytes())
    return settings.data_dir / f"campus-{digest.hexdigest()[:12]}.db"


def access_of(settings: Settings) -> Access:
    """Who may ask what of the campus; raises AccessInvalid."""
    path = settings.access_file
    try:
        declaration = files("querydata").joinpath("access.toml") if path is None else path
        text = declaration.read_text(encoding="utf8")
    except (OSError, UnicodeError) as error:
        raise AccessInvalid(f"{path} cannot be read: {error}") from error
    return Access.parse(text, schema=campus.TABLES, roles=get_args(Role), name=str(path or "access.toml"))


def campus_source(settings: Settings, path: Path) -> Source:
    """The campus database at `path`, as the chain asks it; raises AccessInvalid."""
    access = access_of(settings)
    database = Database(
        path, statement_timeout=settings.statement_timeout, max_rows=settings.max_rows, tables=campus.TABLES
    )
    return Source(database=database, tables=campus.TABLES, max_rows=settings.max_rows, access=access)


def model_of(settings: Settings, path: Path) -> Model:
    """The model that the settings choose."""
    if settings.model == "openai":
        key = settings.model_api_key
        return OpenAICompatible(
            base_url=settings.model_base_url or OPENAI,
            name=settings.model_name,
            api_key=key.get_secret_value() if key else "",
            reply_within=settings.model_timeout,
        )
    return EmbeddedModel(Values.load(path))

"""Runs the revisions on the connection that `storage.schema` hands over."""

from __future__ import annotations

from alembic import context
from sqlmodel import SQLModel

from storage import tables
from storage.schema import OPTIONS

assert tables.RunRow.metadata is SQLModel.metadata
context.configure(connection=context.config.attributes["connection"], target_metadata=SQLModel.metadata, **OPTIONS)
context.run_migrations()

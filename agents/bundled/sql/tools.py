"""The tools of the agent. Each statement that changes data is allowed by a person first."""

# @guard write_query

import os
import sys

# Packing adds this part of the tools for databases.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "functions", "tools"))

import _atlas
import _sql


def _is_sqlite():
    return _sql.dsn().lower().startswith(("sqlite", "sq:", "file:"))


def read_query(query: str) -> str:
    """Runs one statement that reads, such as SELECT, and returns its rows as CSV.

    Args:
        query: The statement
    """
    return _sql.execute(query, reads=True)


def write_query(query: str) -> str:
    """Runs one statement that changes data or tables.

    Args:
        query: The statement
    """
    return _sql.execute(query)


def list_tables() -> str:
    """Lists the tables and views of the database."""
    if _is_sqlite():
        return _sql.execute("select name, type from sqlite_schema where type in ('table', 'view') and name not like 'sqlite_%' order by 1", reads=True)
    query = "select table_schema, table_name, table_type from information_schema.tables"
    return _sql.execute(f"{query} where table_schema not in ('pg_catalog', 'information_schema') order by 1, 2", reads=True)


def describe_table(table: str) -> str:
    """Shows the columns of a table.

    Args:
        table: The name of the table, in PostgreSQL also with its schema before a dot
    """
    if not table or len(table) > 200 or any(ord(sign) < 32 or sign in "\\;" for sign in table):
        _atlas.fail("that is no name of a table")
    text = lambda name: "'" + name.replace("'", "''") + "'"
    if _is_sqlite():
        return _sql.execute(f"select name, type, \"notnull\", dflt_value, pk from pragma_table_info({text(table)})", reads=True)
    schema, _, name = table.rpartition(".")
    query = "select column_name, data_type, is_nullable, column_default from information_schema.columns"
    place = f" and table_schema = {text(schema)}" if schema else ""
    return _sql.execute(f"{query} where table_name = {text(name)}{place} order by ordinal_position", reads=True)

"""Runs SQL."""

# @guard

import _sql


def run(code: str) -> str:
    """Runs one statement of SQL against the configured database. Returns the rows as CSV, with the names of the columns first.

    Args:
        code: The statement
    """
    return _sql.execute(code)

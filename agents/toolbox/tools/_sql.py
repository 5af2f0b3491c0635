"""What the tools for databases share. The address of the database is the variable `dsn` or `usql_dsn` of the agent: that of a file
of SQLite (`sqlite:PATH`), or of a server of PostgreSQL (`postgres://USER:PASSWORD@HOST/NAME`), which needs the program psql; for
others, the program usql."""

import csv
import io
import os
import re
import shutil
import sqlite3
import time
import urllib.parse

import _atlas

ROWS_MAX = 1000
SECONDS_MAX = 60
READS = ("select", "with", "values", "explain", "show", "describe", "table")


def dsn():
    address = _atlas.setting("DSN") or _atlas.setting("USQL_DSN")
    if not address:
        _atlas.fail("no database is configured: set the variable dsn of the agent")
    return address


def words(code):
    """A statement without comments and texts, in lower case: to look at, and never to run."""
    code = re.sub(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", "''", code)
    return re.sub(r"--[^\n]*|/\*.*?\*/", " ", code, flags=re.DOTALL).strip().lower()


def execute(code, reads=False):
    """Runs one statement. With `reads`, one that changes data is refused, by the database itself as well."""
    if not isinstance(code, str) or "\0" in code or len(code) > 100_000:
        _atlas.fail("the statement has more than 100000 characters, or a zero byte")
    seen = words(code)
    if not seen:
        _atlas.fail("there is no statement")
    if "\\" in seen:
        _atlas.fail("commands of the program for databases, such as \\!, are not SQL")
    if reads and not seen.startswith(READS):
        _atlas.fail("only statements that read are allowed here: " + ", ".join(READS))
    if reads and ";" in seen.rstrip("; \n\t\r"):
        _atlas.fail("only one statement at a time is allowed here")
    address = dsn()
    scheme = address.split(":", 1)[0].lower()
    if scheme in ("sqlite", "sqlite3", "sq", "file"):
        return in_sqlite(address.split(":", 1)[1], code, reads)
    if scheme in ("postgres", "postgresql", "pg") and shutil.which("psql"):
        return in_postgresql(address, code, reads)
    if shutil.which("usql") and not reads:
        return ended(*_atlas.run(["usql", "--no-init", "--csv", "--command", code, address], seconds=SECONDS_MAX))
    _atlas.fail(f"databases of the kind {scheme!r} cannot be used here: the worker has no program for them")


def in_sqlite(path, code, reads):
    path = "/" + path.lstrip("/") if path.startswith("///") else path.removeprefix("//")
    if path == ":memory:":
        address = "file::memory:"
    else:
        path = os.path.join(_atlas.root(), path)
        if not os.path.isfile(path):
            _atlas.fail(f"the database {_atlas.shown(path)} does not exist")
        address = f"file:{urllib.parse.quote(os.path.realpath(path))}?mode={'ro' if reads else 'rw'}"
    database = sqlite3.connect(address, uri=True, timeout=10, isolation_level=None)
    until = time.monotonic() + SECONDS_MAX
    database.set_progress_handler(lambda: time.monotonic() > until, 10_000)
    # A model that could attach files could read all databases of the worker.
    attaches = (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH)
    database.set_authorizer(lambda action, *_: sqlite3.SQLITE_DENY if action in attaches else sqlite3.SQLITE_OK)
    try:
        cursor = database.execute(code)
        rows = cursor.fetchmany(ROWS_MAX + 1)
    except (sqlite3.Error, sqlite3.Warning) as error:
        _atlas.fail(f"the database refused the statement: {error}")
    if cursor.description is None:
        return f"done: {max(cursor.rowcount, 0)} rows changed"
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(column[0] for column in cursor.description)
    for row in rows[:ROWS_MAX]:
        writer.writerow(f"({len(value)} bytes)" if isinstance(value, bytes) else value for value in row)
    more = f"(more than {ROWS_MAX} rows: add a LIMIT)\n" if len(rows) > ROWS_MAX else ""
    return _atlas.cut(written.getvalue() + more)


def in_postgresql(address, code, reads):
    parts = urllib.parse.urlsplit(address)
    environment = dict(os.environ)
    if parts.password:
        # Arguments of programs can be seen by others on the machine.
        environment["PGPASSWORD"] = urllib.parse.unquote(parts.password)
        place = parts.netloc.rsplit("@", 1)[1]
        parts = parts._replace(netloc=f"{parts.username or ''}@{place}")
    parts = parts._replace(scheme="postgresql")
    options = f"-c statement_timeout={SECONDS_MAX}s"
    environment["PGOPTIONS"] = f"{options} -c default_transaction_read_only=on" if reads else options
    environment["PGCONNECT_TIMEOUT"] = "10"
    # A statement after -c goes to the server as it is, unless it begins with a backslash, which was refused.
    command = ["psql", "-X", "-q", "-w", "--csv", "-v", "ON_ERROR_STOP=1", "-c", code, urllib.parse.urlunsplit(parts)]
    return ended(*_atlas.run(command, seconds=SECONDS_MAX + 20, environment=environment))


def ended(status, text):
    if status is None:
        _atlas.fail(f"the statement took longer than {SECONDS_MAX} s")
    if status != 0:
        _atlas.fail(f"the database refused the statement: {text.strip()}")
    return text or "done"

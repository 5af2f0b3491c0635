"""What the tools for databases share. The address of the database is the variable `dsn` or `usql_dsn` of the agent: that of a file
of SQLite (`sqlite:PATH`), or of a server of PostgreSQL (`postgres://USER:PASSWORD@HOST/NAME`), which needs the program psql; for
others, the program usql.

Statements that read cannot write, because the database refuses it. They can still call what the role may call, such as
pg_read_file: a role that may only read is the real protection.
"""

import csv
import io
import json
import os
import re
import secrets
import shutil
import sqlite3
import sys
import tempfile
import threading
import time
import urllib.parse

import _atlas

ROWS_MAX = 1000
SECONDS_MAX = 60
# Bytes of one value, and of the memory in which SQLite works.
VALUE_MAX = 8 << 20
MEMORY_MAX = 1 << 30
READS = ("select", "with", "values", "explain", "show", "describe", "table")
# A comment of PostgreSQL ends at a carriage return, too.
COMMENTS_AND_TEXTS = re.compile(r"--[^\n\r]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", re.DOTALL)
# User, password, place, name and options. What belongs to none of them, such as a password with an @, is an error.
SERVER = re.compile(r"\w+://(?:([^:@/?#]*)(?::([^@/?#]*))?@)?([^@/?#]*)(/[^@?#]*)?(?:\?([^@#]*))?")


def dsn():
    address = _atlas.setting("DSN") or _atlas.setting("USQL_DSN")
    if not address:
        _atlas.fail("no database is configured: set the variable dsn of the agent")
    return address


def words(code):
    """A statement without comments and texts, in lower case: to look at, and never to run."""
    return COMMENTS_AND_TEXTS.sub(lambda found: " " if found[0][0] in "-/" else "''", code).strip().lower()


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
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):", address)
    if not scheme:
        # The text is not shown: it may have a password.
        _atlas.fail("the variable dsn is no address; it has the form sqlite:PATH or postgres://USER:PASSWORD@HOST/NAME")
    scheme = scheme[1].lower()
    if scheme in ("sqlite", "sqlite3", "sq", "file"):
        return in_sqlite(address.split(":", 1)[1], code, reads)
    if scheme in ("postgres", "postgresql", "pg") and shutil.which("psql"):
        return in_postgresql(address, code, reads)
    if shutil.which("usql") and not reads:
        return in_other(address, code)
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
    bound(database)
    written, more = io.StringIO(), ""
    try:
        cursor = database.execute(code)
        if cursor.description is None:
            return f"done: {max(cursor.rowcount, 0)} rows changed"
        writer = csv.writer(written, lineterminator="\n")
        writer.writerow(column[0] for column in cursor.description)
        for number, row in enumerate(cursor):
            if number == ROWS_MAX or written.tell() > _atlas.TEXT_MAX:
                more = f"(more than {number} rows: add a LIMIT)\n"
                break
            writer.writerow(f"({len(value)} bytes)" if isinstance(value, bytes) else value for value in row)
    except (sqlite3.Error, sqlite3.Warning, MemoryError) as error:
        _atlas.fail(f"the database refused the statement: {error or 'it needs too much memory'}")
    return _atlas.cut(written.getvalue()) + more


def bound(database):
    """Bounds the memory of SQLite, and its time where its own handler is not asked: in the middle of a function."""
    _atlas.limit_memory(MEMORY_MAX)
    if hasattr(database, "setlimit"):
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_MAX)

    def end():
        print(f"the statement took longer than {SECONDS_MAX} s", file=sys.stderr, flush=True)
        os._exit(1)

    timer = threading.Timer(SECONDS_MAX + 1, end)
    timer.daemon = True
    timer.start()


def in_postgresql(address, code, reads):
    parts = SERVER.fullmatch(address)
    if not parts:
        _atlas.fail("the variable dsn is no address of PostgreSQL; signs such as @ in a password are written as %40")
    user, password, place, name, options = (part or "" for part in parts.groups())
    # Arguments of programs can be seen by others on the machine.
    options = [option.partition("=") for option in options.split("&") if option]
    password = ([value for option, _, value in options if option == "password"] or [password])[0]
    options = "&".join("".join(option) for option in options if option[0] != "password")
    environment = dict(os.environ)
    if password:
        environment["PGPASSWORD"] = urllib.parse.unquote(password)
    address = f"postgresql://{f'{user}@' if user else ''}{place}{name}{f'?{options}' if options else ''}"
    environment["PGOPTIONS"] = f"-c statement_timeout={SECONDS_MAX}s"
    environment["PGCONNECT_TIMEOUT"] = "10"
    environment["PGCLIENTENCODING"] = "UTF8"
    # What follows -c goes to the server as it is, unless it begins with a backslash, which was refused.
    command = ["psql", "-X", "-q", "-w", "--csv", "-v", "ON_ERROR_STOP=1", "-v", "SHOW_CONTEXT=never"]
    if reads:
        environment["PGOPTIONS"] += " -c default_transaction_read_only=on"
        code = one_that_reads(code)
    text = ended(*_atlas.run([*command, "-c", code, address], seconds=SECONDS_MAX + 20, environment=environment), [password])
    return text + (f"(no more than {ROWS_MAX + 1} rows are read: add a LIMIT)\n" if reads and text.count("\n") > ROWS_MAX else "")


def one_that_reads(code):
    """Statements that give the rows of another one. The server itself parses that one, and opens no cursor for several statements,
    for the end of a transaction or for a change of a setting. So nothing leaves the transaction, which can only read."""
    tag = f"atlas_{secrets.token_hex(8)}"
    open_it = f"declare opened refcursor := '{tag}'; begin open opened for execute ${tag}$\n{code}\n${tag}$; end"
    return f"begin read only; do ${tag}_${open_it}${tag}_$; fetch {ROWS_MAX + 1} from {tag}; commit"


def in_other(address, code):
    """The address is in a file that only the worker's user can read, because arguments can be seen by others."""
    # Databases differ in where a text ends, and the program runs commands of a shell after a backslash.
    if "\\" in code:
        _atlas.fail("statements with a backslash cannot be used with this kind of database")
    file = tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8")
    with file:
        json.dump({"connections": {"atlas": address}}, file)
        file.flush()
        command = ["usql", "--no-init", "--config", file.name, "--csv", "--command", code, "atlas"]
        return ended(*_atlas.run(command, seconds=SECONDS_MAX), re.findall(r"://[^:/@]*:(.+)@", address))


def ended(status, text, hidden):
    """What a program said. An error is shown without the passwords."""
    if status is None:
        _atlas.fail(f"the statement took longer than {SECONDS_MAX} s")
    if status != 0:
        for password in {form for one in hidden for form in (one, urllib.parse.unquote(one)) if form}:
            text = text.replace(password, "***")
        _atlas.fail(f"the database refused the statement: {text.strip()}")
    return text or "done"

"""Tells the time."""

import datetime


def run() -> str:
    """Tells the current date and time, in the time zone of the machine and in UTC."""
    now = datetime.datetime.now().astimezone()
    return f"{now:%A} {now.isoformat(timespec='seconds')} ({now.astimezone(datetime.timezone.utc):%Y-%m-%dT%H:%M:%SZ})"

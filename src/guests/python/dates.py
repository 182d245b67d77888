# SPDX-License-Identifier: Apache-2.0
"""Small questions about dates that code around tools keeps asking.

    [c for c in github.list_commits() if is_last_week(c["date"])]

A date is a datetime, a date, ISO 8601 text, or a Unix time in seconds or milliseconds. What has no
time zone is UTC. What is no date is never last week.
"""

import datetime

_UTC = datetime.timezone.utc
_MILLISECONDS = 1e11  # as seconds that is the year 5138


def to_datetime(value):
    if isinstance(value, datetime.datetime):
        moment = value
    elif isinstance(value, datetime.date):
        moment = datetime.datetime(value.year, value.month, value.day)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        seconds = value / 1000 if abs(value) > _MILLISECONDS else value
        moment = datetime.datetime.fromtimestamp(seconds, _UTC)
    else:
        moment = datetime.datetime.fromisoformat(str(value).strip().replace("Z", "+00:00"))
    return moment if moment.tzinfo else moment.replace(tzinfo=_UTC)


def days_ago(value):
    """How many days have passed since then; negative for what is still to come."""
    return (datetime.datetime.now(_UTC) - to_datetime(value)).total_seconds() / 86400


def _is_within(value, days):
    try:
        return 0 <= days_ago(value) <= days
    except (TypeError, ValueError, OverflowError, OSError):
        return False


def is_last_week(value):
    """In the seven days up to now."""
    return _is_within(value, 7)


def is_last_month(value):
    """In the thirty days up to now."""
    return _is_within(value, 30)


HELPERS = {"days_ago": days_ago, "is_last_week": is_last_week, "is_last_month": is_last_month}

"""Dates as models write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from runner.memory.dates import moment, period


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2023", "2023-01-01", "2023-12-31 23:59"),
        ("2023-05", "2023-05-01", "2023-05-31 23:59"),
        ("2024/2", "2024-02-01", "2024-02-29 23:59"),
        ("2023-12", "2023-12-01", "2023-12-31 23:59"),
        ("2023-05-07", "2023-05-07", "2023-05-07 23:59"),
        ("2023.5.7", "2023-05-07", "2023-05-07 23:59"),
        ("20230507", "2023-05-07", "2023-05-07 23:59"),
        ("7 May 2023", "2023-05-07", "2023-05-07 23:59"),
        ("the 7th of May, 2023", "2023-05-07", "2023-05-07 23:59"),
        ("Sunday, May 7th, 2023", "2023-05-07", "2023-05-07 23:59"),
        ("Sept 2023", "2023-09-01", "2023-09-30 23:59"),
        ("2023年5月7日", "2023-05-07", "2023-05-07 23:59"),
        ("2023年5月", "2023-05-01", "2023-05-31 23:59"),
        ("2023-05-07T14:30:00Z", "2023-05-07 14:30", "2023-05-07 14:30"),
        ("2023-05-07T14:30:00+02:00", "2023-05-07 12:30", "2023-05-07 12:30"),
        ("2023-05-07 14:30", "2023-05-07 14:30", "2023-05-07 14:30"),
        ("1:56 pm on 8 May, 2023", "2023-05-08 13:56", "2023-05-08 13:56"),
        ("8 May 2023 at 12 am", "2023-05-08", "2023-05-08"),
        ("1683417600", "2023-05-07", "2023-05-07"),
    ],
)
def test_a_text_names_a_period(text: str, start: str, end: str) -> None:
    """A moment, or a day, month or year up to its last moment; without a zone it is UTC."""
    found = period(text)
    assert (moment(found.start), moment(found.end)) == (start, end)
    assert found.start <= found.end


def test_a_period_ends_right_before_the_next() -> None:
    """The end of a day is less than a second from the next day."""
    after = datetime(2023, 5, 8, tzinfo=UTC).timestamp()
    assert 0 < after - period("2023-05-07").end < 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "May",
        "2023-13",
        "2023-02-30",
        "5/7/2023",
        "2023-05-07 25:00",
        "Foo 7, 2023",
        "13 pm 7 May 2023",
    ],
)
def test_what_is_no_date_is_refused(text: str) -> None:
    """Also what may mean two days; the error has examples."""
    with pytest.raises(ValueError, match=r"is no date.*2023-05-07"):
        period(text)


def test_moments_that_no_calendar_has() -> None:
    """They are told as numbers."""
    assert moment(1e18) == "1000000000000000000"

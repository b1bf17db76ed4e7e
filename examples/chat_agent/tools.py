"""What the agent can do: calendar arithmetic, which models are bad at."""

from __future__ import annotations

from datetime import date

from graphagent.agents import tool


@tool(reentrant=True)
async def days_between(start: date, end: date) -> int:
    """Count the days from one date to another; negative if the second comes first.

    Args:
        start: ISO date, such as 2026-01-31
        end: ISO date
    """
    return (end - start).days


@tool(reentrant=True)
async def weekday(day: date) -> str:
    """Say which day of the week a date is.

    Args:
        day: ISO date, such as 2026-01-31
    """
    return f"{day:%A}"

"""Stored forms of single values that JSON has no form for: dates and times, numbers, bytes, identifiers.

A date-time is `[text, fold, zone]`: its clock face in ISO 8601 without offset, the repeated-hour flag (PEP 495), and
the zone: None, a zone's key in the IANA database, or a fixed offset in microseconds. The clock face is what a user
set; offsets follow from the database, which may change between saving and loading.
"""

from __future__ import annotations

import base64
import ipaddress
import pathlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic import ByteSize
from pydantic_core import TzInfo

from graphagent.checkpoint.refusal import Refused, class_name, shown

_MICROSECOND = timedelta(microseconds=1)
_MALFORMED = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, OSError)


@dataclass(frozen=True, slots=True)
class Scalar:
    """How values of exactly one class are stored; `tag` names the class in a field of type Any.

    `form` is the class of the plain data.
    """

    tag: str
    cls: type
    form: type
    encode: Callable[[Any], Any]
    build: Callable[[Any], Any]

    def decode(self, plain: Any) -> Any:
        """The value. Raises Refused if `plain` is not what `encode` makes."""
        try:
            return self.build(plain)
        except _MALFORMED as error:
            raise Refused(f"stored {shown(plain)} is no '{class_name(self.cls)}' ({error})") from error


def _zone(zone: tzinfo | None) -> Any:
    if zone is None:
        return None
    if type(zone) is ZoneInfo and zone.key is not None:
        return zone.key
    if type(zone) is timezone:
        fixed, name = zone.utcoffset(None), zone.tzname(None)
        return fixed // _MICROSECOND if name == timezone(fixed).tzname(None) else [fixed // _MICROSECOND, name]
    if type(zone) is TzInfo and (offset := zone.utcoffset(None)) is not None:
        # what pydantic puts into a date-time that it read from text: a fixed offset under a class of its own
        return {"pydantic": int(offset.total_seconds())}
    raise Refused(
        f"its time zone is of class '{class_name(type(zone))}'; use 'zoneinfo.ZoneInfo' with a key or a fixed offset"
    )


def _build_zone(plain: Any) -> tzinfo | None:
    if plain is None:
        return None
    if type(plain) is str:
        return ZoneInfo(plain)
    if type(plain) is list:
        return timezone(plain[0] * _MICROSECOND, plain[1])
    if type(plain) is dict:
        return TzInfo(plain["pydantic"])
    return timezone(plain * _MICROSECOND)


def _moment(value: datetime | time) -> list[Any]:
    return [value.replace(tzinfo=None).isoformat(), value.fold, _zone(value.tzinfo)]


def _build_datetime(plain: Any) -> datetime:
    text, fold, zone = plain
    return datetime.fromisoformat(text).replace(tzinfo=_build_zone(zone), fold=fold)


def _build_time(plain: Any) -> time:
    text, fold, zone = plain
    return time.fromisoformat(text).replace(tzinfo=_build_zone(zone), fold=fold)


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def _build_bytes(plain: Any) -> bytes:
    return base64.b64decode(plain, validate=True)


SCALARS: dict[type, Scalar] = {
    scalar.cls: scalar
    for scalar in (
        Scalar("bytes", bytes, str, _base64, _build_bytes),
        Scalar("bytearray", bytearray, str, _base64, lambda plain: bytearray(_build_bytes(plain))),
        Scalar("datetime", datetime, list, _moment, _build_datetime),
        Scalar("date", date, str, date.isoformat, date.fromisoformat),
        Scalar("time", time, list, _moment, _build_time),
        Scalar("timedelta", timedelta, int, lambda value: value // _MICROSECOND, lambda plain: plain * _MICROSECOND),
        Scalar("decimal", Decimal, str, str, Decimal),
        Scalar("uuid", UUID, str, str, UUID),
        Scalar("complex", complex, list, lambda value: [value.real, value.imag], lambda plain: complex(*plain)),
    )
}
"""The scalars that a field of type Any may hold, by exact class."""

_TEXT_CLASSES: tuple[type, ...] = (
    pathlib.PurePosixPath,
    pathlib.PureWindowsPath,
    ipaddress.IPv4Address,
    ipaddress.IPv6Address,
    ipaddress.IPv4Network,
    ipaddress.IPv6Network,
    ipaddress.IPv4Interface,
    ipaddress.IPv6Interface,
)


def declared_scalar(cls: type) -> Scalar | None:
    """The scalar for a field declared as `cls`, or None: those of Any, and classes that their own text rebuilds.

    A field declared `Path` holds the class of path that this system uses.
    """
    if cls in SCALARS:
        return SCALARS[cls]
    if cls in (pathlib.Path, pathlib.PurePath):
        cls = type(cls())
    if cls in _TEXT_CLASSES or issubclass(cls, pathlib.Path) or _is_url(cls):
        return Scalar(cls.__name__, cls, str, str, cls)
    if cls is ByteSize:
        return Scalar(cls.__name__, cls, int, int, cls)
    return None


def _is_url(cls: type) -> bool:
    """True for pydantic's urls. Their module costs half a megabyte and is loaded only by those who declare one."""
    networks = sys.modules.get("pydantic.networks")
    return networks is not None and issubclass(cls, networks.AnyUrl)

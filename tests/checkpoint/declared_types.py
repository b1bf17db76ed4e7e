"""Classes and aliases that the tests of plans declare fields with."""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, ClassVar, Generic, NamedTuple, NewType, NotRequired, TypedDict, TypeVar
from uuid import UUID

import pydantic
from pydantic import BaseModel, Field, PrivateAttr, RootModel, SecretBytes, SecretStr
from typing_extensions import TypeAliasType

T = TypeVar("T")
DAY = date(2026, 11, 30)


class Colour(enum.Enum):
    RED = 1
    CRIMSON = RED
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1


class Access(enum.IntFlag):
    READ = 1
    WRITE = 2
    ALL = 3


class Animal(BaseModel):
    name: str = "?"


class Dog(Animal):
    barks: bool = True


class Cat(BaseModel):
    lives: int


class Node(BaseModel):
    value: int
    next: Node | None = None
    kids: list[Node] = []


class Loose(BaseModel, extra="allow", frozen=True):
    a: int = 1


class Counting(BaseModel):
    base: int
    log: list[str] = Field(default_factory=list, exclude=True)
    _seen: dict[date, int] = PrivateAttr(default_factory=dict)
    _never: int
    made: ClassVar[int] = 0

    def model_post_init(self, _context: Any) -> None:
        Counting.made += 1

    @pydantic.field_validator("base")
    @classmethod
    def _double(cls, value: int) -> int:
        return value * 2

    @pydantic.computed_field
    @functools.cached_property
    def total(self) -> int:
        return self.base + 1


class Late(BaseModel):
    later: Later
    _hidden: Nowhere = PrivateAttr(default_factory=lambda: [1])  # noqa: F821


class Later(BaseModel):
    day: date


@dataclass
class Empty:
    pass


class Generics(BaseModel, Generic[T]):
    item: T


class Ids(RootModel[list[UUID]]):
    pass


@dataclass
class Computed:
    width: int
    when: datetime | None = None
    area: int = field(init=False)
    tags: list[str] = field(default_factory=list, kw_only=True)
    made: ClassVar[int] = 0

    def __post_init__(self) -> None:
        Computed.made += 1
        self.area = self.width * self.width


@dataclass(frozen=True, slots=True)
class Point(Generic[T]):
    x: T
    rest: Point[T] | None = None


@dataclass(frozen=True)
class DayPoint(Point[date]):
    note: str = ""


@dataclass
class Slotted:
    __slots__ = ("cache", "n")
    n: int

    def __post_init__(self) -> None:
        self.cache = self.n


@pydantic.dataclasses.dataclass
class Checked:
    n: int
    inner: list[Checked] = field(default_factory=list)


class Place(NamedTuple):
    street: str
    day: date = DAY


class Movie(TypedDict):
    title: str
    day: NotRequired[date]


class Wide(TypedDict, total=False):
    __pydantic_config__ = pydantic.ConfigDict(extra="allow")
    a: bytes


class Login(BaseModel):
    user: str
    password: SecretStr
    keys: list[SecretBytes] = []


@dataclass
class Failure(Exception):
    code: int = 0


def stray() -> Computed:
    """A dataclass instance with an attribute that is no field."""
    value = Computed(1)
    value.cache = 1
    return value


def pseudo_member() -> Colour:
    """An object of an enum's class that is no member of it."""
    member = object.__new__(Colour)
    member._name_ = "RED"
    return member


def half() -> Computed:
    """A dataclass instance whose fields were never set."""
    return object.__new__(Computed)


def local_class() -> Any:
    """A class whose annotations name a class that only this function knows, and an instance of it."""

    @dataclass
    class Inner:
        pass

    @dataclass
    class Outer:
        inner: Inner

    return Outer, Outer(Inner())


UserId = NewType("UserId", int)
Tree = TypeAliasType("Tree", "dict[str, Tree] | date")
Two = TypeAliasType("Two", tuple[T, T], type_params=(T,))

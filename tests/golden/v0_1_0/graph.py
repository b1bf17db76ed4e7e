"""The graphs that wrote the golden runs of release 0.1.0.

Later releases load this file and those runs as they are. Do not edit it: a change belongs into the folder of a release
to come.
"""

from __future__ import annotations

import dataclasses
import math
import os
import typing
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntFlag, StrEnum
from typing import Annotated, Any
from uuid import UUID
from zoneinfo import ZoneInfo

import anyio
from pydantic import BaseModel
from typing_extensions import TypedDict

from graphagent import (
    END,
    Command,
    CompiledGraph,
    Message,
    NodeContext,
    RemoveMessage,
    Send,
    StateGraph,
    ToolCall,
    Transient,
    add,
    append,
    merge,
    messages,
    union,
)


@dataclasses.dataclass
class World:
    """What nodes meet, as `context` of a run; never stored.

    `ran`: what was done, in order. `fails`: nodes that raise. `dies`: the node, or the effect, in which the process
    ends; it waits a moment, so that what runs beside it has ended. `waits`: the node that never ends by itself, and
    sets `reached`.
    """

    ran: list[str] = dataclasses.field(default_factory=list)
    fails: frozenset[str] = frozenset()
    dies: str = ""
    waits: str = ""
    reached: anyio.Event = dataclasses.field(default_factory=anyio.Event)


async def meet(ctx: NodeContext, name: str) -> None:
    """Note that something is being done, and do what the world has in store for it."""
    world: World = ctx.context
    world.ran.append(name)
    if name in world.fails:
        raise ConnectionError(f"'{name}' can't be reached")
    if name == world.dies:
        await anyio.sleep(0.5)
        os._exit(9)
    if name == world.waits:
        world.reached.set()
        await anyio.sleep_forever()


def work(name: str, **update: Any) -> Callable[..., Any]:
    """A node that notes itself in the log."""

    async def node(state: Any, ctx: NodeContext) -> dict[str, Any]:
        await meet(ctx, name)
        return {"log": [name], **update}

    return node


# -- an order: checks side by side, a join, a question, effects -----------------------------------


class Line(BaseModel):
    """A line of an order."""

    sku: str
    price: Decimal
    due: datetime | None = None


class Order(BaseModel):
    """A field for each merge rule; `order_id` is required, `scratch` is never stored."""

    order_id: str
    log: Annotated[list[str], append] = []
    total: Annotated[int, add] = 0
    checks: Annotated[dict[str, bool], merge] = {}
    seen: Annotated[set[str], union] = set()
    chat: Annotated[list[Message], messages] = []
    lines: list[Line] = []
    approved: str = ""
    receipt: dict[str, Any] | None = None
    scratch: Transient[int] = 0


LINES = [
    Line(sku="A-1", price=Decimal("10.50"), due=datetime(2026, 11, 30, 12, tzinfo=ZoneInfo("Europe/Berlin"))),
    Line(sku="B-2", price=Decimal("1E+3")),
]


async def load(state: Order, ctx: NodeContext) -> dict[str, Any]:
    """Read the order."""
    await meet(ctx, "load")
    call = ToolCall(id="c1", name="stock", arguments={"sku": "A-1"})
    chat = [Message.user("order", id="m1"), Message.assistant("looking", id="m2", tool_calls=(call,))]
    return {"log": ["load"], "lines": LINES, "seen": {"A-1"}, "chat": chat, "scratch": 7}


def check(name: str) -> Callable[..., Any]:
    """One of the checks that run side by side."""

    async def node(state: Order, ctx: NodeContext) -> dict[str, Any]:
        await meet(ctx, name)
        return {"log": [name], "total": 1, "checks": {name: True}, "seen": {name}}

    return node


async def judge(state: Order, ctx: NodeContext) -> dict[str, Any]:
    """Where the checks meet."""
    await meet(ctx, "judge")
    return {"log": ["judge"], "chat": [RemoveMessage(remove="m2"), Message.tool("3", "c1", id="m3")]}


async def pay(state: Order, ctx: NodeContext) -> dict[str, Any]:
    """Charge the card: an effect without any guard."""

    async def charge(sku: str) -> dict[str, Any]:
        await meet(ctx, "charge")
        return {"sku": sku, "amount": 1010.5}

    receipt = await ctx.step("charge", charge, state.lines[0].sku)
    await meet(ctx, "pay")
    return {"log": ["pay"], "receipt": receipt}


async def report(state: Order, ctx: NodeContext) -> dict[str, Any]:
    """Tell the customer: an effect that may be repeated."""

    async def mail() -> str:
        await meet(ctx, "mail")
        return "sent"

    sent = await ctx.step("mail", mail, idempotent=True)
    await meet(ctx, "report")
    return {"log": [f"report {sent}"]}


def order() -> CompiledGraph:
    """load -> stock, price, credit -> judge -> approve -> pay or not -> report."""
    builder = StateGraph(Order, name="order").add_node("load", load).set_entry_point("load")
    for name in ("stock", "price", "credit"):
        builder.add_node(name, check(name)).add_edge("load", name)
    builder.add_node("judge", judge).add_join_edge(("stock", "price", "credit"), "judge")
    builder.add_interrupt_node("approve", prompt=lambda s: {"pay": s.total}, answer_type=str, writes="approved")
    builder.add_edge("judge", "approve")
    builder.add_node("pay", pay).add_node("report", report)
    builder.add_conditional_edges("approve", lambda s: s.approved, {"yes": "pay", "no": "report"})
    return builder.add_edge("pay", "report").add_edge("report", END).compile()


# -- child graphs -------------------------------------------------------------------------------


class Text(BaseModel):
    """What parents and children share."""

    log: Annotated[list[str], append] = []
    text: str = ""
    reviews: Annotated[dict[str, str], merge] = {}


def child() -> CompiledGraph:
    """draft -> review, which asks in its body -> polish."""

    async def review(state: Text, ctx: NodeContext) -> dict[str, Any]:
        await meet(ctx, "review")
        stamp = await ctx.step("stamp", lambda: 42)
        answer = await ctx.interrupt("verdict", {"stamp": stamp}, str)
        return {"log": [f"review {answer}"], "reviews": {ctx.namespace.split("@")[0]: answer}}

    builder = StateGraph(Text, name="child").add_node("draft", work("draft")).add_node("review", review)
    builder.add_node("polish", work("polish", text="polished")).set_entry_point("draft")
    return builder.add_edge("draft", "review").add_edge("review", "polish").add_edge("polish", END).compile()


def parent() -> CompiledGraph:
    """prepare -> child -> publish."""
    builder = StateGraph(Text, name="parent").add_node("prepare", work("prepare")).set_entry_point("prepare")
    builder.add_subgraph_node("inner", child()).add_node("publish", work("publish"))
    return builder.add_edge("prepare", "inner").add_edge("inner", "publish").add_edge("publish", END).compile()


def grandparent() -> CompiledGraph:
    """open -> a parent with a child -> close."""
    builder = StateGraph(Text, name="grandparent").add_node("open", work("open")).set_entry_point("open")
    builder.add_subgraph_node("outer", parent()).add_node("close", work("close"))
    return builder.add_edge("open", "outer").add_edge("outer", "close").add_edge("close", END).compile()


class Twin(BaseModel):
    """The state of a graph with two children side by side."""

    log: Annotated[list[str], append] = []
    reviews: Annotated[dict[str, str], merge] = {}


def twins() -> CompiledGraph:
    """left and right are the same child, and meet in close."""
    builder = StateGraph(Twin, name="twins").add_node("close", work("close"))
    for side in ("left", "right"):
        builder.add_subgraph_node(side, child(), input_mapper=lambda s: {})
    builder.set_entry_point("left", "right").add_join_edge(("left", "right"), "close")
    return builder.add_edge("close", END).compile()


# -- fan-out ------------------------------------------------------------------------------------


class Fan(BaseModel):
    """Items, and what came of each."""

    log: Annotated[list[str], append] = []
    items: list[int] = [1, 2, 3, 4]
    item: int = 0
    asks: int = 0
    sizes: Annotated[dict[int, tuple[int, str]], merge] = {}


async def measure(state: Fan, ctx: NodeContext) -> dict[str, Any]:
    """One item; it may ask."""
    await meet(ctx, f"measure {state.item}")
    size = 10 * state.item
    if state.item == state.asks:
        size = await ctx.interrupt("size", f"how big is {state.item}?", int)
    return {"log": [f"measure {state.item}"], "sizes": {state.item: (size, "cm")}}


def fan() -> CompiledGraph:
    """split -> a Send with an overlay an item -> measure -> join -> collect."""

    async def split(state: Fan, ctx: NodeContext) -> list[Send]:
        await meet(ctx, "split")
        return [Send("measure", {"item": item}) for item in state.items]

    builder = StateGraph(Fan, name="fan").add_node("split", split, destinations=["measure"]).set_entry_point("split")
    builder.add_node("measure", measure).add_node("collect", work("collect")).add_join_edge(["measure"], "collect")
    return builder.add_edge("collect", END).compile()


def mapped() -> CompiledGraph:
    """The same by a map node."""
    builder = StateGraph(Fan, name="mapped").add_node("measure", measure).add_node("collect", work("collect"))
    builder.add_map_node("each", "measure", over="items", item_key="item", collect="collect")
    return builder.set_entry_point("each").add_edge("collect", END).compile()


# -- joins ----------------------------------------------------------------------------------------


class Log(BaseModel):
    """A log."""

    log: Annotated[list[str], append] = []


def joins() -> CompiledGraph:
    """near arrives at once, far two steps later, at a join of each mode."""
    builder = StateGraph(Log, name="joins")
    for name in ("near", "start", "middle", "far", "both", "first", "active"):
        builder.add_node(name, work(name))
    builder.set_entry_point("near", "start").add_edge("start", "middle").add_edge("middle", "far")
    builder.add_join_edge(("near", "far"), "both").add_join_edge(("near", "far"), "first", mode="any")
    builder.add_join_edge(("near", "far"), "active", mode="active", id="whoever comes")
    return builder.set_finish_point("both", "first", "active").compile()


# -- a long loop ----------------------------------------------------------------------------------


class Count(BaseModel):
    """A number and what it has passed."""

    number: int = 0
    rests: Annotated[dict[int, str], merge] = {}
    log: Annotated[list[int], append] = []


def loop() -> CompiledGraph:
    """Counts to 160: more rows than a snapshot stands for."""

    async def count(state: Count, ctx: NodeContext) -> Command:
        number = state.number + 1
        update = {"number": number, "rests": {number % 7: f"{number:x}"}, "log": [number] if number % 10 == 0 else []}
        return Command(update=update, goto="count" if number < 160 else END)

    builder = StateGraph(Count, name="loop").add_node("count", count, destinations=["count", END])
    return builder.set_entry_point("count").compile()


# -- values of many types -------------------------------------------------------------------------


class Colour(Enum):
    """An enum."""

    RED = "red"
    BLUE = ("b", 1)


class Access(IntFlag):
    """A flag."""

    READ = 1
    WRITE = 2


class Level(StrEnum):
    """A text enum."""

    LOW = "low"


@dataclasses.dataclass(frozen=True)
class Size:
    """A dataclass in a dataclass."""

    width: Decimal
    inside: tuple[Size, ...] = ()


class Tree(BaseModel):
    """A model that holds itself."""

    value: int
    kids: list[Tree] = []


class Circle(BaseModel):
    """One arm of a union."""

    radius: float


class Square(BaseModel):
    """The other arm."""

    side: float


class Extra(BaseModel, extra="allow"):
    """A model with fields that nobody declared."""

    a: int = 1


class Place(TypedDict, total=False):
    """A typed dict."""

    city: str
    point: tuple[float, float]


class Values(BaseModel):
    """A field for each kind of value."""

    log: Annotated[list[str], append] = []
    answer: str = ""
    data: Annotated[dict[str, Any], merge] = {}
    when: datetime | None = None
    moments: list[datetime] = []
    day: date | None = None
    span: timedelta = timedelta(0)
    price: Decimal = Decimal(0)
    id: UUID | None = None
    raw: bytes = b""
    colours: list[Colour] = []
    access: Access = Access.READ
    level: Level | None = None
    size: Size | None = None
    tree: Tree | None = None
    shapes: list[Circle | Square] = []
    extra: Extra | None = None
    place: Place | None = None
    pairs: dict[int, tuple[str, ...]] = {}
    deep: dict[tuple[int, int], frozenset[str]] = {}
    numbers: list[float] = []
    big: int = 0
    text: str = ""
    anything: Any = None
    said: Annotated[list[Message], messages] = []


BERLIN = ZoneInfo("Europe/Berlin")
VALUES: Mapping[str, Any] = {
    "data": {"a": [1, {"b": None}], "$": True, "when": date(2026, 2, 28)},
    "when": datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=1),
    "moments": [
        datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
        datetime(2026, 1, 2),
        datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=5, minutes=45))),
    ],
    "day": date(2024, 2, 29),
    "span": timedelta(days=-1, microseconds=1),
    "price": Decimal("-0.10"),
    "id": UUID("12345678-1234-5678-1234-567812345678"),
    "raw": b"\x00\xff\xfe raw",
    "colours": [Colour.RED, Colour.BLUE],
    "access": Access.READ | Access.WRITE,
    "level": Level.LOW,
    "size": Size(Decimal("1.50"), (Size(Decimal(2)),)),
    "tree": Tree(value=1, kids=[Tree(value=2), Tree(value=3, kids=[Tree(value=4)])]),
    "shapes": [Square(side=2.0), Circle(radius=0.5)],
    "extra": Extra.model_validate({"a": 2, "b": [3]}),
    "place": {"city": "Köln", "point": (50.9, 6.9)},
    "pairs": {1: ("a", "b"), -2: ()},
    "deep": {(1, 2): frozenset({"x", "y"})},
    "numbers": [math.inf, -math.inf, -0.0, 1e-300],
    "big": 2**80,
    "text": "NUL \0, lone \ud800, wide \U0001f600, 'quotes'; \\ \r\n",
    "anything": (1, b"\0", {2: {3, 4}}, Decimal("1.0"), UUID(int=5)),
    "said": [Message.user([{"type": "text", "text": "hi"}], id="p1"), Message.assistant("yes", reasoning="hm")],
}
"""What the node `fill` writes."""


def values() -> CompiledGraph:
    """fill writes every value, ask asks, last ends."""

    async def fill(state: Values, ctx: NodeContext) -> Mapping[str, Any]:
        await meet(ctx, "fill")
        return VALUES

    builder = StateGraph(Values, name="values").add_node("fill", fill).set_entry_point("fill")
    builder.add_interrupt_node("ask", prompt="go on?", answer_type=str, writes="answer")
    builder.add_node("last", work("last", data={"more": (1, 2)}))
    return builder.add_edge("fill", "ask").add_edge("ask", "last").add_edge("last", END).compile()


# -- other classes of state, and breakpoints ---------------------------------------------------------


class Notes(typing.TypedDict, total=False):
    """A state as a typed dict."""

    log: Annotated[list[str], append]
    answer: str


@dataclasses.dataclass
class Record:
    """A state as a dataclass."""

    log: Annotated[list[str], append] = dataclasses.field(default_factory=list)
    answer: str = ""


def _asking(state: type, name: str) -> CompiledGraph:
    builder = StateGraph(state, name=name).add_node("a", work("a")).add_node("b", work("b")).set_entry_point("a")
    builder.add_interrupt_node("ask", prompt="what?", answer_type=str, key="answer")
    return builder.add_edge("a", "ask").add_edge("ask", "b").add_edge("b", END).compile()


def paused() -> CompiledGraph:
    """a -> b and c -> END, with breakpoints before b and after a."""
    builder = StateGraph(Log, name="paused").add_node("a", work("a")).add_node("b", work("b")).add_node("c", work("c"))
    builder.set_entry_point("a").add_edge("a", "b").add_edge("a", "c").set_finish_point("b", "c")
    return builder.interrupt_before_nodes("b").interrupt_after_nodes("a").compile()


GRAPHS: dict[str, CompiledGraph] = {
    graph.name: graph
    for graph in (
        order(),
        parent(),
        grandparent(),
        twins(),
        fan(),
        mapped(),
        joins(),
        loop(),
        values(),
        paused(),
        _asking(Notes, "notes"),
        _asking(Record, "record"),
    )
}
"""The graphs by name."""

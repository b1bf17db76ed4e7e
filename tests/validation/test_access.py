"""What a node reads and writes: declared, from annotations, from its source, or honestly not known."""

import copy
import functools
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypedDict, cast

import pytest
from pydantic import BaseModel

from graphagent import END, START, Command, Send, StateGraph
from graphagent.validation.access import accesses


class State(BaseModel):
    """Fields without meaning; `doubled` and `total` are no fields."""

    a: int
    b: int = 0
    c: int = 0
    items: list[int] = []

    @property
    def doubled(self) -> int:
        """Reads a field behind the scenes."""
        return self.a * 2

    def total(self) -> int:
        """So does a method."""
        return self.a + self.b


class Plain(TypedDict, total=False):
    """The same as a TypedDict."""

    a: int
    b: int
    c: int


def access_of(fn, state=State, **options):
    """What is known of a node with this function."""
    builder = StateGraph(state).add_node("n", fn, **options).add_edge(START, "n").add_edge("n", END)
    return accesses(builder.compile(strict=False))[0]


def letters(names):
    """Field names as one word, in order."""
    return " ".join(sorted(names))


KEY = "b"
PARTS = {"b": 1, "c": 2}


# -- functions to look at ---------------------------------------------------------------------------


def attributes(state):
    """Two fields read, one written."""
    return {"c": state.a + state.b}


def unset_is_fine(state):
    """Looks first, so nothing is needed."""
    if hasattr(state, "a"):
        return {"b": state.a}
    return {"b": getattr(state, "c", 0)}


def caught(state):
    """The error of an unset field is taken."""
    try:
        return {"b": state.a}
    except AttributeError:
        return {"b": 0}


def caught_elsewhere(state):
    """A handler for something else doesn't take it."""
    try:
        return {"b": state.a}
    except ZeroDivisionError:
        return {"b": 0}


def on_one_way(state):
    """Only one way writes c."""
    if state.a:
        return {"b": 1, "c": 2}
    return {"b": 1}


def falls_off(state):  # noqa: RET503
    """One way returns nothing."""
    if state.a:
        return {"b": 1}


def raises_else(state):
    """The other way raises, so every return writes."""
    if state.a:
        return {"b": 1}
    raise ValueError


def built_up(state):
    """A dict that grows."""
    out = {"b": 1}
    out["c"] = state.a
    return out


def built_up_maybe(state):
    """A dict that may grow."""
    out: dict[str, Any] = {}
    for item in state.items:
        if item:
            out["b"] = item
    out |= {"c": 1}
    return out


def updated(state):
    """`update`, `setdefault` and `pop` are followed."""
    out = dict(a=1, b=2)  # noqa: C408
    out.update({"c": 1})
    out.setdefault("items", [])
    out.pop("b")
    return out


def deleted(state):
    """What is deleted is not sure."""
    out = {"a": 1, "b": 2}
    del out["a"]
    return out


def handed_out(state):
    """A dict that somebody else gets may get more keys."""
    out = {"b": 1}
    unknown_helper(out)
    return out


def two_names(state):
    """Two names for one dict are not followed."""
    out = {"b": 1}
    other = out
    other["c"] = 2
    return out


def from_expression(state):
    """A value of which nothing is known."""
    return unknown_helper(1)


def ternary(state):
    """Both sides count."""
    return {"b": 1} if state.a else None


def either_or(state):
    """`or` gives the one or the other."""
    return {"b": state.a} or {"b": 1, "c": 1}  # noqa: SIM222


def union_of(state):
    """`|` of two dicts."""
    return {"b": state.a} | {"c": 1}


def spread_in(state):
    """`**` of a known dict."""
    return {**PARTS, "a": 1}


def key_by_name(state):
    """A key that a global names."""
    return {KEY: state.a}


def computed_key(state):
    """A key that is worked out."""
    return {f"{state.a}": 1}


def commanded(state):
    """The update of a Command."""
    return Command(update={"b": state.a})


def commanded_positional(state):
    """The same by position, built before."""
    update = {"b": state.a}
    return Command(update)


def walrus(state):
    """A walrus binds and passes on."""
    if (found := {"b": state.a}) and (n := state.c):
        return {**found, "c": n}
    return found


def comprehension(state):
    """Reads within comprehensions count, the variable hides the state's name or not."""
    total = [state.a + x for x in state.items]
    shadow = [state + 1 for state in total]
    return {"b": len(shadow)}


def loop_variable(state):
    """A name that is bound anew is the state no more."""
    first = state.a
    for state in range(3):
        print(state)
    return {"b": first}


def copied(state):
    """A copy is the state as far as reading goes."""
    state = state.model_copy(update={"b": 1})
    other = copy.deepcopy(state)
    return {"c": other.a}


def cast_away(state):
    """A cast changes nothing."""
    return {"b": cast(State, state).a}


def matched_class(state):
    """A class pattern reads, and doesn't fail on an unset field."""
    match state:
        case State(a=1):
            return {"b": 1}
        case _:
            return {"b": 2}


def matched_value(state):
    """A match on a field, without a case for the rest."""
    match state.a:
        case 1:
            return {"b": 1}
        case 2 | 3:
            return {"b": 2, "c": 1}


def nested(state):
    """What a function within reads counts; what it returns doesn't."""

    def inner(x):
        return {"items": state.b + x}

    return {"c": inner(state.a)["items"]}


def in_lambda(state):
    """So does a lambda."""
    pick = lambda: state.b  # noqa: E731
    return {"c": pick()}


def by_method(state):
    """A method of the state may read anything."""
    return {"c": state.total()}


def by_property(state):
    """So may a property."""
    return {"c": state.doubled}


def dumped(state):
    """All of it."""
    return {"c": len(state.model_dump())}


def passed_on(state):
    """To a function that nobody can see."""
    return {"c": unknown_helper(state)}


def spread_out(state):
    """`**state`: reads and writes can't be told."""
    return {**dict(state), "b": 1}


def returned_whole(state):
    """The state itself comes back."""
    return state


def helper(values, times=1):
    """A helper that reads one field."""
    return {"b": values.a * times}


def by_helper(state):
    """A helper that is there is followed."""
    return helper(state, times=2)


def recursive(state):
    """A function that hands the state to itself."""
    return recursive(state) if state.a else {"b": 1}


def in_with(state):
    """The end of a with block that returns is not reached."""
    with open("x") as f:
        return {"b": f.read(), "c": state.a}


def in_suppress(state):
    """What is suppressed falls through."""
    import contextlib

    with contextlib.suppress(ValueError):
        return {"b": 1}


def endless(state):
    """A loop that only a return leaves."""
    while True:
        if state.a:
            return {"b": 1}


def left_by_break(state):
    """A loop that a break leaves."""
    out = {}
    while True:
        out["b"] = state.a
        break
    return out


def in_finally(state):
    """What stands in finally runs too."""
    try:
        return {"b": 1}
    finally:
        print(state.a)


def generator(state):
    """A generator returns no update that could be read off."""
    yield {"b": state.a}


def sends(state):
    """Overlays are no writes."""
    return [Send("n", {"a": item}) for item in state.items]


async def asynchronous(state, ctx):
    """An async function with a context."""
    found = await ctx.step("x", print)
    return {"b": found, "c": state.a}


def logs(fn):
    """A decorator as they are written."""

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        result = fn(*args, **kwargs)
        print(result)
        return result

    return wrapper


def adds(fn):
    """A decorator that adds a key."""

    @functools.wraps(fn)
    def wrapper(state):
        return {**fn(state), "c": 1}

    return wrapper


@logs
def decorated(state):
    """Behind a decorator that passes things on."""
    return {"b": state.a}


@adds
def decorated_more(state):
    """Behind a decorator that writes itself."""
    return {"b": state.a}


def writer(field):
    """A closure over the name of a field."""

    def node(state):
        return {field: state.a}

    return node


class Callable_:
    """An object with `__call__`, which knows its field."""

    def __init__(self, field):
        self.field = field

    def __call__(self, state):
        """The node."""
        return {self.field: self._of(state)}

    def _of(self, state):
        return state.a

    def method(self, state):
        """A bound method as a node."""
        return {"c": state.b}


def with_factor(factor, state):
    """For partial."""
    return {"b": state.a * factor}


def defaulted(state, key="c"):
    """A default that is used as a key."""
    return {key: state.a}


TWO = [lambda state: {"b": state.a}, lambda state: {"c": state.b}]

CASES = [  # function, reads, needs, writes, surely; an empty word is nothing; `?` behind reads or writes: not known
    (attributes, "a b", "a b", "c", "c"),
    (unset_is_fine, "a c", "", "b", "b"),
    (caught, "a", "", "b", "b"),
    (caught_elsewhere, "a", "a", "b", "b"),
    (on_one_way, "a", "a", "b c", "b"),
    (falls_off, "a", "a", "b", ""),
    (raises_else, "a", "a", "b", "b"),
    (built_up, "a", "a", "b c", "b c"),
    (built_up_maybe, "items", "items", "b c", "c"),
    (updated, "", "", "a b c items", "a c items"),
    (deleted, "", "", "a b", "b"),
    (handed_out, "", "", "b ?", "b"),
    (two_names, "", "", "b ?", "b"),
    (from_expression, "", "", "?", ""),
    (ternary, "a", "a", "b", ""),
    (either_or, "a", "a", "b c", "b"),
    (union_of, "a", "a", "b c", "b c"),
    (spread_in, "", "", "a b c", "a b c"),
    (key_by_name, "a", "a", "b", "b"),
    (computed_key, "a", "a", "?", ""),
    (commanded, "a", "a", "b", "b"),
    (commanded_positional, "a", "a", "b", "b"),
    (walrus, "a c", "a c", "b c", "b"),
    (comprehension, "a items", "a items", "b", "b"),
    (loop_variable, "a", "a", "b", "b"),
    (copied, "a", "a", "c", "c"),
    (cast_away, "a", "a", "b", "b"),
    (matched_class, "a", "", "b", "b"),
    (matched_value, "a", "a", "b c", ""),
    (nested, "a b", "a b", "c", "c"),
    (in_lambda, "b", "b", "c", "c"),
    (by_method, "?", "", "c", "c"),
    (by_property, "?", "", "c", "c"),
    (dumped, "?", "", "c", "c"),
    (passed_on, "?", "", "c", "c"),
    (spread_out, "?", "", "b ?", "b"),
    (returned_whole, "?", "", "?", ""),
    (by_helper, "a", "a", "b", "b"),
    (recursive, "a ?", "a", "b ?", ""),
    (in_with, "a", "a", "b c", "b c"),
    (in_suppress, "", "", "b", ""),
    (endless, "a", "a", "b", "b"),
    (left_by_break, "a", "a", "b", "b"),
    (in_finally, "a", "a", "b", "b"),
    (generator, "?", "", "?", ""),
    (sends, "items", "items", "", ""),
    (asynchronous, "a", "a", "b c", "b c"),
    (decorated, "a", "a", "b", "b"),
    (decorated_more, "a", "a", "b c", "b c"),
    (writer("items"), "a", "a", "items", "items"),
    (Callable_("b"), "a", "a", "b", "b"),
    (Callable_("b").method, "b", "b", "c", "c"),
    (functools.partial(with_factor, 3), "a", "a", "b", "b"),
    (defaulted, "a", "a", "c", "c"),
    (TWO[0], "a", "a", "b", "b"),
    (TWO[1], "b", "b", "c", "c"),
    (print, "?", "", "?", ""),
    (eval("lambda state: {'b': state.a}"), "?", "", "?", ""),
]
NAMES = [getattr(case[0], "__name__", type(case[0]).__name__) for case in CASES]


def shown(names, origin):
    """A column of the table."""
    return " ".join([*sorted(names), *(["?"] if origin == "unknown" else [])])


@pytest.mark.parametrize(
    ("fn", "reads", "needs", "writes", "surely"), CASES, ids=[f"{i}-{name}" for i, name in enumerate(NAMES)]
)
def test_source(fn, reads, needs, writes, surely):
    """What is read off a function's source, and what is left open."""
    found = access_of(fn)
    assert shown(found.reads.fields, found.reads.origin) == reads
    assert letters(found.reads.needs) == needs
    assert shown(found.writes.fields, found.writes.origin) == writes
    assert letters(found.writes.surely) == surely
    assert found.undeclared == ()


def subscript(state):
    """A TypedDict is read by key."""
    return {"c": state["a"]}


def asked(state):
    """`get` takes an unset field, and so does one that is asked for."""
    if "b" in state:
        return {"c": state["b"]}
    return {"c": state.get("a", 0)}


def mutated_copy(state):
    """A copy that is changed and returned."""
    new = dict(state)
    new["b"] = 1
    return new


def matched_mapping(state):
    """A mapping pattern reads keys."""
    match state:
        case {"a": 1, "b": x}:
            return {"c": x}


@pytest.mark.parametrize(
    ("fn", "reads", "needs", "writes"),
    [
        (subscript, "a", "a", "c"),
        (asked, "a b", "", "c"),
        (mutated_copy, "?", "", "?"),
        (matched_mapping, "a b", "", "c"),
    ],
    ids=["subscript", "asked", "mutated_copy", "matched_mapping"],
)
def test_typed_dict(fn, reads, needs, writes):
    """The state as a TypedDict: keys instead of attributes."""
    found = access_of(fn, Plain)
    assert shown(found.reads.fields, found.reads.origin) == reads
    assert letters(found.reads.needs) == needs
    assert shown(found.writes.fields, found.writes.origin) == writes


def test_names_that_are_no_fields():
    """Names that the state doesn't have are told apart by what is done to them, privates and methods left out."""

    def node(state):
        """Reads and writes what isn't there."""
        print(state.tally, state._private, state.__class__)
        return {"bb": state.a}

    assert access_of(node).undeclared == (("reads", "tally"), ("writes", "bb"))


def test_declarations_win():
    """Declared fields count, whatever the source does, and each role for itself."""
    found = access_of(attributes, reads=["items"])
    assert (letters(found.reads.fields), found.reads.origin) == ("items", "declared")
    assert (letters(found.writes.fields), found.writes.origin) == ("c", "inferred")
    found = access_of(attributes, writes=[])
    assert (letters(found.writes.fields), found.writes.origin) == ("", "declared")


class Narrow(BaseModel):
    """A part of the state as a node takes it."""

    a: int
    b: int = 0


class Given(TypedDict):
    """A part of the state as a node gives it."""

    b: int
    c: NotRequired[int]


@dataclass
class Small:
    """A dataclass as a part of the state."""

    items: list[int]


def unknown_helper(*args):
    """Looks at nothing, but takes anything: a generator, so it isn't followed."""
    yield from args


def takes_narrow(state: Narrow):
    """The source can't be followed, the annotation says what is taken."""
    return unknown_helper(state)


def takes_small(state: Small):
    """The same with a dataclass."""
    return unknown_helper(state)


def gives(state) -> Given:
    """The annotation of what is returned."""
    return cast(Given, unknown_helper(1))


def takes_whole(state: State):
    """The class of the state says nothing."""
    return unknown_helper(state)


def takes_base(state: BaseModel):
    """Nor does one it is built on."""
    return unknown_helper(state)


@pytest.mark.parametrize(
    ("fn", "reads", "writes", "surely"),
    [
        (takes_narrow, "a b", "?", ""),
        (takes_small, "items", "?", ""),
        (gives, "", "b c", "b"),
        (takes_whole, "?", "?", ""),
        (takes_base, "?", "?", ""),
    ],
    ids=["model", "dataclass", "returned", "whole", "base"],
)
def test_annotations(fn, reads, writes, surely):
    """Where the source can't be followed, a narrower class in an annotation says what is taken or given."""
    found = access_of(fn)
    assert shown(found.reads.fields, found.reads.origin) == reads
    assert shown(found.writes.fields, found.writes.origin) == writes
    assert letters(found.writes.surely) == surely


def chain(builder):
    """The accesses of a builder's graph, by node."""
    return {access.node: access for access in accesses(builder.compile(strict=False))}


def test_special_nodes():
    """Map nodes read their list and lay the item over the worker; interrupt nodes write the answer."""
    builder = StateGraph(State).add_map_node("m", attributes, over="items", item_key="a", collect="q")
    builder.add_interrupt_node("q", prompt=lambda state: state.b, writes="c").add_edge(START, "m").add_edge("q", END)
    found = chain(builder)
    assert letters(found["m"].reads.needs) == "items"
    assert found["m"].overlays == {"m.item": frozenset({"a"})}
    assert letters(found["q"].writes.surely) == "c"
    assert (letters(found["q"].reads.fields), found["q"].reads.origin) == ("b", "inferred")


def child_graph():
    """A child that writes b on every way and c on one, and shares all fields."""

    class Child(BaseModel):
        """Its own state."""

        a: int
        b: int
        c: int
        own: int = 0

    def route(state) -> Literal["x", "y"]:
        return "x" if state.a else "y"

    builder = StateGraph(Child, inputs=["a"]).add_node("r", lambda state: {"own": state.a})
    builder.add_node("x", lambda state: {"b": 1, "c": 1}).add_node("y", lambda state: {"b": 2})
    return builder.add_edge(START, "r").add_conditional_edges("r", route).set_finish_point("x", "y").compile()


def test_children():
    """A child takes its inputs and gives what its nodes write of the fields that both have; mappers say otherwise."""
    plain = chain(StateGraph(State).add_subgraph_node("n", child_graph()).add_edge(START, "n").add_edge("n", END))["n"]
    assert (letters(plain.reads.fields), letters(plain.reads.needs)) == ("a", "a")
    assert (letters(plain.writes.fields), letters(plain.writes.surely)) == ("b c", "b")
    options = {"input_mapper": lambda state: {"a": state.items[0]}, "output_mapper": lambda child: {"items": [child.b]}}
    builder = StateGraph(State).add_subgraph_node("n", child_graph(), **options).add_edge(START, "n").add_edge("n", END)
    mapped = chain(builder)["n"]
    assert (letters(mapped.reads.fields), letters(mapped.writes.surely)) == ("items", "items")


def test_routers_and_conditions_read():
    """What routers and conditions of breakpoints look at is kept apart: they run after the node's own writes."""

    def route(state) -> Literal["__end__"]:
        assert state.c
        return END

    builder = StateGraph(State).add_node("n", attributes, interrupt_after=lambda state: state.items != [])
    found = chain(builder.add_edge(START, "n").add_conditional_edges("n", route))["n"]
    assert letters(found.routing.needs) == "c items"
    assert letters(found.reads.fields) == "a b"


@pytest.mark.parametrize(
    ("fn", "overlays"),
    [
        (lambda state: [Send("n", {"a": 1, "b": 2}), Send("n", {"a": 1})], {"n": frozenset({"a"})}),
        (lambda state: Command(goto=[Send("n", {"a": x}) for x in state.items]), {"n": frozenset({"a"})}),
        (lambda state: Send("n", state.items[0]), {"n": None}),
        (lambda state: [Send(unknown_helper(), {"a": 1})], {None: None}),
        (lambda state: {"b": 1}, {}),
    ],
    ids=["two", "command", "unknown-overlay", "unknown-target", "none"],
)
def test_overlays(fn, overlays):
    """The fields that every item sent to a node brings along."""
    assert access_of(fn, destinations=["n"]).overlays == overlays


def test_callbacks_make_it_unknown():
    """A callback may put another result in place; one that only looks on changes nothing."""
    from graphagent.engine.hooks import NodeCallbacks

    def built(callbacks):
        builder = StateGraph(State).add_node("n", attributes).add_edge(START, "n").add_edge("n", END)
        return chain(builder.with_node_callbacks(callbacks, node="n"))["n"]

    assert built(NodeCallbacks(after=print)).writes.origin == "unknown"
    assert built(NodeCallbacks(on_error=print)).writes.origin == "inferred"


class Watched(State):
    """A state that notes which fields are read."""

    def __getattribute__(self, name):
        if name in State.model_fields:
            object.__getattribute__(self, "__dict__").setdefault("_seen", set()).add(name)
        return super().__getattribute__(name)


def watched(a, items):
    """A state with these values; `_seen` starts empty."""
    state = Watched.model_construct(a=a, items=items)
    state.__dict__["_seen"] = set()
    return state


RUN = [case for case in CASES if case[0] not in (endless, recursive, in_with, asynchronous, generator, print)]


@pytest.mark.parametrize("fn", [case[0] for case in RUN], ids=[f"{i}" for i in range(len(RUN))])
def test_what_is_said_holds_when_it_runs(fn):
    """Run for real, a function reads no field and writes none beyond what was said, and writes all that was sure."""
    found = access_of(fn)
    for a in (0, 1, 2, 3):
        for items in ([], [0], [1, 2]):
            state = watched(a, items)
            try:
                result = fn(state)
            except (ValueError, ZeroDivisionError, TypeError):
                continue
            update = result.update if isinstance(result, Command) else result
            written = set() if not isinstance(update, dict) else set(update)
            if found.reads.origin != "unknown":
                assert state.__dict__["_seen"] <= found.reads.fields
            if found.writes.origin != "unknown":
                assert written <= found.writes.fields
            assert found.writes.surely <= written

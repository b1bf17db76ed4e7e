"""Parts of types without elements: scalars, literals, enums, secrets, and types that can't be stored at all."""

from __future__ import annotations

import base64
from enum import Enum, Flag
from typing import Any, Protocol

from pydantic import SecretBytes, SecretStr

from graphagent.checkpoint.part import NOTHING, Part
from graphagent.checkpoint.refusal import Refused, class_name, not_declared, not_stored_as, shown
from graphagent.checkpoint.scalars import Scalar
from graphagent.errors import alternatives


class Cipher(Protocol):
    """Encrypts secrets before they are stored; `decrypt` gives back what `encrypt` was given or raises."""

    def encrypt(self, data: bytes) -> bytes:
        """The cipher text; must not reveal `data`."""
        ...

    def decrypt(self, data: bytes) -> bytes:
        """The clear text. Raises any exception for data that it didn't make."""
        ...


def exact_part(label: str, *classes: type) -> Part:
    """Values that JSON itself keeps apart: stored as they are."""
    kinds = frozenset(classes)

    def encode(value: Any, _room: int) -> Any:
        if type(value) in kinds:
            return value
        raise not_declared(value, label)

    def decode(plain: Any) -> Any:
        if type(plain) in kinds:
            return plain
        raise not_stored_as(plain, label)

    return Part(label, encode, decode, classes=kinds, forms=kinds, exact=kinds)


# What one class of Python's numeric tower (PEP 484) takes, JSON keeps apart: True stays True in an int field.
JSON_SCALARS: dict[Any, Part] = {
    None: exact_part("None", type(None)),
    type(None): exact_part("None", type(None)),
    bool: exact_part("bool", bool),
    int: exact_part("int", int, bool),
    float: exact_part("float", float, int),
    str: exact_part("str", str),
}
"""Parts of the scalars of JSON, by class."""


def scalar_part(scalar: Scalar) -> Part:
    """Values of one class of the scalars table, without a tag."""
    cls, inner, label = scalar.cls, scalar.encode, scalar.cls.__name__

    def encode(value: Any, _room: int) -> Any:
        if type(value) is cls:
            return inner(value)
        raise not_declared(value, label)

    # open: pydantic lets instances of subclasses through for most of these, and time zones of any class
    return Part(label, encode, scalar.decode, frozenset({cls}), frozenset({scalar.form}), open=True)


def literal_part(values: tuple[Any, ...]) -> Part:
    """A `Literal` of None, bool, int and str values: stored as they are, and checked both ways."""
    label = f"Literal[{', '.join(map(repr, values))}]"
    allowed = frozenset((type(value), value) for value in values)
    kinds = frozenset(kind for kind, _ in allowed)

    def check(value: Any) -> Any:
        if type(value) in kinds and (type(value), value) in allowed:
            return value
        raise Refused(f"{shown(value)} is none of the declared '{label}'")

    return Part(label, lambda value, _room: check(value), check, classes=kinds, forms=kinds)


def enum_part(cls: type[Enum]) -> Part:
    """Members of an enum, by name: values may be renumbered, and an alias keeps the old name of a renamed member."""
    members = cls.__members__

    def encode(value: Any, _room: int) -> Any:
        if type(value) is not cls:
            raise not_declared(value, cls.__name__)
        if members.get(value.name) is not value:
            raise Refused(f"it is no declared member of '{class_name(cls)}'")
        return value.name

    def decode(plain: Any) -> Any:
        member = members.get(plain) if type(plain) is str else None
        if member is None:
            raise Refused(f"{_no_member(plain, cls)}; declare an alias for a renamed member")
        return member

    return Part(cls.__name__, encode, decode, classes=frozenset({cls}), forms=frozenset({str}))


def flag_part(cls: type[Flag]) -> Part:
    """Members of a flag: a list of the names of its single bits, and bits without a name as a number at the end."""
    members = cls.__members__

    def encode(value: Any, _room: int) -> Any:
        if type(value) is not cls:
            raise not_declared(value, cls.__name__)
        bits = list(value)
        rest = value.value & ~sum(bit.value for bit in bits)
        names: list[Any] = [bit.name for bit in bits]
        return [*names, rest] if rest else names

    def decode(plain: Any) -> Any:
        if type(plain) is not list:
            raise not_stored_as(plain, cls.__name__)
        value = cls(0)
        for item in plain:
            try:
                value |= cls(item) if type(item) is int else members[item]
            except (ValueError, LookupError, TypeError) as error:
                raise Refused(f"{_no_member(item, cls)}; declare an alias for a renamed member") from error
        return value

    return Part(cls.__name__, encode, decode, classes=frozenset({cls}), forms=frozenset({list}))


def secret_part(cls: type[SecretStr] | type[SecretBytes], cipher: Cipher | None) -> Part:
    """Secrets as cipher text; without a cipher nothing of them is written."""
    if cipher is None:
        reason = f"a '{cls.__name__}' is only stored encrypted; give the store a cipher or mark the field 'Transient'"
        return refusing_part(cls.__name__, reason, cls, forms=frozenset({str}))

    def encode(value: Any, _room: int) -> Any:
        if type(value) is not cls:
            raise not_declared(value, cls.__name__)
        clear = value.get_secret_value()
        data = clear.encode("utf-8", "surrogatepass") if isinstance(clear, str) else clear
        try:
            return base64.b64encode(cipher.encrypt(data)).decode("ascii")
        except Exception as error:  # whatever the cipher raises; its text could show the secret
            raise Refused(f"the cipher can't encrypt this '{cls.__name__}' ({type(error).__name__})") from None

    def decode(plain: Any) -> Any:
        try:
            data = cipher.decrypt(base64.b64decode(plain, validate=True))
            return SecretStr(str(data, "utf-8", "surrogatepass")) if cls is SecretStr else SecretBytes(data)
        except Exception as error:  # whatever the cipher raises; its text could show the secret
            raise Refused(
                f"the cipher can't decrypt this '{cls.__name__}' ({type(error).__name__}); "
                "open the store with the cipher that wrote it"
            ) from None

    return Part(cls.__name__, encode, decode, classes=frozenset({cls}), forms=frozenset({str}), open=True)


def refusing_part(label: str, reason: str, *classes: type, forms: frozenset[type] = NOTHING) -> Part:
    """A type that can't be stored: every value is refused when it is written, so a field may still be unset or None.

    Without `classes` it is the reason for values of any class. `forms`: the stored data that it is the reason for too.
    """

    def encode(value: Any, _room: int) -> Any:
        raise Refused(reason)

    def decode(plain: Any) -> Any:
        raise Refused(reason)

    return Part(label, encode, decode, classes=frozenset(classes) or None, forms=forms, open=True)


def _no_member(name: object, cls: type[Enum]) -> str:
    return f"stored {shown(name)} is no member of '{class_name(cls)}' ({alternatives(str(name), cls.__members__)})"

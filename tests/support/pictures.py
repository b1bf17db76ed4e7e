"""SVG pictures as tests read them: the groups of nodes and edges, and their texts."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator

SVG = "{http://www.w3.org/2000/svg}"


def groups(picture: str, name: str) -> Iterator[ET.Element]:
    """The groups of that class ("node" or "edge"), in order."""
    for group in ET.fromstring(picture).iter(f"{SVG}g"):
        if name in group.get("class", "").split():
            yield group


def node(picture: str, name: str) -> ET.Element:
    """The group of a node."""
    (found,) = (group for group in groups(picture, "node") if group.get("data-node") == name)
    return found


def edges(picture: str) -> list[tuple[str, str]]:
    """The ends of all edges, in order."""
    return [(group.get("data-source", ""), group.get("data-target", "")) for group in groups(picture, "edge")]


def title(group: ET.Element) -> str:
    """The title of a group."""
    return group.findtext(f"{SVG}title", "")


def texts(group: ET.Element) -> list[str]:
    """The texts that are drawn in a group."""
    return [element.text or "" for element in group.iter(f"{SVG}text")]


def badge(group: ET.Element) -> ET.Element | None:
    """The badge of a node, if it has one with something in it."""
    found = [part for part in group if part.get("class") == "badge" and len(part)]
    return found[0] if found else None

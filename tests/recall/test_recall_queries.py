"""What is searched for when a question finds too little, and the scan of words behind a search that finds nothing."""

from __future__ import annotations

import pytest
from support.recalling import said

from runner.recall.queries import is_compound, keywords, queries, share
from runner.recall.scan import scan, score

TWO_PARTS = "What did Alice say about the TLS certificate, and who fixed it?"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            TWO_PARTS,
            [
                TWO_PARTS,
                "Alice say about the TLS certificate",
                "alice tls certificate",
                "who fixed it",
                "fixed",
                "alice tls certificate fixed",
                "tls certificate fixed",
            ],
        ),
        ("certificate serial", ["certificate serial"]),
        ("Certificate Serial", ["Certificate Serial", "certificate serial"]),
        (
            "port 8443 and db host",
            ["port 8443 and db host", "port 8443", "db host", "host", "port 8443 host"],
        ),
        ("  blue \n moon ", ["blue moon"]),
        (" \n", []),
        ("the of it", ["the of it"]),
    ],
)
def test_worked_examples(text: str, expected: list[str]) -> None:
    """The question itself, its clauses and their keywords, its keywords, runs of three of them."""
    assert queries(text) == expected


def test_long_questions() -> None:
    """Of many keywords the first four and the last four are taken, in runs of four, four queries at most."""
    text = "Alpha bravo charlie delta echo foxtrot golf hotel india juliet"
    kept = ["alpha", "bravo", "charlie", "delta", "golf", "hotel", "india", "juliet"]
    assert queries(text) == [text, " ".join(kept), *(" ".join(kept[at : at + 4]) for at in range(3))]


def test_chinese() -> None:
    """Two Chinese characters are a word, and a Chinese comma parts clauses."""
    assert keywords("证书 ab 8") == ["证书", "8"]
    assert queries("证书编号，有效期？")[1:] == ["证书编号", "有效期", "证书编号 有效期"]


def test_compound() -> None:
    """A question with a comma, a semicolon, 'and' or 'or' asks for several things."""
    assert all(is_compound(text) for text in ("a, b", "a; b", "a and b", "a OR b"))
    assert not any(is_compound(text) for text in ("android", "sand or", "a b"))


def test_share() -> None:
    """A part of a question asks as much of it as it has of its keywords."""
    assert share("alice tls certificate", TWO_PARTS) == 0.75
    assert share(TWO_PARTS, TWO_PARTS) == 1.0
    assert 0 < share("other", TWO_PARTS) < 0.25


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        pytest.param("certificate serial", "the certificate serial is 42", 1.9, id="c093 all, and as it stands"),
        pytest.param("certificate serial", "a serial number", 0.5, id="c093 one of two"),
        pytest.param("certificate serial chain", "a serial number", 0.0, id="c093 one of three"),
        ("Serial", "no SERIAL here", 1.9),
        ("it is", "so it is", 1.9),
        ("证书", "新的证书在哪里", 1.9),
        ("?!", "anything", 0.0),
    ],
)
def test_scores_of_the_scan(query: str, text: str, expected: float) -> None:
    """The share of the keywords, more for the whole query; what has less than 0.45 doesn't fit."""
    assert score(query, text) == pytest.approx(expected)


def test_the_scan_orders_by_score_then_newer() -> None:
    """Best first, of equal ones the newest; no further query once there are enough."""
    events = [said(str(n), text, at=n) for n, text in enumerate(["blue moon", "moon", "a blue moon", "sun"])]
    assert [event.id for event, _ in scan(events, ["blue moon", "sun"], 2)] == ["2", "0"]
    assert [event.id for event, _ in scan(events, ["blue moon", "sun"], 4)] == ["3", "2", "0", "1"]

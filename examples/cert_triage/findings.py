"""What a check can say: findings, their severities, and the verdict that follows from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, ConfigDict

Severity = Literal["info", "warning", "critical"]
Verdict = Literal["ok", "warning", "critical"]
Code = Literal[
    # validity
    "expired", "not_yet_valid", "expires_soon",
    # chain
    "missing_intermediate", "leaf_not_first", "out_of_order", "unrelated", "duplicate", "root_included",
    # links
    "bad_signature", "signature_not_judged", "issuer_not_ca", "path_too_long",
    # identity
    "host_mismatch", "name_only_in_cn", "no_names", "wrong_purpose", "host_not_judged",
    # strength
    "weak_key", "weak_signature",
    # trust
    "self_signed", "untrusted_root", "unknown_issuer", "trust_not_judged",
]  # fmt: skip


class Finding(BaseModel):
    """One fact about a chain, with its proof and its mend.

    `position` is the certificate's place in the path: 0 is the server's own, 1 its issuer, and so on; None when the
    finding is about the bundle as a whole. Info findings never change the verdict: they say what was not judged, or
    what is harmless.
    """

    model_config = ConfigDict(frozen=True)

    code: Code
    severity: Severity
    title: str
    evidence: str
    mend: str
    position: int | None = None


def verdict(findings: Iterable[Finding]) -> Verdict:
    """The worst severity among the findings; `ok` when there is none above info."""
    severities = {finding.severity for finding in findings}
    if "critical" in severities:
        return "critical"
    return "warning" if "warning" in severities else "ok"

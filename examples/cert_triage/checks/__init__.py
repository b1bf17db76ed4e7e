"""The six checks; each is a pure function of a `Case` and answers with findings."""

from examples.cert_triage.checks.chain import check_chain
from examples.cert_triage.checks.identity import check_identity
from examples.cert_triage.checks.links import check_links
from examples.cert_triage.checks.strength import check_strength
from examples.cert_triage.checks.trust import check_trust
from examples.cert_triage.checks.validity import check_validity

__all__ = ["check_chain", "check_identity", "check_links", "check_strength", "check_trust", "check_validity"]

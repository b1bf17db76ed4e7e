"""Samples on disk and a CA in memory, each made once."""

from __future__ import annotations

import pytest
from cert_help import NOW, Authority

from examples.cert_triage.samples import Profile, Sample, issue, make_samples


@pytest.fixture(scope="session")
def authority() -> Authority:
    """A root and an issuing CA."""
    root = issue(Profile("Test Root", days=(-2000, 2000), authority=True), NOW)
    return Authority(
        root, issue(Profile("Test Issuing CA", days=(-400, 400), authority=True, path_length=0), NOW, root)
    )


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Sample]:
    """The samples by name, made for NOW."""
    folder = tmp_path_factory.mktemp("samples")
    return {sample.name: sample for sample in make_samples(folder, NOW)}


@pytest.fixture
def anyio_backend() -> str:
    """Tests that await do so on asyncio."""
    return "asyncio"

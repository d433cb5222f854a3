import pytest

from codezero.llm import onednn


@pytest.fixture
def x86(monkeypatch):
    """Estimates, which compute nothing, are those of a machine with oneDNN's linears."""
    monkeypatch.setattr(onednn, "is_available", lambda: True)

"""Connections that send half a request and then nothing are closed."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS = 10.0  # for the head of a request to be there, and for its body


class ImpatientProtocol(H11Protocol):
    """uvicorn's protocol, which by itself waits for ever for the rest of a request's head."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait_no_longer()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait_no_longer()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._late:
            self._late.cancel()
        super().connection_lost(exc)

    def _wait_no_longer(self) -> None:
        """Set the clock while a request is awaited, and stop it while one is being answered."""
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering and self._late:
            self._late.cancel()
            self._late = None
        elif not answering and self._late is None:
            self._late = self.loop.call_later(SECONDS, self._close)

    def _close(self) -> None:
        self._late = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()

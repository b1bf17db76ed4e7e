"""What a user's functions may change before a call for a summary, and of its text."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from graphagent.engine.hooks import settled
from graphagent.errors import SummaryError
from graphagent.ledger import Event
from runner.summary.text import DEFAULT, Formatters, conversation, items_of
from runner.summary.values import SummaryInput

_log = logging.getLogger(__name__)


class HookFailed(SummaryError):
    """A hook failed that says that there is no summary then."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What one call is about to sum up: `text`, made of `events`, after the `previous` summary. A long conversation is
    summed up in several calls, each with the summary of the one before."""

    given: SummaryInput
    events: tuple[Event, ...]
    text: str
    previous: str


Before = Callable[[Draft], "Draft | str | Awaitable[Draft | str | None] | None"]
After = Callable[[SummaryInput, str], "str | Awaitable[str | None] | None"]


@dataclass(frozen=True, slots=True)
class SummaryHooks:
    """Functions around a summary, plain or async.

    `before` sees each call's draft and may give back another one; where only the events differ, the text is made anew
    of them. A text in its place is taken as the summary, and no model is asked. `after` sees the whole summary and may
    give back another text; a blank one changes nothing. Neither can move what the summary covers. An error of theirs is
    logged and what they were given is used, unless `abort` says that there is no summary then.
    """

    before: Before | None = None
    after: After | None = None
    abort: bool = False

    async def changed(self, draft: Draft, formatters: Formatters = DEFAULT) -> Draft | str:
        """The draft after `before`. Raises HookFailed if that fails and `abort` is set."""
        if self.before is None:
            return draft
        try:
            found: Draft | str | None = await settled(self.before(draft))
        except Exception as error:
            self._failed("before", draft.given, error)
            return draft
        if isinstance(found, Draft) and found.events is not draft.events and found.text == draft.text:
            return replace(found, text=conversation(items_of(found.events, formatters)))
        return draft if found is None else found

    async def finished(self, given: SummaryInput, text: str) -> str:
        """The text after `after`. Raises HookFailed if that fails and `abort` is set."""
        if self.after is None:
            return text
        try:
            found: str | None = await settled(self.after(given, text))
        except Exception as error:
            self._failed("after", given, error)
            return text
        return found if found is not None and found.strip() else text

    def _failed(self, hook: str, given: SummaryInput, error: Exception) -> None:
        told = f"the hook '{hook}' of the summary of session '{given.key.session}' failed: {error}"
        if self.abort:
            raise HookFailed(told) from error
        _log.warning("%s; it is left out", told, exc_info=error)


NO_HOOKS = SummaryHooks()

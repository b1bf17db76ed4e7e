"""The node that asks a model: from the state to a request, from the answer to an update."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from graphagent.agents.guarded import Notes, guarded
from graphagent.agents.instruction import Instruction, rendered
from graphagent.agents.invocation import Invocation
from graphagent.agents.model import GenerationConfig, Model, ModelRequest, Reply
from graphagent.agents.model_call import Turn, call_model
from graphagent.agents.model_options import NO_LIMITS, CallLimits, ModelCallbacks
from graphagent.agents.output import OutputSchema
from graphagent.agents.requests import Asked, asked_of, field, paired, with_instruction
from graphagent.agents.scope import Note, invocation_of, note, scope_of
from graphagent.agents.tool import Asking, Tool
from graphagent.agents.toolset import NodeTools, ToolLike
from graphagent.agents.views import view_of
from graphagent.engine.context import NodeContext
from graphagent.errors import AgentError, LimitReached, ModelError, StopAgent
from graphagent.graph.kinds import register
from graphagent.messages import Message
from graphagent.model_view import ModelView

PLAIN = GenerationConfig()


class Answer(NamedTuple):
    """An answer that is taken. `value`: what the node's readers get: the text, or the data of a structured answer."""

    turns: tuple[Turn, ...]
    value: Any

    @property
    def reply(self) -> Reply:
        """The model's last reply."""
        return self.turns[-1].reply


class LLMNode:
    """The function of a model node; see `StateGraph.add_llm_node` for what it does."""

    def __init__(self, id: str, config: Mapping[str, Any]) -> None:
        self.id = id
        self.model: Model = config["model"]
        self.instruction: Instruction = config["instruction"]
        self.tools: tuple[ToolLike, ...] = config["tools"]
        self._gathered = NodeTools(self.tools)
        schema = config["output_schema"]
        self.output = None if schema is None else OutputSchema(schema)
        self.output_key: str | None = config["output_key"]
        self.user_input_key: str = config["user_input_key"]
        self.generation: GenerationConfig = config["config"] or PLAIN
        limits = config["limits"]
        self.limits: CallLimits = NO_LIMITS if limits is None or limits == NO_LIMITS else limits
        self.callbacks: tuple[ModelCallbacks, ...] = config["callbacks"]
        self.attempts: int = config["output_attempts"]
        self.declared: frozenset[str] = config["declared"]
        if not hasattr(self.model, "stream"):
            raise AgentError(f"the model of node '{id}' is {self.model!r:.60}; it has no 'stream' (see Model)")
        if self.limits is not NO_LIMITS and "metadata" not in self.declared:
            raise AgentError(f"node '{id}' counts its calls in 'metadata', which the state has to declare")
        if self.attempts < 1:
            raise AgentError(f"output_attempts of node '{id}' is {self.attempts}; it has to be 1 or more")

    async def __call__(self, state: Any, ctx: NodeContext) -> dict[str, Any]:
        """Ask, and add the answer to the history. Raises ModelError, StopAgent or LimitReached at a limit."""
        invocation = invocation_of(ctx)
        asked = asked_of(self.id, state, self.user_input_key)
        calls, rounds = self._counts(state)
        if self.limits.model_calls is not None and calls >= self.limits.model_calls:
            raise StopAgent(f"node '{self.id}' has called its model {calls} times in this turn, which is its limit")
        tools = await self.tools_for(invocation)
        last = self.is_last(state)
        request = await self._request(asked, () if last else tools, last, state, ctx)
        view = None
        context: Notes = ()
        cut: frozenset[str] = frozenset()
        if invocation is not None and invocation.services.guard is not None and not asked.once:
            make = partial(self._request, tools=() if last else tools, last=last, state=state, ctx=ctx)
            asked, request, context, cut = await guarded(ctx, self.model_for(invocation), asked, request, make)
        if invocation is not None and invocation.persist is not None:
            view = await view_of(ctx, asked.messages, len(request.messages), cut)
            note(ctx, Note(view=view))  # for what is kept of an answer that is cut off
        answer = await self._answered(request, ctx, invocation)
        if (
            answer.reply.message.tool_calls
            and self.limits.tool_rounds is not None
            and rounds >= self.limits.tool_rounds
        ):
            raise LimitReached(f"max tool rounds ({rounds}) exceeded in node '{self.id}'")
        message_id = ctx.idempotency_key("message")
        if scope_of(ctx) is not None:
            told = self._note(message_id, answer, tools, view)
            note(ctx, replace(told, context=context, history=len(asked.update)))
        return self._update(asked, answer, message_id, (calls, rounds))

    # -- what a request is made of: the debugger makes it again of the same parts ----------------

    async def tools_for(self, invocation: Invocation | None) -> tuple[Tool, ...]:
        """The tools that a run offers. Raises AgentError, and what a set of tools raises that can't list them."""
        visible = None if invocation is None else invocation.options.tool_filter
        return await self._gathered.now(visible, Asking(invocation, self.output is not None))

    def is_last(self, state: Any) -> bool:
        """True if the call that is due is the last of the turn, which has to end it with an answer."""
        return self.limits.final is not None and self.limits.last(*self._counts(state))

    def instruction_for(self, invocation: Invocation | None) -> Instruction:
        """The node's instruction, or the one that the run has instead."""
        own = None if invocation is None else invocation.options.instruction
        return self.instruction if own is None else own

    async def told(self, tools: Sequence[Tool], state: Any, ctx: NodeContext) -> str:
        """The instruction as the model gets it, with what sets of tools say of these tools."""
        invocation = invocation_of(ctx)
        text = await rendered(self.instruction_for(invocation), state, ctx, invocation)
        if overview := self._gathered.overview(tools):
            text = f"{text}\n\n{overview}" if text else overview
        return text

    def request_for(self, asked: Asked, text: str, tools: Sequence[Tool], *, last: bool) -> ModelRequest:
        """The request for what is asked, under an instruction. Raises AgentError for one without messages."""
        messages = with_instruction(paired(asked.messages), text)
        if last:
            messages = (*messages, Message.user(self.limits.final or ""))
        if not messages:
            raise AgentError(
                f"node '{self.id}' has nothing to ask its model: give it messages, input, or an instruction"
            )
        return ModelRequest(
            messages,
            tuple(tool.spec for tool in tools),
            None if self.output is None else self.output.schema,
            self.generation,
        )

    def model_for(self, invocation: Invocation | None) -> Model:
        """The node's model, or the one that the run has instead."""
        return self.model if invocation is None or invocation.options.model is None else invocation.options.model

    def value_of(self, message: Message) -> Any:
        """What an answer is for the node's readers. Raises ValueError for one that doesn't satisfy the schema, saying
        why not."""
        return message.text if self.output is None or message.tool_calls else self.output.read(message.text)

    # -- asking ----------------------------------------------------------------------------------

    async def _request(
        self, asked: Asked, tools: Sequence[Tool], last: bool, state: Any, ctx: NodeContext
    ) -> ModelRequest:
        return self.request_for(asked, await self.told(tools, state, ctx), tools, last=last)

    async def _answered(self, request: ModelRequest, ctx: NodeContext, invocation: Invocation | None) -> Answer:
        """The answer, asked for again while it doesn't satisfy its schema."""
        model = self.model_for(invocation)
        turns: list[Turn] = []
        problem = ""
        while len(turns) < self.attempts:
            turn = await call_model(model, request, ctx, invocation, self.callbacks)
            turns.append(turn)
            try:
                return Answer(tuple(turns), self.value_of(turn.reply.message))
            except ValueError as error:
                problem = str(error)
            request = asked_again(request, turn, problem)
        raise ModelError(
            f"model '{model.name}' gave no answer that satisfies the output schema of node '{self.id}', "
            f"in {len(turns)} attempts; of the last: {problem}",
            kind="output",
        )

    def _note(self, message_id: str, answer: Answer, tools: Sequence[Tool], view: ModelView | None) -> Note:
        """The event of a model's answer is known by the id of its message, so that it can be told again later."""
        reply = answer.reply
        external = {tool.spec.name for tool in tools if tool.external}
        delta = {self.output_key: answer.value} if self.output_key and not reply.message.tool_calls else {}
        return Note(
            message_id,
            reply.usage,
            reply.finish_reason,
            delta,
            frozenset(call.id for call in reply.message.tool_calls if call.name in external),
            view=view,
        )

    def _update(self, asked: Asked, answer: Answer, message_id: str, counts: tuple[int, int]) -> dict[str, Any]:
        reply = answer.reply
        message = reply.message.model_copy(update={"id": message_id})
        queued = [said for turn in answer.turns for said in turn.queued]
        refused = [Message.tool(f"Error: {why}", call.id, name=call.name) for call, why in reply.invalid]
        update: dict[str, Any] = {
            **asked.cleared,
            "messages": [*asked.update, *queued, message, *refused],
            "last_response": message.text,
            "last_response_id": message.id,
            "node_responses": {self.id: answer.value},
        }
        if self.limits is not NO_LIMITS:
            calls, rounds = counts
            asks = int(bool(message.tool_calls))
            update["metadata"] = {f"calls:{self.id}": [calls + len(answer.turns), rounds + asks]}
        if self.output_key and not message.tool_calls:
            update[self.output_key] = answer.value
        return {name: value for name, value in update.items() if name in self.declared}

    def _counts(self, state: Any) -> tuple[int, int]:
        """Calls of the model, and rounds of tools that it asked for, in this turn."""
        if self.limits is NO_LIMITS:
            return 0, 0
        calls, rounds = field(state, "metadata", {}).get(f"calls:{self.id}", (0, 0))
        return calls, rounds


def asked_again(request: ModelRequest, turn: Turn, problem: str) -> ModelRequest:
    """The request after an answer that can't be used."""
    mend = f"That answer can't be used: {problem}. Answer again, with JSON that satisfies the schema only."
    return replace(request, messages=(*request.messages, *turn.queued, turn.reply.message, Message.user(mend)))


register("llm", LLMNode)

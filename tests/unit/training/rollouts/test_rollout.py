"""A rollout through the gateway's session, scored as a race scores, told to the token."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from corpus_export.normalise import messages_of, normalise
from corpus_export.rows import TOOLS
from corpus_export.types import Trajectory as CorpusTrajectory
from scoring.outcome import Reason
from tests.unit.training.rollouts.shopping import AGENT, PROBLEM, SOLUTION, call, chat, turn
from tests.unit.training.serving.speaking import Scripted, renderer, tokenizer
from training.exceptions import PolicyError
from training.rollouts.collecting import RolloutSettings, policy_rollouts
from training.rollouts.episode import Ended
from training.rollouts.models import PolicyModels, TurnSampling
from training.rollouts.rollout import Rollout, RolloutWorld, Task, roll_out
from training.types import Stop

SAMPLING = TurnSampling(temperature=0.9, top_p=0.95, max_tokens=300)


async def rolled(
    world: RolloutWorld, policy: Scripted, *, max_turns: int = 8, context: int = 30_000
) -> Rollout:
    models = PolicyModels(chat(policy, context), SAMPLING, seed=1)
    task = Task(PROBLEM, 0, "c-1")
    return await roll_out(world, task, models, "tiny", AGENT, max_turns=max_turns)


async def test_a_problem_that_is_solved_is_scored_so_by_the_strict_rule(
    world: RolloutWorld,
) -> None:
    rollout = await rolled(world, Scripted(*SOLUTION))
    trajectory = rollout.trajectory
    assert trajectory.outcome is not None
    assert (rollout.success, trajectory.reward) == (True, 1.0)
    assert trajectory.outcome.axes.title == 1.0
    assert rollout.ended is Ended.TERMINATED
    assert trajectory.cluster == "c-1"


async def test_the_record_is_one_of_a_race_that_the_model_itself_drove(
    world: RolloutWorld,
) -> None:
    record = (await rolled(world, Scripted(*SOLUTION))).record
    assert record.closed
    value: Any = record.encode().value
    assert value["axis"]["axis"] == "A"
    assert value["outcome"]["success"] is True
    assert [e["name"] for e in value["trace"]["events"] if e["kind"] == "tool"] == [
        "find_product", "view_product_information", "recommend_product", "terminate",
    ]  # fmt: skip


async def test_what_was_sampled_is_one_sequence_whose_mask_is_what_the_model_said(
    world: RolloutWorld,
) -> None:
    policy = Scripted(*SOLUTION)
    trajectory = (await rolled(world, policy)).trajectory
    [segment] = trajectory.segments
    assert tuple(segment.ids[: len(policy.prompts[0])]) == policy.prompts[0]
    said = tokenizer().decode(segment.ids[segment.mask].tolist())
    assert said == "".join(f"{line}<|im_end|>" for line in SOLUTION)
    assert set(segment.logprobs[segment.mask].tolist()) == {-0.5}
    assert set(segment.logprobs[~segment.mask].tolist()) == {0.0}
    assert len(trajectory.turns) == 4


async def test_the_row_of_the_record_renders_to_the_tokens_that_were_served(
    world: RolloutWorld,
) -> None:
    rollout = await rolled(world, Scripted(*SOLUTION))
    found = normalise(rollout.record.encode().value, PROBLEM.query, world.catalog)
    assert isinstance(found, CorpusTrajectory), found
    rendered = renderer().render_sample(messages_of(found), json.loads(TOOLS))
    [segment] = rollout.trajectory.segments
    assert rendered.ids[: len(segment.ids)].tolist() == segment.ids.tolist()
    assert np.array_equal(rendered.mask[: len(segment.ids)], segment.mask)
    # What the tool said to the last call comes after the last turn, and nobody learns it.
    assert "completed" in tokenizer().decode(rendered.ids[len(segment.ids) :].tolist())
    assert not rendered.mask[len(segment.ids) :].any()


@pytest.mark.parametrize(
    ("lines", "ended", "reason"),
    [
        ((turn("Nothing fits.", text="I found nothing."),), Ended.NO_CALL,
         Reason.NO_RECOMMENDATION),
        ((*SOLUTION[:3], turn("So be it.", text="Done.")), Ended.NO_CALL, Reason.NOT_TERMINATED),
        ((turn("I give up.", call("terminate", status="failure")),), Ended.TERMINATED,
         Reason.NO_RECOMMENDATION),
        ((turn("A guess.", call("recommend_product", product_ids="999")), SOLUTION[3]),
         Ended.TERMINATED, Reason.TITLE),
        ((turn("A guess.", call("recommend_product", product_ids="5")), SOLUTION[3]),
         Ended.TERMINATED, Reason.UNKNOWN_PRODUCT),
    ],
)  # fmt: skip
async def test_a_rollout_that_fails_says_why(
    world: RolloutWorld, lines: tuple[str, ...], ended: Ended, reason: Reason
) -> None:
    rollout = await rolled(world, Scripted(*lines))
    assert rollout.ended is ended
    assert rollout.trajectory.outcome is not None
    assert rollout.trajectory.outcome.reason is reason
    assert rollout.trajectory.reward == 0.0


async def test_a_rollout_has_so_many_turns_and_no_more(world: RolloutWorld) -> None:
    again = turn("Once more.", call("find_product", q="teapot"))
    policy = Scripted(*[again] * 20)
    rollout = await rolled(world, policy, max_turns=8)
    assert rollout.ended is Ended.TURN_LIMIT
    assert len(policy.prompts) == 8


async def test_a_broken_call_is_answered_with_an_error_and_counted(world: RolloutWorld) -> None:
    broken = turn("Hm.", '<tool_call>\n{"name": "find_product", "arguments": {"q"\n</tool_call>')
    policy = Scripted(broken, *SOLUTION)
    rollout = await rolled(world, policy)
    assert rollout.success
    assert rollout.trajectory.facts["malformed_calls"] == 1
    assert "not a JSON object" in tokenizer().decode(list(policy.prompts[1]))
    # It goes on from the broken tokens themselves.
    assert len(rollout.trajectory.segments) == 1


async def test_a_turn_that_is_cut_is_told_as_truncated(world: RolloutWorld) -> None:
    rollout = await rolled(world, Scripted("<think>\nI wonder", cut=[0]))
    assert rollout.trajectory.truncated
    assert rollout.trajectory.turns[0].stop is Stop.LENGTH
    assert rollout.ended is Ended.NO_CALL


async def test_a_conversation_that_outgrows_the_context_ends_and_is_the_models_own(
    world: RolloutWorld,
) -> None:
    policy = Scripted(*SOLUTION)
    whole = (await rolled(world, policy)).trajectory
    room = len(whole.turns[1].prompt_ids) + SAMPLING.max_tokens
    rollout = await rolled(world, Scripted(*SOLUTION), context=room)
    assert rollout.ended is Ended.NO_ROOM
    assert len(rollout.trajectory.turns) == 2
    assert rollout.trajectory.error is None
    assert rollout.trajectory.reward == 0.0


async def test_a_policy_that_fails_says_nothing_of_the_model(world: RolloutWorld) -> None:
    policy = Scripted(SOLUTION[0], PolicyError("the weights are broken"), *SOLUTION)
    rollout = await rolled(world, policy)
    assert rollout.ended is Ended.FAILED
    assert rollout.trajectory.outcome is None
    assert rollout.trajectory.reward is None
    assert rollout.trajectory.error is not None
    assert "the weights are broken" in rollout.trajectory.error.message
    assert not rollout.record.closed
    assert len(policy.prompts) == 2


async def test_turns_are_sampled_as_the_rollout_is_each_with_its_own_seed(
    world: RolloutWorld,
) -> None:
    policies = [Scripted(*SOLUTION), Scripted(*SOLUTION)]
    for policy in policies:
        await rolled(world, policy)
    [first, again] = [policy.samplings for policy in policies]
    assert first == again
    assert {(s.temperature, s.top_p, s.max_tokens) for s in first} == {(0.9, 0.95, 300)}
    assert len({s.seed for s in first}) == 4


async def test_marks_in_a_products_text_reach_the_model_harmless(world: RolloutWorld) -> None:
    look = turn("I look at 41.", call("view_product_information", product_ids="41"))
    policy = Scripted(turn("A kettle.", call("find_product", q="copper kettle")), look, SOLUTION[3])
    await rolled(world, policy)
    prompt = tokenizer().decode(list(policy.prompts[-1]))
    assert "‹/tool_call>" in prompt
    assert prompt.count("<tool_call>") == prompt.count("</tool_call>")


async def test_rollouts_that_say_the_same_in_other_tokens_each_go_on_from_their_own(
    world: RolloutWorld,
) -> None:
    spaced = SOLUTION[0].replace('{"q":', '{ "q":  ')
    shared = chat(Scripted(spaced, SOLUTION[0], *[SOLUTION[1]] * 2, *[SOLUTION[3]] * 2))
    settings = RolloutSettings(sampling=SAMPLING, at_once=2)
    tasks = [Task(PROBLEM, sample, "c-1") for sample in range(2)]
    trajectories, counts = await policy_rollouts(world, shared, tasks, AGENT, settings)
    assert counts.re_rendered == 0
    first, second = (t.turns[0].completion_ids for t in trajectories)
    assert first != second

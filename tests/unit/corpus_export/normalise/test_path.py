"""What the trajectory of a run is, and what is left out of it."""

from __future__ import annotations

import pytest

from corpus_export.types import LeftOut, Reason, Trajectory
from scoring.types import JsonObject
from tests.unit.corpus_export.builders import (
    GOOD,
    QUERY,
    Move,
    NativeAgent,
    TagAgent,
    find,
    native_message,
    recommend,
    reject_of,
    tag_text,
    terminate,
    trajectory,
    trajectory_of,
    view,
)
from tests.unit.sandbox.provenance.traces import TraceBuilder

SIDE: list[JsonObject] = [
    {"role": "system", "content": "Classify the query."},
    {"role": "user", "content": QUERY},
]
SYSTEM_2: JsonObject = {"role": "system", "content": "You decide."}


def thoughts(made: Trajectory) -> list[str]:
    return [turn.reasoning for turn in made.turns]


def test_a_classification_on_the_side_is_no_turn() -> None:
    build = TraceBuilder()
    build.llm(SIDE, "It is a product query, since one thing is asked for.")
    made = trajectory_of(TagAgent(build).play(GOOD))
    assert thoughts(made) == [m.think for m in GOOD]
    assert made.left_out == LeftOut(completions=1)


def test_failed_completions_are_no_turns() -> None:
    agent = NativeAgent()
    agent.play(GOOD[:1])
    agent.build.llm(agent.messages, status=429)
    agent.build.llm(agent.messages, {"role": "assistant", "content": ""})
    agent.play(GOOD[1:])
    made = trajectory_of(agent.build.trace)
    assert thoughts(made) == [m.think for m in GOOD]
    assert made.left_out == LeftOut(failed=2)


def test_of_several_choices_the_one_gone_on_with_is_the_turn() -> None:
    agent = NativeAgent()
    other = native_message(Move("I would rather look at number 9.", (view(9),)), "x")
    for move in GOOD[:2]:
        message = native_message(move, f"t{agent.turns + 1}")
        agent.build.llm(agent.messages, other, message, other)
        agent.messages = [*agent.messages, message]
        agent.turns += 1
        agent.act(move)
    agent.play(GOOD[2:])
    made = trajectory_of(agent.build.trace)
    assert thoughts(made) == [m.think for m in GOOD]
    assert made.left_out == LeftOut(choices=4)


def test_of_several_last_choices_the_one_that_recommends_is_the_turn() -> None:
    agent = NativeAgent()
    agent.play(GOOD[:2])
    idle: JsonObject = {"role": "assistant", "content": "I could think about it for longer."}
    ends = native_message(Move(GOOD[2].think, (recommend(1), terminate())))
    agent.build.llm(agent.messages, idle, ends)
    made = trajectory_of(agent.build.trace)
    assert thoughts(made)[-1] == GOOD[2].think
    assert [c.name for c in made.turns[-1].calls] == ["recommend_product", "terminate"]


def test_a_run_that_starts_over_is_its_last_conversation() -> None:
    build = TraceBuilder()
    NativeAgent(build).play([Move("I begin with a linen bag, say.", (find("linen", 5),))])
    made = trajectory_of(NativeAgent(build).play(GOOD))
    assert thoughts(made) == [m.think for m in GOOD]
    assert made.left_out == LeftOut(completions=1, dispatches=1)


@pytest.mark.parametrize("agent", [NativeAgent, TagAgent])
def test_conversations_side_by_side_do_not_mix(agent: type[NativeAgent] | type[TagAgent]) -> None:
    build = TraceBuilder()
    one, other = agent(build), agent(build)
    for ours in GOOD:
        theirs = Move(f"Elsewhere: {ours.think}", (find(f"other {ours.think[:9]}", 8),))
        one.speak(ours)
        other.speak(theirs)
        other.act(theirs)
        one.act(ours)
    made = trajectory_of(build.trace)
    assert thoughts(made) == [m.think for m in GOOD]
    assert made.left_out.completions == len(GOOD)
    assert made.left_out.dispatches == len(GOOD)
    assert all(len(t.results) == len(t.calls) for t in made.turns)


def test_an_answer_thrown_away_and_asked_for_again_is_no_turn() -> None:
    agent = NativeAgent()
    agent.play(GOOD[:1])
    broken = tag_text(Move("I will look at both of them.")) + "<tool_call>[{broken"
    agent.build.llm(agent.messages, broken)
    again: JsonObject = {"role": "user", "content": "That was not valid JSON. Again."}
    agent.messages = [*agent.messages, again]
    agent.play(GOOD[1:])
    made = trajectory_of(agent.build.trace)
    assert thoughts(made) == [m.think for m in GOOD]
    assert made.left_out.completions == 1


def test_a_turn_that_agents_do_not_repeat_is_one_when_it_was_carried_out() -> None:
    build = TraceBuilder()
    prompt: list[JsonObject] = [{"role": "user", "content": QUERY}]
    for move in GOOD:
        build.llm(prompt, tag_text(move))
        for made in move.calls:
            build.dispatch({"name": made.name, "parameters": made.arguments}, made.result)
        prompt = [*prompt, {"role": "user", "content": "Results are in."}]
    made_turns = trajectory_of(build.trace)
    assert thoughts(made_turns) == [m.think for m in GOOD]
    assert all(len(t.results) == len(t.calls) for t in made_turns.turns)


def test_a_window_that_forgets_the_oldest_turns_is_one_conversation() -> None:
    agent = NativeAgent()
    moves = [Move(f"I search once more, number {n}.", (find(f"bag {n}"),)) for n in range(6)]
    for move in [*moves, *GOOD[2:]]:
        agent.speak(move)
        agent.act(move)
        agent.messages = [*agent.messages[:2], *agent.messages[2:][-4:]]
    made = trajectory_of(agent.build.trace)
    assert thoughts(made) == [m.think for m in (*moves, *GOOD[2:])]


def test_too_short_a_turn_to_be_told_is_still_one() -> None:
    moves = [GOOD[0], Move("", (), "Hm."), *GOOD[1:]]
    made = trajectory_of(NativeAgent().play(moves))
    assert [t.content for t in made.turns][1] == "Hm."
    assert made.left_out == LeftOut(harness_messages=1)


def test_talk_after_the_end_is_no_turn() -> None:
    agent = NativeAgent()
    agent.play(GOOD)
    ask: JsonObject = {"role": "user", "content": "Sum up."}
    agent.messages = [*agent.messages, ask]
    agent.speak(Move("", (), "I searched, compared and recommended number 1 to you."))
    made = trajectory_of(agent.build.trace)
    assert len(made.turns) == len(GOOD)
    assert made.left_out.completions == 1


def test_talk_after_a_turn_that_recommends_and_ends_is_no_turn() -> None:
    end = Move("Number 1, and that is all of it.", (recommend(1), terminate()))
    talk = Move("", (), "I searched, compared and recommended number 1 to you.")
    made = trajectory_of(NativeAgent().play([*GOOD[:2], end, talk, talk]))
    assert thoughts(made) == [*(m.think for m in GOOD[:2]), end.think]
    assert made.left_out.completions == 2


def test_talk_after_a_recommendation_without_an_end_is_its_last_turn() -> None:
    made = trajectory_of(
        NativeAgent().play([*GOOD[:3], Move("", (), "There you are, number 1 it is.")])
    )
    assert made.turns[-1].calls == ()


def test_the_recommendation_of_the_dialogue_leads_where_the_wire_has_none() -> None:
    build = TraceBuilder()
    loser = TagAgent(build)
    said: JsonObject = {
        "completion": {
            "message": {
                "tool_call": [{"name": "recommend_product", "parameters": {"product_ids": "1"}}]
            }
        }
    }
    winner = TagAgent(build)
    winner.play(GOOD)
    loser.play([Move("I try the other one of them, too.", (find("bag", 2),))])
    loser.play([Move("So number 2 would do as well.", (recommend(2),))])
    made = trajectory_of(build.trace, dialogue=[said])
    assert thoughts(made) == [m.think for m in GOOD]
    assert made.left_out.completions == 2


def test_an_answer_from_another_conversation_is_lost_context() -> None:
    build = TraceBuilder()
    NativeAgent(build).play(GOOD[:2])
    decide = NativeAgent(build)
    decide.messages = [SYSTEM_2, {"role": "user", "content": f"{QUERY}. Found: product 4711."}]
    decide.play([Move("So I take the one found.", (recommend(4711), terminate()))])
    reject = reject_of(build.trace)
    assert reject.reason is Reason.LOST_CONTEXT
    assert "4711" in reject.detail


def test_an_id_that_nobody_showed_is_no_lost_context_in_a_single_conversation() -> None:
    moves = [GOOD[0], Move("I take number 77 from memory.", (recommend(77), terminate()))]
    assert len(trajectory_of(NativeAgent().play(moves)).turns) == 2


@pytest.mark.parametrize("more", [{"failure": {"code": "agent.timeout"}}, {}])
def test_a_run_cut_before_its_recommendation_is_refused(more: JsonObject) -> None:
    trace = NativeAgent().play(GOOD[:2])
    record: JsonObject = {} if more else {"trace": trace.to_json() | {"limits_hit": ["calls"]}}
    reject = reject_of(trace, **record, **more)
    assert reject.reason is Reason.CUT_OFF
    assert ("agent.timeout" if more else "calls") in reject.detail


def test_a_run_cut_after_its_recommendation_is_its_turns_so_far() -> None:
    made = trajectory_of(NativeAgent().play(GOOD[:3]), failure={"code": "agent.timeout"})
    assert len(made.turns) == 3


def test_a_run_without_a_completion_is_refused() -> None:
    build = TraceBuilder()
    build.llm(SIDE, status=500)
    assert reject_of(build.trace).reason is Reason.NO_MODEL_TURN


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"schema": 99}, Reason.UNKNOWN_SCHEMA),
        ({"schema": 1}, Reason.UNREADABLE),
        ({"schema": 1, "messages": [], "events": [{}]}, Reason.UNREADABLE),
        ([], Reason.UNREADABLE),
        (None, Reason.UNREADABLE),
    ],
)
def test_a_trace_that_cannot_be_read_is_a_reject(broken: JsonObject, reason: Reason) -> None:
    assert reject_of(TraceBuilder().trace, trace=broken).reason is reason


def test_builders_make_what_normalising_makes() -> None:
    made = trajectory_of(NativeAgent().play(GOOD))
    assert [[c.name for c in t.calls] for t in made.turns] == [
        [c.name for c in t.calls] for t in trajectory(*GOOD).turns
    ]

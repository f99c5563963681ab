"""Turns put together: to the token, and only where they extend each other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from training.rollouts.segments import NO_TURN, segments_of
from training.types import Stop, Turn


def turn(prompt: tuple[int, ...], said: tuple[int, ...], logprob: float = -1.0) -> Turn:
    return Turn(prompt, said, tuple(logprob for _ in said), Stop.END)


def test_turns_that_extend_each_other_are_one_sequence() -> None:
    [segment] = segments_of([turn((1, 2), (3, 4), -0.5), turn((1, 2, 3, 4, 5, 6), (7,), -2.0)])
    assert segment.ids.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert segment.mask.tolist() == [False, False, True, True, False, False, True]
    assert segment.logprobs.tolist() == [0, 0, -0.5, -0.5, 0, 0, -2.0]
    assert segment.turn_of.tolist() == [-1, -1, 0, 0, -1, -1, 1]
    assert segment.turns == range(2)


def test_a_prompt_that_does_not_go_on_to_the_token_begins_another() -> None:
    first, second = segments_of([turn((1, 2), (3, 4)), turn((1, 2, 3, 9), (5,))])
    assert (first.turns, second.turns) == (range(1), range(1, 2))
    assert second.ids.tolist() == [1, 2, 3, 9, 5]
    assert second.turn_of.tolist() == [-1, -1, -1, -1, 1]


def test_a_prompt_that_is_shorter_begins_another() -> None:
    assert len(segments_of([turn((1, 2), (3, 4)), turn((1, 2, 3), (5,))])) == 2


def test_turns_without_a_token_are_left_out() -> None:
    assert segments_of([turn((1,), ())]) == ()


tokens = st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple)


@given(st.lists(st.tuples(st.booleans(), tokens, tokens), max_size=6))
def test_every_turn_is_learnt_from_after_the_very_prompt_it_was_sampled_after(
    script: list[tuple[bool, tuple[int, ...], tuple[int, ...]]],
) -> None:
    turns: list[Turn] = []
    held: tuple[int, ...] = ()
    for goes_on, given_ids, said in script:
        prompt = (*held, *given_ids) if goes_on else given_ids
        turns.append(turn(prompt, said))
        held = (*prompt, *said)
    segments = segments_of(turns)
    assert [i for segment in segments for i in segment.turns] == list(range(len(turns)))
    for segment in segments:
        assert segment.mask.tolist() == (segment.turn_of != NO_TURN).tolist()
        for index in segment.turns:
            places = (segment.turn_of == index).nonzero()[0]
            assert segment.ids[places].tolist() == list(turns[index].completion_ids)
            assert segment.ids[: places[0]].tolist() == list(turns[index].prompt_ids)

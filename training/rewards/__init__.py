"""What a rollout is worth, as a whole and turn by turn.

A reward is made of what the race's own scorer said of the rollout and of the conversation as
the gateway recorded it; a model never scores itself. All of them are pure functions but for
the process-reward head, which is trained.
"""

"""The season: one race a day, from qualifying to the champion, as a pure state machine."""

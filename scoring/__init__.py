"""Pure rules: typed problems and dialogues in, scores out. No I/O."""

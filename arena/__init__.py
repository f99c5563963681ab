"""The competition and its memory."""

"""From corpus rows and messages to token ids and loss masks."""

"""An OpenAI-compatible server that hosts rule-based models."""

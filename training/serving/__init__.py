"""A checkpoint behind the OpenAI wire: `arena model serve DIR`."""

"""The modules that SN15 agents import: `agent_interface` and `proxy_client`."""

"""Relations out: one stream per name, as server-sent events or by WebSocket."""

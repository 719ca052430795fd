"""Remote machines over TVM's RPC: trackers, sessions, and remote execution."""

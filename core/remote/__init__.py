"""Other machines, by TVM's RPC: trackers, sessions, and what runs there."""

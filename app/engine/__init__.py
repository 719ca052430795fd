"""Client side of the engine and the worker: processes, frames, requests and answers."""

"""The engine and the worker as the window knows them: processes, frames, requests and answers."""

"""The sandbox of processes that run code of opened files: bubblewrap, its limits, its folders."""

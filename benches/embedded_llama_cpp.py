"""llama.cpp for `embedded.rs`: MODEL and THREADS as arguments; a number of prompt tokens and a number
of tokens to write on each line of the input; tokens per second of both on each line of the output."""

import json
import os
import random
import sys
import urllib.request

import xllamacpp

# The library writes to the standard output; the answers go where that was.
out = os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
os.dup2(1, 2)
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.port, params.hostnames, params.n_parallel = 0, ["127.0.0.1"], 1
params.n_ctx, params.warmup = 2048, True
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(sys.argv[2])
server = xllamacpp.Server(params)
print("ready", file=out, flush=True)
for line in sys.stdin:
    prompt, write = map(int, line.split())
    body = {
        "prompt": [random.randint(100, 40_000) for _ in range(prompt)],
        "n_predict": write,
        "ignore_eos": True,
        "temperature": 0,
        "cache_prompt": False,
    }
    request = urllib.request.Request(
        server.listening_address + "/completion",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        timings = json.load(response)["timings"]
    assert timings["prompt_n"] == prompt and timings["predicted_n"] == write, timings
    print(timings["prompt_per_second"], timings["predicted_per_second"], file=out, flush=True)

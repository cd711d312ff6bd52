#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what training a small transformer in PyTorch on the CPU asks of its allocator.

  record_torch_training.py > torch_transformer.trace

PyTorch's profiler reports every allocation and every free of PyTorch's CPU allocator with address
and size. Recorded are two whole training steps after two that warm up. So that the trace can be
played again and again, what lived before the two steps and dies in them (the gradients of the step
before) is allocated at the beginning, and what lives on is freed at the end; what lives throughout
(weights, the optimizer's state) stays. Sizes are as PyTorch asked for them. The order of calls does
not depend on the machine; threads do not take part, since there is one allocation at a time anyway.
"""

import json
import os
import sys
import tempfile

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function

WARM_UP, RECORDED = 2, 2
BATCH, TOKENS, WIDTH, HEADS, LAYERS, VOCABULARY = 8, 128, 256, 4, 6, 1000


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Parameter(torch.zeros(TOKENS, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.1, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, LAYERS)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, batch):
        mask = nn.Transformer.generate_square_subsequent_mask(TOKENS)
        return self.head(self.layers(self.tokens(batch) + self.places, mask=mask, is_causal=True))


def train():
    """The profiler's events of a whole run, in order of time."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        model = Model()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        for step in range(WARM_UP + RECORDED):
            with record_function(f"step {step}"):
                batch = torch.randint(VOCABULARY, (BATCH, TOKENS + 1))
                logits = model(batch[:, :-1])
                loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                loss.item()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(path)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    return sorted((event for event in events if "ts" in event), key=lambda event: event["ts"])


def window(events):
    steps = {
        event["name"]: event
        for event in events
        if event.get("cat") == "user_annotation" and event["name"].startswith("step ")
    }
    last = steps[f"step {WARM_UP + RECORDED - 1}"]
    return steps[f"step {WARM_UP}"]["ts"], last["ts"] + last["dur"]


def trace(events):
    """The lines of the trace."""
    begin, end = window(events)
    before, calls, block_at, sizes = {}, [], {}, []

    def allocate(nbytes):
        calls.append(f"a {nbytes}")
        sizes.append(nbytes)
        return len(sizes) - 1

    # What is live at the beginning, and which of it dies within the window.
    memory = [event["args"] for event in events if event["name"] == "[memory]"]
    times = [event["ts"] for event in events if event["name"] == "[memory]"]
    freed = set()
    for time, call in zip(times, memory):
        address, nbytes = call["Addr"], call["Bytes"]
        if time < begin:
            if nbytes > 0:
                before[address] = nbytes
            else:
                before.pop(address, None)
        elif time <= end and nbytes < 0:
            freed.add(address)
    stays = {address: nbytes for address, nbytes in before.items() if address not in freed}
    for address, nbytes in before.items():
        if address in freed:
            block_at[address] = allocate(nbytes)

    for time, call in zip(times, memory):
        if not begin <= time <= end:
            continue
        address, nbytes = call["Addr"], call["Bytes"]
        if nbytes > 0:
            block_at[address] = allocate(nbytes)
        elif address in block_at:
            calls.append(f"f {block_at.pop(address)}")
    calls += [f"f {block}" for block in sorted(block_at.values(), reverse=True)]
    return [f"k {nbytes}" for nbytes in stays.values()] + calls, len(stays), len(sizes)


def main():
    lines, staying, allocations = trace(train())
    print(f"# {RECORDED} training steps of a transformer encoder in PyTorch {torch.__version__} on the")
    print(f"# CPU: {LAYERS} layers, width {WIDTH}, {HEADS} heads, batch {BATCH} x {TOKENS}, AdamW.")
    print("# Recorded by record_torch_training.py.")
    print(f"# {staying} blocks that stay, {allocations} allocations.")
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())

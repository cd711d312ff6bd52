# SPDX-License-Identifier: Apache-2.0
"""Training steps that leave their tensors in reference cycles: with collections under pressure they go
on, and with a plain retry they do not."""

import pytest
from support import run_python

PROGRAM = """
import gc, sys
import torch
from torch_support import small, pressure

how, collects = sys.argv[1], sys.argv[2] == "True"
small(40, **({} if collects else {"gc": False}))
gc.disable()  # so that garbage goes by pressure alone

model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)).to("spyre")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.randn(256, 64).to("spyre")

class Trainer:
    pass

def step_with_a_cycle():
    trainer = Trainer()
    trainer.me = trainer
    trainer.hidden = model[:2](data)
    model[2](trainer.hidden).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()

def step_with_a_traceback():
    hidden = model[:2](data)
    model[2](hidden).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    try:
        raise ValueError("metrics are not there")
    except ValueError as error:
        last_error = error  # holds the frame, which holds it and the tensors

step = step_with_a_cycle if how == "cycle" else step_with_a_traceback
done = 0
try:
    for _ in range(60):
        try:
            step()
        except torch.OutOfMemoryError:
            step()  # the plain retry
        done += 1
    print("survived", pressure("reclaims"), pressure("collections"), pressure("out_of_memory"))
except torch.OutOfMemoryError:
    print("failed", pressure("reclaims"), pressure("collections"), done)
"""


@pytest.mark.parametrize("how", ["cycle", "traceback"])
def test_only_collections_under_pressure_survive_garbage_in_cycles(how):
    verdict, reclaims, collections, out_of_memory = result = run(how, True)
    assert verdict == "survived", result
    assert int(reclaims) >= 1 and int(collections) >= int(reclaims)
    assert out_of_memory == "0"
    verdict, reclaims, collections, steps_done = result = run(how, False)
    assert verdict == "failed", result
    assert collections == "0" and int(steps_done) > 0


def run(how, collects):
    done = run_python(PROGRAM, how, collects)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()

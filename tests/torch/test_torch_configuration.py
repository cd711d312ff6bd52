# SPDX-License-Identifier: Apache-2.0
"""How the device is found, configured and made; and what is refused, and in which words."""

import pytest
from support import run_python

MODULES = "import os, sys, threading"
#: Without it `import torch` finds the back end by itself.
ALONE = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}


def run(source, **variables):
    done = run_python(MODULES + "\n" + source, **variables)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize("order", ["import torch", "import spyre_alloc.torch, torch", """
import torch
import spyre_alloc.torch
import spyre_alloc.torch
""", "import spyre_alloc, torch"], ids=["torch", "package", "torch-package-twice", "top"])
def test_importing_pytorch_suffices_and_any_order_does(order):
    assert run(order + """
assert torch.spyre is sys.modules["spyre_alloc.torch"]
print(torch.empty(32, device="spyre").device)
""") == ["spyre:0"]


@pytest.mark.parametrize("order", ["torch, spyre_alloc.torch", "spyre_alloc.torch, torch"])
def test_where_pytorch_does_not_look_an_import_does(order):
    assert run(f"import {order}\nprint(torch.ones(2, device='spyre').sum().item())", **ALONE) == ["2.0"]
    done = run_python("import torch; torch.empty(1, device='spyre')", **ALONE)
    assert done.returncode == 1 and "spyre" in done.stderr


def test_the_environment_configures_the_device():
    assert run(
        """
import torch
from spyre_alloc.torch import configuration
x = torch.empty(1, device="spyre")
allocator = configuration.allocator()
print(allocator.strategy, *torch.spyre.mem_get_info(), torch.spyre.memory_stats()["segment.all.current"])
""",
        SPYRE_ALLOC_STRATEGY="release-condvar",
        SPYRE_ALLOC_CAPACITY="1MiB",
        SPYRE_ALLOC_REGIONS="2",
        SPYRE_ALLOC_MAX_REGION="1MiB",
        SPYRE_ALLOC_ACQUISITION="upfront",
        SPYRE_ALLOC_MAX_WAIT="0.5",
    ) == ["release-condvar", str((1 << 20) - 128), str(1 << 20), "2"]


def test_what_is_given_to_configure_wins_over_the_environment():
    assert run(
        """
import torch
torch.spyre.memory.configure(capacity="2MiB", regions=1)
torch.empty(1, device="spyre")
print(torch.spyre.mem_get_info()[1])
""",
        SPYRE_ALLOC_CAPACITY="nonsense",
    ) == [str(2 << 20)]


def test_bad_configurations_are_refused_by_name_and_change_nothing():
    run("""
import torch
import spyre_alloc
from spyre_alloc.torch import configuration

def refused(error, *words, **options):
    try:
        torch.spyre.memory.configure(**options)
    except Exception as caught:
        assert type(caught) is error, repr(caught)
        assert all(word in str(caught) for word in words), str(caught)
    else:
        raise AssertionError(f"accepted: {options}")

refused(ValueError, "strategy is 'first-come'", "hold-mutex", strategy="first-come")
refused(TypeError, strategy=3)
refused(ValueError, "capacity", capacity="many")
refused(ValueError, "capacity is 200GiB", "max_region", capacity="200GiB")  # 7 regions of 16 GiB
refused(ValueError, "capacity", capacity="100000TiB", max_region="100000TiB")  # no such address space
refused(ValueError, "regions", regions=0)
refused(ValueError, "max_wait", max_wait=-1.0)
refused(ValueError, "OffsetDevice", device=spyre_alloc.OffsetDevice("1MiB"))
refused(ValueError, "exclude", device=spyre_alloc.SimulatedDevice("1MiB"), capacity="1MiB")
for variable, text, error in [
    ("SPYRE_ALLOC_STRATEGY", "fastest", ValueError),
    ("SPYRE_ALLOC_CAPACITY", "12 potatoes", ValueError),
    ("SPYRE_ALLOC_CAPACITY", "100000TiB", ValueError),
    ("SPYRE_ALLOC_REGIONS", "1.5", ValueError),
    ("SPYRE_ALLOC_REGIONS", "1000", ValueError),
    ("SPYRE_ALLOC_MAX_WAIT", "soon", ValueError),
    ("SPYRE_ALLOC_MAX_WAIT", "-1", ValueError),
    ("SPYRE_ALLOC_ACQUISITION", "never", ValueError),
    ("SPYRE_ALLOC_MAX_REGION", "", ValueError),
]:
    os.environ[variable] = text
    refused(error, variable, repr(text))
    try:
        torch.empty(1, device="spyre")            # the first use says the same
    except error as caught:
        assert variable in str(caught)
    else:
        raise AssertionError(f"accepted: {variable}={text}")
    try:
        torch.UntypedStorage(128, device="spyre") # and where PyTorch does not ask Python first
    except error as caught:
        assert variable in str(caught)
    del os.environ[variable]
assert not torch.spyre.is_initialized()
os.environ.update(SPYRE_ALLOC_CAPACITY="200GiB", SPYRE_ALLOC_MAX_REGION="64GiB")
torch.spyre.memory.configure()                    # right together, not each by itself
torch.spyre.memory.configure(device=spyre_alloc.SimulatedDevice("1MiB"), regions=1)
torch.empty(1, device="spyre")
assert torch.spyre.mem_get_info()[1] == 1 << 20
refused(RuntimeError, "in use")
try:
    spyre_alloc._torch.use(configuration.allocator()._capsule())
except RuntimeError as caught:
    assert "in use" in str(caught)
else:
    raise AssertionError("a second allocator was accepted")
""")


def test_a_callback_registered_before_first_use_is_called():
    assert run("""
import torch
called, kept = [], []
def callback(event):
    called.append(event.requested)
    kept.clear()
first = torch.spyre.register_memory_pressure_callback(callback)
second = torch.spyre.register_memory_pressure_callback(lambda event: called.append("never"))
second.unregister()
assert not torch.spyre.is_initialized()
torch.spyre.memory.configure(capacity="1MiB", regions=1, gc=False)
for _ in range(9):
    kept.append(torch.empty(1 << 17, dtype=torch.uint8, device="spyre"))
print(called)
""") == ["[131072]"]


def test_many_threads_make_one_allocator():
    assert run("""
import torch
barrier = threading.Barrier(8)
kept = []
def first_use():
    barrier.wait()
    kept.append(torch.UntypedStorage(128, device="spyre"))
threads = [threading.Thread(target=first_use) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(torch.spyre.memory_stats()["allocation.all.current"])
""") == ["8"]


FORK = """
import torch, traceback
{before}
child = os.fork()
if child == 0:
    code = 1
    try:
        {inside}
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), torch.ones(3, device="spyre").sum().item())
"""


def test_a_child_may_use_the_device_if_the_parent_had_not():
    assert run(FORK.format(before="", inside="torch.ones(3, device='spyre').sum().item()")) == ["0", "3.0"]


@pytest.mark.parametrize("use", [
    "torch.empty(3, device='spyre')",
    "torch.ones(3).to('spyre')",
    "x + x",
    "torch.UntypedStorage(128, device='spyre')",
    "torch.spyre._lazy_init()",
])
def test_after_use_a_child_gets_pytorchs_error(use):
    inside = f"""
        del x_child
        assert torch.spyre._is_in_bad_fork() and not torch.spyre.is_initialized()
        torch.manual_seed(3)
        torch.ones(3).sum()
        try:
            {use}
        except RuntimeError as error:
            assert "Cannot re-initialize spyre in forked subprocess" in str(error), error
        else:
            raise AssertionError("it worked")
"""
    before = "x = torch.ones(3, device='spyre'); x_child = torch.ones(3, device='spyre')"
    assert run(FORK.format(before=before, inside=inside.strip())) == ["0", "3.0"]

// SPDX-License-Identifier: Apache-2.0
// A program that embeds Python, and a thread of its own that goes on allocating after
// Py_FinalizeEx(). // case 48
//
// Exit status 0: all is as it should be; otherwise the text says what is not.
#include <cstdio>
#include <future>
#include <string>
#include <thread>

#include <Python.h>

#include <spyre/any_allocator.hpp>

namespace {

constexpr std::uint64_t kBlock = 1024;

// Cycles hold all memory; a collection under pressure frees one request's worth while Python runs.
constexpr char const* kProgram = R"(
import gc, sys
import spyre_alloc

gc.disable()
alloc = spyre_alloc.SpyreAllocator(STRATEGY, capacity=4 * 1024, regions=1, max_wait=0.2)
calls = []
alloc.register_memory_pressure_callback(calls.append)

def litter():
    for _ in range(4):
        buffer = alloc.allocate(1024)
        buffer.me = buffer

litter()
alloc.allocate(1024).free()
assert len(calls) == 1, calls
assert alloc.pressure_stats()["collections"] == 1, alloc.pressure_stats()
kept = [alloc.allocate(1024) for _ in range(4)]
capsule = alloc._capsule()
)";

[[noreturn]] void failed(std::string const& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::_Exit(1);
}

void expect(bool holds, char const* what) {
  if (!holds) failed(what);
}

std::shared_ptr<spyre::AnyAllocator> makeInPython(std::string const& strategy) {
  PyObject* const globals = PyModule_GetDict(PyImport_AddModule("__main__"));
  std::string const program = "STRATEGY = '" + strategy + "'\n" + kProgram;
  PyObject* const done = PyRun_String(program.c_str(), Py_file_input, globals, globals);
  if (done == nullptr) {
    PyErr_Print();
    failed("the Python part failed");
  }
  Py_DECREF(done);
  void* const held =
      PyCapsule_GetPointer(PyDict_GetItemString(globals, "capsule"), "spyre_alloc.AnyAllocator");
  return *static_cast<std::shared_ptr<spyre::AnyAllocator>*>(held);
}

/// What a thread that knows nothing of Python does, before and after its end.
void allocateUntilItFails(spyre::AnyAllocator& allocator) {
  std::vector<spyre::DataPtr> held;
  try {
    for (;;) held.push_back(allocator.allocate(kBlock));
  } catch (flex::OutOfMemoryError const& error) {
    expect(error.reason() == flex::FailureReason::interpreter_finalizing, error.what());
  }
  allocator.checkInvariants();
}

}  // namespace

int main(int count, char** arguments) {
  expect(count == 2, "usage: embedding STRATEGY");
  Py_Initialize();
  std::shared_ptr<spyre::AnyAllocator> const allocator = makeInPython(arguments[1]);

  std::promise<void> gone;
  std::thread thread([&allocator, is_gone = gone.get_future()]() mutable {
    is_gone.wait();
    allocateUntilItFails(*allocator);
  });
  expect(Py_FinalizeEx() == 0, "the interpreter did not end well");
  expect(Py_IsInitialized() == 0, "the interpreter is still there");
  gone.set_value();
  thread.join();
  allocateUntilItFails(*allocator);  // on the thread that had been Python's
  return 0;
}

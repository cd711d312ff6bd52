// SPDX-License-Identifier: Apache-2.0
// The extension module spyre_alloc._torch. Loading it registers the back end with PyTorch; what it
// offers Python is what the package's .py files need.

#include <memory>
#include <utility>
#include <vector>

#include <Python.h>
#include <torch/csrc/Generator.h>

#include <spyre/any_allocator.hpp>

#include "exit_gate.hpp"
#include "forked_child.hpp"
#include "memory_reporter.hpp"
#include "spyre_generator.hpp"
#include "torch_allocator.hpp"

namespace spyre_torch {
namespace {

constexpr char const* kAllocatorCapsule = "spyre_alloc.AnyAllocator";
constexpr char const* kReporterCapsule = "spyre_alloc.MemoryReporter";

PyObject* use(PyObject* /*module*/, PyObject* capsule) {
  auto const* const allocator = static_cast<std::shared_ptr<spyre::AnyAllocator> const*>(
      PyCapsule_GetPointer(capsule, kAllocatorCapsule));
  if (allocator == nullptr) return nullptr;
  try {
    TorchAllocator::instance().use(*allocator);
  } catch (std::exception const& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
  Py_RETURN_NONE;
}

PyObject* makeReporter(PyObject* /*module*/, PyObject* /*none*/) {
  auto holder = std::make_unique<std::shared_ptr<spyre::MemoryReporter>>(makeMemoryReporter());
  PyObject* const made = PyCapsule_New(holder.get(), kReporterCapsule, [](PyObject* dying) {
    delete static_cast<std::shared_ptr<spyre::MemoryReporter>*>(
        PyCapsule_GetPointer(dying, kReporterCapsule));
  });
  if (made != nullptr) (void)holder.release();
  return made;
}

PyObject* isInBadFork(PyObject* /*module*/, PyObject* /*none*/) {
  return PyBool_FromLong(inBadFork() ? 1 : 0);
}

PyObject* close(PyObject* /*module*/, PyObject* threads) {
  std::vector<unsigned long> idents;
  for (Py_ssize_t i = 0; i < PyList_Size(threads); ++i) {
    idents.push_back(PyLong_AsUnsignedLong(PyList_GetItem(threads, i)));
  }
  if (PyErr_Occurred() != nullptr) return nullptr;
  TorchAllocator::instance().stopWaiting();
  shutExitGate(idents);
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"use", &use, METH_O, "use(capsule): take all memory from that allocator from now on."},
    {"make_reporter", &makeReporter, METH_NOARGS, "make_reporter() -> capsule"},
    {"is_in_bad_fork", &isInBadFork, METH_NOARGS, "is_in_bad_fork() -> bool"},
    {"close", &close, METH_O,
     "close(idents): for atexit; keeps other threads from what is torn down, and waits for these."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_torch", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace spyre_torch

PyMODINIT_FUNC PyInit__torch() {
  PyObject* const module = PyModule_Create(&spyre_torch::definition);
  if (module == nullptr) return nullptr;
  PyObject* const generator = THPGenerator_initDefaultGenerator(spyre_torch::defaultGenerator());
  if (generator == nullptr || PyModule_AddObject(module, "default_generator", generator) < 0) {
    Py_XDECREF(generator);
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}

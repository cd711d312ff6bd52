// SPDX-License-Identifier: Apache-2.0
// The part of a runtime that prepares a job plan: it shares Python's allocator and knows nothing
// else of Python. native_thread.py uses it.

#define PY_SSIZE_T_CLEAN
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>

#include <Python.h>

#include <spyre/any_allocator.hpp>

namespace {

struct Result {
  unsigned served = 0;
  unsigned failed = 0;
};

// On a thread that Python has never seen. Where Python's garbage is in the way, the pressure
// callback attaches it for as long as it collects.
void allocateInALoop(spyre::AnyAllocator& allocator, std::uint64_t nbytes, unsigned rounds,
                     Result& result) {
  std::deque<spyre::DataPtr> plan;
  for (unsigned round = 0; round < rounds; ++round) {
    if (plan.size() == 4) plan.pop_front();
    try {
      plan.push_back(allocator.allocate(nbytes));
      ++result.served;
    } catch (flex::OutOfMemoryError const&) {
      ++result.failed;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));  // what the block is for
  }
}

PyObject* calibrate(PyObject* /*module*/, PyObject* arguments) {
  PyObject* capsule = nullptr;
  unsigned long long nbytes = 0;
  unsigned rounds = 0;
  if (PyArg_ParseTuple(arguments, "OKI", &capsule, &nbytes, &rounds) == 0) return nullptr;
  auto const* const found = static_cast<std::shared_ptr<spyre::AnyAllocator> const*>(
      PyCapsule_GetPointer(capsule, "spyre_alloc.AnyAllocator"));
  if (found == nullptr) return nullptr;
  std::shared_ptr<spyre::AnyAllocator> const allocator = *found;

  Result result;
  Py_BEGIN_ALLOW_THREADS  // never wait while attached: that thread may need the GIL to go on
      std::thread(allocateInALoop, std::ref(*allocator), nbytes, rounds, std::ref(result))
          .join();
  Py_END_ALLOW_THREADS return Py_BuildValue("II", result.served, result.failed);
}

PyMethodDef methods[] = {{"calibrate", &calibrate, METH_VARARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "calibrator", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_calibrator() { return PyModule_Create(&definition); }

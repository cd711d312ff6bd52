// SPDX-License-Identifier: Apache-2.0
// A module that breaks the lock rules, so that tests see the assertions fire.

#include <memory>
#include <vector>

#include <Python.h>

#include <flex/sync/lock_rules.hpp>
#include <spyre/any_allocator.hpp>

namespace {

using AllocatorPointer = std::shared_ptr<spyre::AnyAllocator>;

/// The allocator in a capsule of SpyreAllocator._bare_capsule(); null with a Python error set.
AllocatorPointer* unpack(PyObject* capsule) {
  return static_cast<AllocatorPointer*>(PyCapsule_GetPointer(capsule, "spyre_alloc.AnyAllocator"));
}

/// Breaks R1: takes the path that waits without detaching.
PyObject* waitAttached(PyObject* /*self*/, PyObject* args) {
  PyObject* capsule = nullptr;
  unsigned long long nbytes = 0;
  if (PyArg_ParseTuple(args, "OK", &capsule, &nbytes) == 0) return nullptr;
  AllocatorPointer* const allocator = unpack(capsule);
  if (allocator == nullptr) return nullptr;
  try {
    spyre::DataPtr const data = (*allocator)->allocate(nbytes);
  } catch (flex::OutOfMemoryError const& error) {
    PyErr_SetString(PyExc_MemoryError, error.what());
    return nullptr;
  }
  Py_RETURN_NONE;
}

/// Breaks R2 (or R3) when `owner` is under pressure: its callback keeps the mutex and allocates
/// from `other`, whose own pressure leads to Python.
PyObject* allocateUnderTheMutex(PyObject* /*self*/, PyObject* args) {
  PyObject* owner_capsule = nullptr;
  PyObject* other_capsule = nullptr;
  unsigned long long nbytes = 0;
  if (PyArg_ParseTuple(args, "OOK", &owner_capsule, &other_capsule, &nbytes) == 0) return nullptr;
  AllocatorPointer* const owner = unpack(owner_capsule);
  if (owner == nullptr) return nullptr;
  AllocatorPointer* const other = unpack(other_capsule);
  if (other == nullptr) return nullptr;
  // Registered for as long as the process lives.
  static auto& handles = *new std::vector<flex::CallbackHandle>;
  handles.push_back((*owner)->registerMemoryPressureCallback([other = *other, nbytes](flex::Lock&) {
    try {
      spyre::DataPtr const data = other->allocate(nbytes);
    } catch (flex::OutOfMemoryError const&) {
    }
  }));
  Py_RETURN_NONE;
}

/// Lets the rules be broken without an abort, for a detector that is to find it by itself.
PyObject* ignoreRules(PyObject* /*self*/, PyObject* /*args*/) {
  (void)flex::sync::setLockRuleHandler([](flex::sync::LockRule, char const*) noexcept {});
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"wait_attached", &waitAttached, METH_VARARGS, nullptr},
    {"allocate_under_the_mutex", &allocateUnderTheMutex, METH_VARARGS, nullptr},
    {"ignore_rules", &ignoreRules, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "flexalloc_rule_breaker",
    nullptr,
    -1,
    methods,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
};

}  // namespace

PyMODINIT_FUNC PyInit_flexalloc_rule_breaker() {
  PyObject* const module = PyModule_Create(&definition);
  if (module == nullptr) return nullptr;
  PyModule_AddIntConstant(module, "CHECKED", FLEXALLOC_CHECK_LOCK_RULES);
  return module;
}

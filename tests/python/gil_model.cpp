// SPDX-License-Identifier: Apache-2.0
// The GIL as ThreadSanitizer's lock-order detector should see it.
//
// The interpreter's lock is a flag with a condition variable, which no detector takes for a lock.
// Here a mutex that exists for the detector alone stands for it: a thread that waits for the
// allocator's mutex while attached has it already, and a thread that is about to attach waits for
// it. It is only ever held as a reader, so that it orders nothing and hides no race.

#include <Python.h>
#include <sanitizer/tsan_interface.h>

#include <flex/sync/lock_rules.hpp>

namespace {

char gil;  // its address is the mutex

bool attached() noexcept {
  if (Py_IsInitialized() == 0) return false;
  PyThreadState* const mine = PyGILState_GetThisThreadState();
#if PY_VERSION_HEX >= 0x030D0000
  return mine != nullptr && mine == PyThreadState_GetUnchecked();
#else
  return mine != nullptr && mine == _PyThreadState_UncheckedGet();
#endif
}

/// Holds it: what is locked now is locked after the GIL.
void waitBegins() noexcept {
  constexpr unsigned kHowever = __tsan_mutex_read_lock | __tsan_mutex_try_lock;
  __tsan_mutex_pre_lock(&gil, kHowever);
  __tsan_mutex_post_lock(&gil, kHowever, 0);
}

void waitEnds() noexcept {
  (void)__tsan_mutex_pre_unlock(&gil, __tsan_mutex_read_lock);
  __tsan_mutex_post_unlock(&gil, __tsan_mutex_read_lock);
}

/// Waits for it: what is held now is locked before the GIL.
void attaches() noexcept {
  if (attached()) return;
  __tsan_mutex_pre_lock(&gil, __tsan_mutex_read_lock);
  __tsan_mutex_post_lock(&gil, __tsan_mutex_read_lock, 0);
  waitEnds();
}

PyObject* install(PyObject* /*self*/, PyObject* /*args*/) {
  flex::sync::setInterpreterProbe({.attached = &attached,
                                   .wait_begins = &waitBegins,
                                   .wait_ends = &waitEnds,
                                   .attaches = &attaches});
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"install", &install, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "flexalloc_gil_model",
    nullptr,
    -1,
    methods,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
};

}  // namespace

PyMODINIT_FUNC PyInit_flexalloc_gil_model() {
  __tsan_mutex_create(&gil, __tsan_mutex_not_static);
  return PyModule_Create(&definition);
}

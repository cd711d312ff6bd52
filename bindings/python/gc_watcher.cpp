// SPDX-License-Identifier: Apache-2.0
#include "gc_watcher.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include <boost/chrono/duration.hpp>

#include "errors.hpp"
#include "gil.hpp"

namespace spyre_alloc {
namespace {

constexpr int kGenerations = 3;

/// Collections that started on this thread, by generation.
thread_local std::array<std::uint64_t, kGenerations> starts_here{};

int generationIn(PyObject* info) noexcept {
  PyObject* const value = PyDict_GetItemString(info, "generation");
  long const generation = value != nullptr ? PyLong_AsLong(value) : kGenerations - 1;
  PyErr_Clear();
  return static_cast<int>(std::clamp(generation, 0L, long{kGenerations - 1}));
}

}  // namespace

GcWatcher& GcWatcher::instance() noexcept {
  static GcWatcher& watcher = *new GcWatcher;  // outlives every thread that may look at it
  return watcher;
}

bool GcWatcher::install() noexcept {
  static PyMethodDef method{"spyre_alloc_gc_listener", &GcWatcher::onPhase, METH_VARARGS, nullptr};
  PyObject* const gc = PyImport_ImportModule("gc");
  if (gc == nullptr) return false;
  collect_ = PyObject_GetAttrString(gc, "collect");
  is_enabled_ = PyObject_GetAttrString(gc, "isenabled");
  get_freeze_count_ = PyObject_GetAttrString(gc, "get_freeze_count");
  callbacks_ = PyObject_GetAttrString(gc, "callbacks");
  Py_DECREF(gc);
  listener_ = PyCFunction_New(&method, nullptr);
  return collect_ != nullptr && is_enabled_ != nullptr && get_freeze_count_ != nullptr &&
         callbacks_ != nullptr && listener_ != nullptr && listening();
}

// Somebody may have emptied gc.callbacks: then a collection would look as if it had not run.
bool GcWatcher::listening() const noexcept {
  int const found = PySequence_Contains(callbacks_, listener_);
  if (found != 0) return found > 0;
  return PyList_Insert(callbacks_, 0, listener_) == 0;  // first to hear of a start
}

PyObject* GcWatcher::onPhase(PyObject* /*self*/, PyObject* args) noexcept {
  char const* phase = nullptr;
  PyObject* info = nullptr;
  if (PyArg_ParseTuple(args, "sO!", &phase, &PyDict_Type, &info) == 0) return nullptr;
  if (std::strcmp(phase, "start") == 0) {
    instance().started(generationIn(info));
  } else {
    instance().stopped();
  }
  Py_RETURN_NONE;
}

void GcWatcher::started(int generation) noexcept {
  collecting_thread_ = PyThread_get_thread_ident();
  ++starts_here[static_cast<std::size_t>(generation)];
}

void GcWatcher::stopped() noexcept {
  boost::unique_lock<boost::mutex> const lock(mutex_);
  collecting_thread_ = 0;
  stopped_.notify_all();
}

GcWatcher::Outcome GcWatcher::collect(int generation, std::chrono::nanoseconds patience) {
  auto const deadline = std::chrono::steady_clock::now() + patience;
  if (!listening()) PyErr_WriteUnraisable(callbacks_);
  for (;;) {
    if (collectingHere()) return Outcome::inside_collection;
    bool const busy = collecting_thread_ != 0;
    if (!busy) {
      std::uint64_t const& starts = starts_here[static_cast<std::size_t>(generation)];
      std::uint64_t const before = starts;
      PyObject* const found =
          parkingIfEnded([&] { return PyObject_CallFunction(collect_, "i", generation); });
      if (found == nullptr) {
        PyErr_WriteUnraisable(collect_);
        return Outcome::failed;
      }
      Py_DECREF(found);
      if (starts != before) return Outcome::ran;
    }
    if (std::chrono::steady_clock::now() >= deadline) return Outcome::busy;
    if (PyErr_CheckSignals() != 0) throw PythonAbort::capture();
    Detached const detached;
    boost::unique_lock<boost::mutex> lock(mutex_);
    // Nothing ran though no collection is known of: a listener that is called before ours, perhaps.
    bool const unknown = !busy;
    if (unknown || collecting_thread_ != 0) {
      stopped_.wait_for(lock, boost::chrono::milliseconds(10));
    }
  }
}

void GcWatcher::unlockAfterFork(bool in_child) noexcept {
  if (in_child) {
    new (&stopped_) boost::condition_variable;  // whoever waits there does not exist here
    if (!collectingHere()) collecting_thread_ = 0;
  }
  mutex_.unlock();
}

Py_ssize_t GcWatcher::frozenCount() const noexcept {
  PyObject* const count = PyObject_CallObject(get_freeze_count_, nullptr);
  Py_ssize_t const value = count != nullptr ? PyLong_AsSsize_t(count) : -1;
  Py_XDECREF(count);
  if (value < 0) PyErr_Clear();
  return value;
}

bool GcWatcher::enabled() const noexcept {
  PyObject* const answer = PyObject_CallObject(is_enabled_, nullptr);
  bool const enabled = answer == nullptr || PyObject_IsTrue(answer) != 0;
  Py_XDECREF(answer);
  PyErr_Clear();
  return enabled;
}

}  // namespace spyre_alloc

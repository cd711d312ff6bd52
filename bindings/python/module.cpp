// SPDX-License-Identifier: Apache-2.0
#include <new>
#include <string>

#include <boost/python.hpp>
#include <pthread.h>

#include <flex/bytes.hpp>
#include <flex/sync/lock_rules.hpp>
#include <flex/version.hpp>

#include "allocator.hpp"
#include "arguments.hpp"
#include "bound.hpp"
#include "buffer.hpp"
#include "detaching_allocator.hpp"
#include "errors.hpp"
#include "expose_device.hpp"
#include "expose_pressure.hpp"
#include "gc_watcher.hpp"
#include "gil.hpp"
#include "native_worker.hpp"

namespace spyre_alloc {
namespace {

void requireMainInterpreter() {
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    raise(PyExc_ImportError,
          "spyre_alloc works in the main interpreter only, not in a sub-interpreter");
  }
}

void onExit() {
  Allocator::stopAll();
  closeInterpreter();
}

std::uint64_t parseBytes(boost::python::object const& text) { return toBytes(text, "size", 0); }

// Not by os.register_at_fork: what others registered there runs Python code, so collections may
// begin in the child before it would be our turn.

void prepareFork() noexcept {
  lockForFork();
  GcWatcher::instance().lockForFork();
}

void afterFork(bool in_child) noexcept {
  GcWatcher::instance().unlockAfterFork(in_child);
  unlockAfterFork(in_child);
}

void installForkHandlers() {
  int const error = ::pthread_atfork(
      &prepareFork, [] { afterFork(false); }, [] { afterFork(true); });
  if (error != 0) throw std::bad_alloc();
}

}  // namespace
}  // namespace spyre_alloc

BOOST_PYTHON_MODULE(_core) {
  namespace bp = boost::python;
  using namespace spyre_alloc;

  requireMainInterpreter();
  bp::docstring_options const docstrings(true, false, false);
  bp::scope().attr("__version__") = std::string(flex::kVersion);

  exposeErrors();
  exposeBuffer();
  exposeDevices();
  exposePressure();
  exposeRegistration();
  exposeAllocator();
  exposeNativeWorker();

  // For the package's own programs and tests.
  bp::def("format_bytes", bound<&flex::formatBytes>, bp::arg("nbytes"));
  bp::def("parse_bytes", bound<&parseBytes>, bp::arg("text"));
  bp::def("interpreter_transitions", bound<&interpreterTransitions>);

  DetachingAllocator::initialise();
  if (!GcWatcher::instance().install()) bp::throw_error_already_set();
  flex::sync::setInterpreterProbe({.attached = &attached});
  installForkHandlers();
  bp::import("atexit").attr("register")(bp::make_function(bound<&onExit>));
}

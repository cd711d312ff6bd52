// SPDX-License-Identifier: Apache-2.0
#include "native_worker.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <limits>
#include <string>

#include <boost/chrono/duration.hpp>
#include <boost/thread/lock_guard.hpp>
#include <boost/thread/thread.hpp>
#include <unistd.h>

#include "allocator.hpp"
#include "arguments.hpp"
#include "bound.hpp"
#include "collectable.hpp"
#include "gil.hpp"

namespace spyre_alloc {
namespace bp = boost::python;

NativeWorker::NativeWorker(std::shared_ptr<spyre::AnyAllocator> allocator, std::uint64_t nbytes,
                           std::size_t live, std::uint64_t iterations, flex::Duration pause)
    : thread_([state = state_, allocator = std::move(allocator), nbytes, live, iterations, pause] {
        run(*state, *allocator, nbytes, live, iterations, pause);
      }) {}

NativeWorker::~NativeWorker() {
  // At the interpreter's end the thread may be parked for ever, and in a callback that it runs
  // itself it cannot wait for itself; it keeps what it uses alive.
  // In a forked child it does not exist.
  if (!thread_.joinable() || interpreterClosed() || ::getpid() != process_) return;
  if (onItself()) {
    thread_.interrupt();
  } else {
    stop();
  }
}

void NativeWorker::run(State& state, spyre::AnyAllocator& allocator, std::uint64_t nbytes,
                       std::size_t live, std::uint64_t iterations, flex::Duration pause) {
  std::deque<spyre::DataPtr> kept;
  for (std::uint64_t i = 0; iterations == 0 || i < iterations; ++i) {
    boost::this_thread::interruption_point();
    if (kept.size() == live) kept.pop_front();
    auto const began = std::chrono::steady_clock::now();
    try {
      kept.push_back(allocator.allocate(nbytes));
      ++state.allocations;
    } catch (flex::OutOfMemoryError const&) {
      ++state.out_of_memory;
    } catch (std::exception const&) {  // what a callback threw, passed on by option
      ++state.errors;
    }
    auto const took = std::chrono::steady_clock::now() - began;
    {
      boost::lock_guard<boost::mutex> const guard(state.mutex);
      if (state.latencies.size() < kMostLatencies) {
        constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
        state.latencies.push_back(static_cast<std::uint32_t>(std::min(took.count(), kMost)));
      }
    }
    if (pause > flex::Duration::zero()) {
      boost::this_thread::sleep_for(boost::chrono::nanoseconds(pause.count()));
    }
  }
}

bool NativeWorker::onItself() const noexcept {
  return thread_.get_id() == boost::this_thread::get_id();
}

void NativeWorker::requireThisProcess() const {
  if (::getpid() != process_) raise(PyExc_RuntimeError, "a NativeWorker ends with a fork");
}

void NativeWorker::requireOtherThread() const {
  requireThisProcess();
  if (onItself()) raise(PyExc_RuntimeError, "a NativeWorker cannot wait for itself");
}

void NativeWorker::stop() {
  requireOtherThread();
  Detached const detached;
  thread_.interrupt();
  if (thread_.joinable()) thread_.join();
}

void NativeWorker::join() {
  requireOtherThread();
  Detached const detached;
  if (thread_.joinable()) thread_.join();
}

bp::list NativeWorker::latencies() const {
  requireThisProcess();  // in another the mutex may be held for ever
  std::vector<std::uint32_t> copy;
  {
    boost::lock_guard<boost::mutex> const guard(state_->mutex);
    copy = state_->latencies;
  }
  bp::list list;
  for (std::uint32_t const latency : copy) list.append(latency);
  return list;
}

namespace {

std::shared_ptr<NativeWorker> make(bp::object const& owner, bp::object const& nbytes,
                                   bp::object const& live, bp::object const& iterations,
                                   bp::object const& pause) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  bp::extract<Allocator const&> const allocator(owner);
  if (!allocator.check()) {
    raise(PyExc_TypeError,
          std::string("allocator must be SpyreAllocator, not ") + Py_TYPE(owner.ptr())->tp_name);
  }
  return std::make_shared<NativeWorker>(
      allocator().shared(), toBytes(nbytes, "nbytes", 1),
      static_cast<std::size_t>(toInteger(live, "live", 1, 1'000'000)),
      static_cast<std::uint64_t>(toInteger(iterations, "iterations", 0, kMost)),
      toDuration(pause, "pause", 0.0, 60.0));
}

}  // namespace

void exposeNativeWorker() {
  bp::object const type =
      bp::class_<NativeWorker, std::shared_ptr<NativeWorker>, boost::noncopyable>(
          "NativeWorker",
          "NativeWorker(allocator, nbytes, live=1, iterations=0, pause=0.0)\n\n"
          "A C++ thread that never saw Python and allocates from `allocator`, for tests and "
          "comparisons.\n\n"
          "Parameters\n----------\n"
          "allocator : SpyreAllocator\n"
          "nbytes : int or str\n    Bytes of each block.\n"
          "live : int\n    Blocks that it keeps; the oldest is freed before the next is "
          "allocated.\n"
          "iterations : int\n    0: until ``stop()``.\n"
          "pause : float\n    Seconds of sleep between two allocations.",
          bp::no_init)
          .def("__init__",
               bp::make_constructor(bound<&make>, bp::default_call_policies(),
                                    (bp::arg("allocator"), bp::arg("nbytes"), bp::arg("live") = 1,
                                     bp::arg("iterations") = 0, bp::arg("pause") = 0.0)))
          .def(
              "stop", bound<&NativeWorker::stop>, bp::arg("self"),
              "stop() -> None\n\nEnd the thread, also while it waits for memory. Releases the GIL.")
          .def("join", bound<&NativeWorker::join>, bp::arg("self"),
               "join() -> None\n\nWait until all iterations are done. Releases the GIL.")
          .def("latencies", bound<&NativeWorker::latencies>, bp::arg("self"),
               "latencies() -> list of int\n\nNanoseconds that each of the first 2**20 allocations "
               "took.")
          .add_property("allocations", bound<&NativeWorker::allocations>, "int: Served so far.")
          .add_property("out_of_memory", bound<&NativeWorker::outOfMemory>, "int: Failed so far.")
          .add_property("errors", bound<&NativeWorker::errors>,
                        "int: Allocations that a callback's own exception ended so far.");
  makeCollectable<NativeWorker>(type);
}

}  // namespace spyre_alloc

// SPDX-License-Identifier: Apache-2.0
#include "allocator.hpp"

#include <algorithm>
#include <utility>

#include <boost/thread/lock_guard.hpp>
#include <boost/thread/mutex.hpp>

#include "arguments.hpp"
#include "errors.hpp"
#include "gil.hpp"

namespace spyre_alloc {
namespace bp = boost::python;

namespace {

/// The mutex is held while attached only, so that a fork, which is attached too, finds it free.
struct Instances {
  boost::mutex mutex;
  std::vector<std::weak_ptr<spyre::AnyAllocator>> list;
};

Instances& instances() noexcept {
  static Instances& all = *new Instances;  // the interpreter's end may come after static objects'
  return all;
}

/// Runs the callable for an event, on the requesting thread, attached for as long as it takes.
flex::ReclaimResult callPython(CallbackSlot const& slot, flex::Lock& lock,
                               flex::PressureEvent const& event) {
  lock.unlock();  // attaching with the mutex held would be a deadlock (rule R2)
  Attached const attached;
  if (!attached.ok()) {
    return {flex::ReclaimResult::Outcome::not_possible,
            flex::FailureReason::interpreter_finalizing,
            {}};
  }
  if (slot.callable == nullptr) return {};
  bp::handle<> const callable(bp::borrowed(slot.callable));  // it may unregister itself
  return parkingIfEnded([&]() -> flex::ReclaimResult {
    try {
      bp::object const argument(event);
      PyObject* const answer =
          PyObject_CallFunctionObjArgs(callable.get(), argument.ptr(), nullptr);
      if (answer == nullptr) PythonError::throwCurrent();
      Py_DECREF(answer);
      return {};
    } catch (bp::error_already_set const&) {
      PythonError::throwCurrent();
    }
  });
}

}  // namespace

Allocator::Allocator(std::shared_ptr<spyre::AnyAllocator> allocator,
                     std::optional<GcOptions> const& gc)
    : allocator_(std::make_shared<DetachingAllocator>(std::move(allocator))),
      device_(allocator_->device()) {
  if (gc) gc_.emplace(*allocator_, *gc);
  Instances& all = instances();
  boost::lock_guard<boost::mutex> const guard(all.mutex);
  std::erase_if(all.list, [](auto const& instance) { return instance.expired(); });
  all.list.push_back(allocator_);
}

Allocator::~Allocator() {
  auto slots = slots_;
  clearReferences();
  if (interpreterClosed()) {
    // Threads that the interpreter has ended may be parked inside a callback for ever: waiting for
    // them would hang the exit. The process takes its memory along.
    (void)new auto(std::move(slots));
    (void)new auto(std::move(gc_));
    (void)new auto(std::move(allocator_));
    return;
  }
  Detached const detached;  // ending a registration waits for callbacks that are running
  for (auto const& slot : slots) slot->handle.reset();
  gc_.reset();
  allocator_.reset();
}

void Allocator::stopAll() noexcept {
  std::vector<std::weak_ptr<spyre::AnyAllocator>> list;
  {
    boost::lock_guard<boost::mutex> const guard(instances().mutex);
    list = instances().list;
  }
  Detached const detached;
  for (auto const& instance : list) {
    if (auto const allocator = instance.lock()) {
      allocator->stopWaiting(flex::FailureReason::interpreter_finalizing);
    }
  }
}

Buffer* Allocator::wrap(spyre::DataPtr data, std::uint64_t nbytes) const {
  return new Buffer(std::move(data), nbytes, device_);
}

Buffer* Allocator::allocate(std::uint64_t nbytes, flex::AllocationDirective const& directive,
                            std::optional<flex::Duration> max_wait) {
  return wrap(allocator_->allocate(nbytes, directive, {.max_wait = max_wait}), nbytes);
}

Buffer* Allocator::tryAllocate(std::uint64_t nbytes, flex::AllocationDirective const& directive) {
  auto data = allocator_->tryAllocate(nbytes, directive);
  return data ? wrap(std::move(*data), nbytes) : nullptr;
}

std::shared_ptr<Registration> Allocator::registerCallback(bp::object const& callable,
                                                          int priority) {
  if (PyCallable_Check(callable.ptr()) == 0) {
    raise(PyExc_TypeError,
          std::string("fn must be callable, not ") + Py_TYPE(callable.ptr())->tp_name);
  }
  auto slot = std::make_shared<CallbackSlot>();
  slots_.push_back(slot);
  // Who unregistered is gone from the chain too, so its slot only takes up room.
  std::erase_if(slots_,
                [&](auto const& other) { return other != slot && other->callable == nullptr; });
  slot->handle = allocator_->registerMemoryPressureCallback(
      // Weak: the slot holds the registration, which holds this.
      [weak = std::weak_ptr(slot)](flex::Lock& lock, flex::PressureEvent const& event) {
        auto const here = weak.lock();
        return here != nullptr ? callPython(*here, lock, event) : flex::ReclaimResult{};
      },
      priority);
  slot->callable = bp::incref(callable.ptr());
  return std::make_shared<Registration>(std::move(slot));
}

flex::Statistics Allocator::statistics() const { return allocator_->statistics(); }

GcStatistics Allocator::gcStatistics() const noexcept {
  return gc_ ? gc_->statistics() : GcStatistics{};
}

int Allocator::traverse(visitproc visit, void* arg) const {
  for (auto const& slot : slots_) Py_VISIT(slot->callable);
  return 0;
}

void Allocator::clearReferences() noexcept {
  // Dropping a callable may run any code, which may register another. The slots stay: they hold the
  // registrations, which only the destructor may wait for.
  auto const slots = slots_;
  parkingIfEnded([&] {
    for (auto const& slot : slots) Py_CLEAR(slot->callable);
  });
}

void Registration::unregister() {
  auto const slot = slot_;
  Py_CLEAR(slot->callable);
  Detached const detached;
  slot->handle.unregister();
}

}  // namespace spyre_alloc

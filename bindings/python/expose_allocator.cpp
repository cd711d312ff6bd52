// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include <flex/offset_device.hpp>
#include <flex/simulated_device.hpp>

#include "allocator.hpp"
#include "arguments.hpp"
#include "bound.hpp"
#include "collectable.hpp"
#include "docs.hpp"
#include "gil.hpp"
#include "statistics_dict.hpp"

namespace spyre_alloc {
namespace bp = boost::python;

namespace {

constexpr double kLongestSeconds = 86400.0;

std::optional<GcOptions> toGcOptions(bp::object const& gc) {
  if (PyBool_Check(gc.ptr()) != 0) {
    return gc.ptr() == Py_True ? std::optional<GcOptions>(GcOptions{}) : std::nullopt;
  }
  if (bp::extract<GcOptions const&> options(gc); options.check()) return options();
  raise(PyExc_TypeError,
        fmt::format("gc must be True, False or GcOptions, not {}", Py_TYPE(gc.ptr())->tp_name));
}

/// The pointer that the Python object holds, null if it is no Device. Not a pointer of
/// Boost.Python's making: that one would keep the Python object, and let go of it on whatever
/// thread is the last.
template <class Device>
std::shared_ptr<flex::DeviceMemory> heldBy(bp::object const& object) {
  bp::extract<std::shared_ptr<Device>&> held(object);
  return held.check() ? held() : nullptr;
}

std::shared_ptr<flex::DeviceMemory> toDevice(bp::object const& device, bp::object const& capacity) {
  if (device.is_none()) {
    bp::object const size = capacity.is_none() ? bp::object("8GiB") : capacity;
    return std::make_shared<flex::SimulatedDevice>(toBytes(size, "capacity", flex::kGranule));
  }
  std::shared_ptr<flex::DeviceMemory> given = heldBy<flex::SimulatedDevice>(device);
  if (given == nullptr) given = heldBy<flex::OffsetDevice>(device);
  if (given != nullptr) {
    if (!capacity.is_none()) {
      raise(PyExc_ValueError, "capacity and device exclude each other: the device has a capacity");
    }
    return given;
  }
  raise(PyExc_TypeError, fmt::format("device must be SimulatedDevice, OffsetDevice or None, not {}",
                                     Py_TYPE(device.ptr())->tp_name));
}

flex::Acquisition toAcquisition(bp::object const& value) {
  std::string const text = toText(value, "acquisition");
  if (text == "upfront") return flex::Acquisition::upfront;
  if (text == "on-demand") return flex::Acquisition::on_demand;
  raise(PyExc_ValueError,
        fmt::format("acquisition is '{}'; allowed are 'upfront', 'on-demand'", text));
}

flex::RegionOrder toRegionOrder(bp::object const& value) {
  std::string const text = toText(value, "region_order");
  if (text == "most-free") return flex::RegionOrder::most_free;
  if (text == "least-free") return flex::RegionOrder::least_free;
  raise(PyExc_ValueError,
        fmt::format("region_order is '{}'; allowed are 'most-free', 'least-free'", text));
}

flex::CallbackErrors toCallbackErrors(bp::object const& value) {
  std::string const text = toText(value, "callback_errors");
  if (text == "cause") return flex::CallbackErrors::as_cause;
  if (text == "propagate") return flex::CallbackErrors::propagate;
  raise(PyExc_ValueError,
        fmt::format("callback_errors is '{}'; allowed are 'cause', 'propagate'", text));
}

std::string toStrategy(bp::object const& value) {
  std::string text = toText(value, "strategy");
  auto const names = spyre::strategyNames();
  if (std::ranges::find(names, text) != names.end()) return text;
  raise(PyExc_ValueError,
        fmt::format("strategy is '{}'; allowed are '{}'", text, fmt::join(names, "', '")));
}

/// From other extension modules: a capsule around a std::shared_ptr<spyre::MemoryReporter>*.
std::shared_ptr<spyre::MemoryReporter> toReporter(bp::object const& capsule) {
  if (capsule.is_none()) return nullptr;
  void* const reporter = PyCapsule_GetPointer(capsule.ptr(), "spyre_alloc.MemoryReporter");
  if (reporter == nullptr) bp::throw_error_already_set();
  return *static_cast<std::shared_ptr<spyre::MemoryReporter>*>(reporter);
}

std::shared_ptr<Allocator> make(bp::object const& strategy, bp::object const& capacity,
                                bp::object const& regions, bp::object const& device,
                                bp::object const& max_wait, bp::object const& gc,
                                bp::object const& acquisition, bp::object const& max_region,
                                bp::object const& fallback_sizes, bp::object const& region_order,
                                bp::object const& overtake_limit, bp::object const& callback_errors,
                                bp::object const& look_again, bp::object const& reporter) {
  if (interpreterClosed()) raise(PyExc_RuntimeError, "the interpreter is shutting down");
  spyre::AnyAllocatorOptions options;
  flex::AllocatorOptions& allocator = options.allocator;
  std::string const name = toStrategy(strategy);
  allocator.acquisition = toAcquisition(acquisition);
  allocator.regions =
      static_cast<std::uint32_t>(toInteger(regions, "regions", 1, flex::kMaxRegionsPerDomain));
  allocator.max_region_bytes = toBytes(max_region, "max_region", flex::kGranule);
  if (!fallback_sizes.is_none()) {
    allocator.fallback_sizes.clear();
    for (bp::object const& size :
         toItems(fallback_sizes, "fallback_sizes", "a list or tuple of sizes, or None")) {
      allocator.fallback_sizes.push_back(toBytes(size, "fallback_sizes", flex::kGranule));
    }
    if (allocator.fallback_sizes.empty()) {
      raise(PyExc_ValueError, "fallback_sizes is empty; allowed are one size and more, or None");
    }
  }
  allocator.region_order = toRegionOrder(region_order);
  if (max_wait.is_none()) {
    raise(PyExc_TypeError, "max_wait must be a number, not NoneType: every wait is bounded");
  }
  allocator.max_wait = *toMaxWait(max_wait);
  allocator.callback_errors = toCallbackErrors(callback_errors);
  options.release_condvar.overtake_limit = static_cast<std::uint64_t>(
      toInteger(overtake_limit, "overtake_limit", 0, std::numeric_limits<std::int64_t>::max()));
  options.release_condvar.look_again = toDuration(look_again, "look_again", 0.001, kLongestSeconds);
  options.reporter = toReporter(reporter);
  std::optional<GcOptions> const gc_options = toGcOptions(gc);
  std::shared_ptr<flex::DeviceMemory> memory = toDevice(device, capacity);

  std::shared_ptr<spyre::AnyAllocator> made;
  {
    Detached const detached;  // the device may take its time
    made = spyre::makeAllocator(name, std::move(memory), std::move(options));
  }
  return std::make_shared<Allocator>(std::move(made), gc_options);
}

bp::object own(Buffer* buffer) {
  using Convert = bp::manage_new_object::apply<Buffer*>::type;
  return bp::object(bp::handle<>(Convert()(buffer)));
}

bp::object allocate(Allocator& self, bp::object const& nbytes, bp::object const& domain,
                    bp::object const& near, bp::object const& policy, bp::object const& memory_type,
                    bp::object const& max_wait) {
  return own(self.allocate(toBytes(nbytes, "nbytes", 0),
                           toDirective(domain, near, policy, memory_type), toMaxWait(max_wait)));
}

bp::object tryAllocate(Allocator& self, bp::object const& nbytes, bp::object const& domain,
                       bp::object const& near, bp::object const& policy,
                       bp::object const& memory_type) {
  Buffer* const buffer = self.tryAllocate(toBytes(nbytes, "nbytes", 0),
                                          toDirective(domain, near, policy, memory_type));
  return buffer != nullptr ? own(buffer) : bp::object();
}

std::shared_ptr<Registration> registerCallback(Allocator& self, bp::object const& fn,
                                               bp::object const& priority) {
  return self.registerCallback(
      fn, static_cast<int>(toInteger(priority, "priority", std::numeric_limits<int>::min(),
                                     std::numeric_limits<int>::max())));
}

bp::dict memoryStats(Allocator const& self) { return memoryStatsDict(self.statistics()); }

bp::dict pressureStats(Allocator const& self) {
  return pressureStatsDict(self.statistics().pressure, self.gcStatistics());
}

bp::tuple memoryInfo(Allocator const& self) {
  flex::Statistics const now = self.statistics();
  return bp::make_tuple(now.capacity - static_cast<std::uint64_t>(now.allocated_bytes.current),
                        now.capacity);
}

/// Calls a member that blocks.
template <auto Member>
auto forward(Allocator& self) {
  return (self.any().*Member)();
}

std::string strategyOf(Allocator const& self) { return std::string(self.any().strategy()); }

std::string repr(Allocator const& self) {
  flex::Statistics const now = self.statistics();
  return fmt::format("<spyre_alloc.SpyreAllocator, {}, {} of {} allocated>", self.any().strategy(),
                     flex::formatBytes(static_cast<std::uint64_t>(now.allocated_bytes.current)),
                     flex::formatBytes(now.capacity));
}

bp::object inCapsule(std::shared_ptr<spyre::AnyAllocator> allocator) {
  auto holder = std::make_unique<std::shared_ptr<spyre::AnyAllocator>>(std::move(allocator));
  bp::handle<> const made(
      PyCapsule_New(holder.get(), "spyre_alloc.AnyAllocator", [](PyObject* dying) {
        delete static_cast<std::shared_ptr<spyre::AnyAllocator>*>(
            PyCapsule_GetPointer(dying, "spyre_alloc.AnyAllocator"));
      }));
  (void)holder.release();
  return bp::object(made);
}

/// For other extension modules: a capsule around a std::shared_ptr<spyre::AnyAllocator>*, which may
/// be called attached.
bp::object capsule(Allocator const& self) { return inCapsule(self.shared()); }

/// For tests of the lock rules: around the one that must not.
bp::object bareCapsule(Allocator const& self) { return inCapsule(self.shared()->bare()); }

}  // namespace

void exposeAllocator() {
  bp::object const none;
  bp::object const type =
      bp::class_<Allocator, std::shared_ptr<Allocator>, boost::noncopyable>(
          "SpyreAllocator", docs::kAllocator, bp::no_init)
          .def("__init__",
               bp::make_constructor(
                   bound<&make>, bp::default_call_policies(),
                   (bp::arg("strategy") = "hold-mutex", bp::arg("capacity") = none,
                    bp::arg("regions") = 7, bp::arg("device") = none, bp::arg("max_wait") = 1.0,
                    bp::arg("gc") = true, bp::arg("acquisition") = "upfront",
                    bp::arg("max_region") = "16GiB", bp::arg("fallback_sizes") = none,
                    bp::arg("region_order") = "most-free", bp::arg("overtake_limit") = 1024,
                    bp::arg("callback_errors") = "cause", bp::arg("look_again") = 0.1,
                    bp::arg("_reporter") = none)))
          .def(
              "allocate", bound<&allocate>,
              (bp::arg("self"), bp::arg("nbytes"), bp::arg("domain") = none, bp::arg("near") = none,
               bp::arg("policy") = none, bp::arg("memory_type") = none, bp::arg("max_wait") = none),
              docs::kAllocate)
          .def("try_allocate", bound<&tryAllocate>,
               (bp::arg("self"), bp::arg("nbytes"), bp::arg("domain") = none,
                bp::arg("near") = none, bp::arg("policy") = none, bp::arg("memory_type") = none),
               docs::kTryAllocate)
          .def("register_memory_pressure_callback", bound<&registerCallback>,
               (bp::arg("self"), bp::arg("fn"), bp::arg("priority") = 0), docs::kRegister)
          .def("memory_stats", bound<&memoryStats>, bp::arg("self"), docs::kMemoryStats)
          .def("pressure_stats", bound<&pressureStats>, bp::arg("self"), docs::kPressureStats)
          .def("memory_info", bound<&memoryInfo>, bp::arg("self"), docs::kMemoryInfo)
          .def("empty_cache", bound<&forward<&spyre::AnyAllocator::emptyCache>>, bp::arg("self"),
               docs::kEmptyCache)
          .def("reset_peak_memory_stats",
               bound<&forward<&spyre::AnyAllocator::resetPeakStatistics>>, bp::arg("self"),
               docs::kResetPeak)
          .def("reset_accumulated_memory_stats",
               bound<&forward<&spyre::AnyAllocator::resetAccumulatedStatistics>>, bp::arg("self"),
               docs::kResetAccumulated)
          .def("check_invariants", bound<&forward<&spyre::AnyAllocator::checkInvariants>>,
               bp::arg("self"), docs::kCheckInvariants)
          .add_property("strategy", bound<&strategyOf>,
                        "str: ``'hold-mutex'`` or ``'release-condvar'``.")
          .def("_capsule", bound<&capsule>, bp::arg("self"))
          .def("_bare_capsule", bound<&bareCapsule>, bp::arg("self"))
          .def("__repr__", bound<&repr>);
  makeCollectable<Allocator>(type);
}

void exposeRegistration() {
  bp::object const type =
      bp::class_<Registration, std::shared_ptr<Registration>, boost::noncopyable>(
          "Registration",
          "A registered memory-pressure callback. Dropping this object does not unregister it.",
          bp::no_init)
          .def("unregister", bound<&Registration::unregister>, bp::arg("self"),
               "unregister() -> None\n\n"
               "Unregister the callback; again does nothing. Blocks, with the GIL released, until\n"
               "no other thread is inside the callback; from inside it returns at once.")
          .add_property("registered", bound<&Registration::registered>,
                        "bool: Whether the callback can still be called.");
  makeCollectable<Registration>(type);
}

}  // namespace spyre_alloc

// SPDX-License-Identifier: Apache-2.0
#include "expose_device.hpp"

#include <limits>
#include <memory>

#include <boost/python.hpp>

#include <flex/offset_device.hpp>
#include <flex/simulated_device.hpp>

#include "arguments.hpp"
#include "bound.hpp"
#include "collectable.hpp"

namespace spyre_alloc {
namespace bp = boost::python;

namespace {

flex::DeviceTopology toTopology(bp::object const& capacity, bp::object const& domains) {
  auto const count =
      static_cast<flex::DomainId>(toInteger(domains, "domains", 1, flex::kMaxDomains));
  std::uint64_t const each = toBytes(capacity, "capacity", flex::kGranule * count) / count;
  flex::DeviceTopology topology;
  topology.domain_capacity.assign(count, each);
  return topology;
}

std::uint64_t toLimit(bp::object const& value, char const* name) {
  return value.is_none() ? std::numeric_limits<std::uint64_t>::max()
                         : toBytes(value, name, flex::kGranule);
}

std::shared_ptr<flex::SimulatedDevice> makeSimulated(
    bp::object const& capacity, bp::object const& domains, bp::object const& table_entries,
    bp::object const& max_region, bp::object const& budget, bp::object const& latency,
    bp::object const& fail_on_call) {
  constexpr auto kMostEntries = std::numeric_limits<std::uint32_t>::max();
  flex::SimulatedDeviceOptions options;
  options.topology = toTopology(capacity, domains);
  options.table_entries =
      table_entries.is_none()
          ? kMostEntries
          : static_cast<std::uint32_t>(toInteger(table_entries, "table_entries", 0, kMostEntries));
  options.max_region_bytes = toLimit(max_region, "max_region");
  options.budget_bytes = toLimit(budget, "budget");
  options.latency = toDuration(latency, "latency", 0.0, 60.0);
  options.fail_on_call =
      fail_on_call.is_none()
          ? 0
          : static_cast<std::uint64_t>(toInteger(fail_on_call, "fail_on_call", 1,
                                                 std::numeric_limits<std::int64_t>::max()));
  return std::make_shared<flex::SimulatedDevice>(std::move(options));
}

std::shared_ptr<flex::OffsetDevice> makeOffset(bp::object const& capacity,
                                               bp::object const& domains) {
  return std::make_shared<flex::OffsetDevice>(toTopology(capacity, domains));
}

}  // namespace

void exposeDevices() {
  bp::object const none;
  bp::object const base_type =
      bp::class_<flex::DeviceMemory, std::shared_ptr<flex::DeviceMemory>, boost::noncopyable>(
          "DeviceMemory", "What regions are taken from. Base of the devices; not made by itself.",
          bp::no_init);
  makeCollectable<flex::DeviceMemory>(base_type);
  bp::object const simulated_type =
      bp::class_<flex::SimulatedDevice, bp::bases<flex::DeviceMemory>,
                 std::shared_ptr<flex::SimulatedDevice>, boost::noncopyable>(
          "SimulatedDevice",
          "SimulatedDevice(capacity='8GiB', domains=1, table_entries=None, max_region=None, "
          "budget=None,\n"
          "                latency=0.0, fail_on_call=None)\n\n"
          "A device made of host memory, with the limits of real firmware. Address space is "
          "reserved and\n"
          "costs only what is touched.\n\n"
          "Parameters\n----------\n"
          "capacity : int or str\n    Bytes of all domains together.\n"
          "domains : int\n    NUMA-like banks of equal size, 1 to 64.\n"
          "table_entries : int, optional\n    Regions that may exist at once.\n"
          "max_region, budget : int or str, optional\n    Bytes of one region; of all together.\n"
          "latency : float\n    Seconds that every request for a region takes, 0 to 60.\n"
          "fail_on_call : int, optional\n    The n-th request for a region (from 1) fails.",
          bp::no_init)
          .def("__init__",
               bp::make_constructor(bound<&makeSimulated>, bp::default_call_policies(),
                                    (bp::arg("capacity") = "8GiB", bp::arg("domains") = 1,
                                     bp::arg("table_entries") = none, bp::arg("max_region") = none,
                                     bp::arg("budget") = none, bp::arg("latency") = 0.0,
                                     bp::arg("fail_on_call") = none)))
          .add_property("calls", bound<&flex::SimulatedDevice::calls>,
                        "int: Requests for a region so far.")
          .add_property("bytes_in_use", bound<&flex::SimulatedDevice::bytesInUse>,
                        "int: Bytes of all regions that exist now.");
  makeCollectable<flex::SimulatedDevice>(simulated_type);
  bp::object const offset_type =
      bp::class_<flex::OffsetDevice, bp::bases<flex::DeviceMemory>,
                 std::shared_ptr<flex::OffsetDevice>, boost::noncopyable>(
          "OffsetDevice",
          "OffsetDevice(capacity='8GiB', domains=1)\n\n"
          "Addresses with nothing behind them: for benchmarks and for planning a layout.\n\n"
          "Parameters\n----------\n"
          "capacity : int or str\n    Bytes of all domains together.\n"
          "domains : int\n    NUMA-like banks of equal size, 1 to 64.",
          bp::no_init)
          .def("__init__",
               bp::make_constructor(bound<&makeOffset>, bp::default_call_policies(),
                                    (bp::arg("capacity") = "8GiB", bp::arg("domains") = 1)));
  makeCollectable<flex::OffsetDevice>(offset_type);
}

}  // namespace spyre_alloc

// SPDX-License-Identifier: Apache-2.0
#include "statistics_dict.hpp"

#include <string>

namespace spyre_alloc {
namespace bp = boost::python;

namespace {

void addStat(bp::dict& dict, std::string const& name, flex::Stat const& stat) {
  dict[name + ".all.current"] = stat.current;
  dict[name + ".all.peak"] = stat.peak;
  dict[name + ".all.allocated"] = stat.allocated;
  dict[name + ".all.freed"] = stat.freed;
}

}  // namespace

bp::dict memoryStatsDict(flex::Statistics const& statistics) {
  bp::dict dict;
  addStat(dict, "allocation", statistics.allocations);
  addStat(dict, "allocated_bytes", statistics.allocated_bytes);
  addStat(dict, "requested_bytes", statistics.requested_bytes);
  addStat(dict, "segment", statistics.regions);
  addStat(dict, "reserved_bytes", statistics.reserved_bytes);
  dict["free_bytes"] = statistics.free;
  dict["largest_free_bytes"] = statistics.largest_free;
  dict["capacity_bytes"] = statistics.capacity;
  dict["blocks"] = statistics.blocks;
  dict["metadata_bytes"] = statistics.metadata_bytes;
  dict["misuses"] = statistics.misuses;
  dict["num_alloc_retries"] = statistics.pressure.events;
  dict["num_ooms"] = statistics.pressure.outOfMemory();
  return dict;
}

bp::dict pressureStatsDict(flex::PressureStatistics const& pressure, GcStatistics const& gc) {
  bp::dict dict;
  dict["events"] = pressure.events;
  dict["reclaims"] = pressure.reclaims;
  dict["coalesced"] = pressure.coalesced;
  dict["handoffs"] = pressure.handoffs;
  dict["overtakes"] = pressure.overtakes;
  dict["waits"] = pressure.waits;
  dict["wait_ns"] = pressure.wait_time.count();
  dict["timeouts"] = pressure.timeouts;
  dict["callbacks"] = pressure.callbacks;
  dict["callback_errors"] = pressure.callback_errors;
  dict["callbacks_skipped"] = pressure.callbacks_skipped;
  dict["callback_ns"] = pressure.callback_time.count();
  dict["bytes_reclaimed"] = pressure.bytes_reclaimed;
  dict["growths"] = pressure.growths;
  dict["deferred_frees"] = pressure.deferred_frees;
  dict["collections"] = gc.collections;
  dict["collections_skipped"] = gc.collections_skipped;
  dict["collections_fruitless"] = gc.fruitless;
  dict["collection_ns"] = gc.time.count();
  dict["out_of_memory"] = pressure.outOfMemory();
  bp::dict failures;
  for (std::size_t i = 0; i < flex::kFailureReasons; ++i) {
    failures[std::string(flex::toString(static_cast<flex::FailureReason>(i)))] =
        pressure.failures[i];
  }
  dict["failures"] = failures;
  return dict;
}

}  // namespace spyre_alloc

// SPDX-License-Identifier: Apache-2.0
#include "expose_pressure.hpp"

#include <string>

#include <boost/python.hpp>

#include <flex/pressure.hpp>

#include "arguments.hpp"
#include "bound.hpp"
#include "collectable.hpp"
#include "python_gc.hpp"

namespace spyre_alloc {
namespace bp = boost::python;

namespace {

bp::object domainOf(flex::PressureEvent const& event) {
  return event.domain ? bp::object(*event.domain) : bp::object();
}

std::string memoryTypeOf(flex::PressureEvent const& event) {
  return std::string(flex::toString(event.memory_type));
}

std::shared_ptr<GcOptions> makeGcOptions(bp::object const& young_first,
                                         bp::object const& respect_disable,
                                         bp::object const& patience, bp::object const& min_interval,
                                         bp::object const& budget, bp::object const& burst) {
  constexpr double kHour = 3600.0;
  return std::make_shared<GcOptions>(
      GcOptions{.young_first = toBool(young_first, "young_first"),
                .respect_disable = toBool(respect_disable, "respect_disable"),
                .patience = toSeconds(patience, "patience", 0.0, kHour),
                .min_interval = toSeconds(min_interval, "min_interval", 0.0, kHour),
                .budget = toSeconds(budget, "budget", 0.0, 1.0),
                .burst = toSeconds(burst, "burst", 0.0, kHour)});
}

}  // namespace

void exposePressure() {
  using flex::PressureEvent;
  bp::object const event_type =
      bp::class_<PressureEvent>(
          "PressureEvent",
          "A request that met exhaustion, as a callback sees it. Sizes in bytes; `free`, "
          "`largest_free`\n"
          "and `total` speak of the wanted domains and memory type just before the callback.",
          bp::no_init)
          .def_readonly("requested", &PressureEvent::requested, "int: Bytes asked for.")
          .def_readonly("free", &PressureEvent::free, "int: Free bytes.")
          .def_readonly("largest_free", &PressureEvent::largest_free, "int: Largest free block.")
          .def_readonly("total", &PressureEvent::total, "int: Bytes of all regions.")
          .def_readonly("attempt", &PressureEvent::attempt,
                        "int: How often the request was searched for in vain, from 1.")
          .def_readonly("generation", &PressureEvent::generation,
                        "int: Number of the reclaim that runs this callback.")
          .add_property("domain", bound<&domainOf>,
                        "int or None: Set where the request named just one.")
          .add_property("memory_type", bound<&memoryTypeOf>, "str: ``'tensor'`` or ``'program'``.");
  makeCollectable<PressureEvent>(event_type);
  bp::object const options_type =
      bp::class_<GcOptions, std::shared_ptr<GcOptions>>(
          "GcOptions",
          "GcOptions(young_first=False, respect_disable=False, patience=1.0, min_interval=0.0,\n"
          "          budget=0.5, burst=1.0)\n\n"
          "How Python's cyclic garbage collector runs under pressure. Times in seconds.\n\n"
          "Parameters\n----------\n"
          "young_first : bool\n    Collect generations 0 and 1 before all; each may suffice.\n"
          "respect_disable : bool\n    Do nothing while ``gc.disable()`` is in force.\n"
          "patience : float\n    How long to wait for a collection that another thread is "
          "running.\n"
          "min_interval : float\n    From the end of a fruitless collection to the next.\n"
          "budget : float\n    Share of time, 0 to 1, that fruitless collections may take.\n"
          "burst : float\n    Seconds of fruitless collecting allowed at once. 0: never collect.",
          bp::no_init)
          .def("__init__", bp::make_constructor(
                               bound<&makeGcOptions>, bp::default_call_policies(),
                               (bp::arg("young_first") = false, bp::arg("respect_disable") = false,
                                bp::arg("patience") = 1.0, bp::arg("min_interval") = 0.0,
                                bp::arg("budget") = 0.5, bp::arg("burst") = 1.0)))
          .def_readonly("young_first", &GcOptions::young_first,
                        "bool: Whether young generations are collected first.")
          .def_readonly("respect_disable", &GcOptions::respect_disable,
                        "bool: Whether ``gc.disable()`` is respected.")
          .def_readonly("patience", &GcOptions::patience,
                        "float: Seconds to wait for another collection.")
          .def_readonly("min_interval", &GcOptions::min_interval,
                        "float: Seconds between fruitless collections.")
          .def_readonly("budget", &GcOptions::budget,
                        "float: Share of time for fruitless collections.")
          .def_readonly("burst", &GcOptions::burst,
                        "float: Seconds of fruitless collecting at once.");
  makeCollectable<GcOptions>(options_type);
}

}  // namespace spyre_alloc

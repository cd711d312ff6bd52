// SPDX-License-Identifier: Apache-2.0
#pragma once
// Python arguments, checked. Every function raises (throws error_already_set) a TypeError,
// ValueError or OverflowError that names the argument, what it was, and what is allowed.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <boost/python.hpp>

#include <flex/directive.hpp>
#include <flex/sync/clock.hpp>

namespace spyre_alloc {

[[noreturn]] void raise(PyObject* type, std::string const& text);

/// An int (or anything with __index__), or a text such as "64MiB". `least` is the smallest allowed.
[[nodiscard]] std::uint64_t toBytes(boost::python::object const& value, char const* name,
                                    std::uint64_t least);
/// An int in [least, most]; no bool.
[[nodiscard]] std::int64_t toInteger(boost::python::object const& value, char const* name,
                                     std::int64_t least, std::int64_t most);
/// A real number of seconds in [least, most]; no bool, no nan.
[[nodiscard]] double toSeconds(boost::python::object const& value, char const* name, double least,
                               double most);
/// Seconds in [least, most].
[[nodiscard]] flex::Duration toDuration(boost::python::object const& value, char const* name,
                                        double least, double most);
/// Seconds in flex::kLongestWait.
inline constexpr double kLongestSeconds = std::chrono::duration<double>(flex::kLongestWait).count();
/// Seconds in [0, 24 h], or None.
[[nodiscard]] std::optional<flex::Duration> toMaxWait(boost::python::object const& value);
/// The items of a list or tuple; `allowed` is for the error's text.
[[nodiscard]] std::vector<boost::python::object> toItems(boost::python::object const& value,
                                                         char const* name, char const* allowed);
[[nodiscard]] bool toBool(boost::python::object const& value, char const* name);
[[nodiscard]] std::string toText(boost::python::object const& value, char const* name);

/// The placement arguments of allocate(): domain (an int, a sequence of ints or None), near (an int
/// or None), policy ("bind", "interleave", "scatter"), memory_type ("tensor", "program").
[[nodiscard]] flex::AllocationDirective toDirective(boost::python::object const& domain,
                                                    boost::python::object const& near,
                                                    boost::python::object const& policy,
                                                    boost::python::object const& memory_type);

}  // namespace spyre_alloc

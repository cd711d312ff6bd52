// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <flex/allocator_options.hpp>
#include <flex/bytes.hpp>

namespace spyre_alloc {
namespace {

namespace bp = boost::python;

std::string typeName(bp::object const& value) { return Py_TYPE(value.ptr())->tp_name; }

/// repr(), cut to a length that fits an error text; the type's name if repr() itself fails.
std::string shown(bp::object const& value) {
  constexpr Py_ssize_t kLongest = 80;
  bp::handle<> const text(bp::allow_null(PyObject_Repr(value.ptr())));
  Py_ssize_t length = 0;
  char const* const utf8 = text ? PyUnicode_AsUTF8AndSize(text.get(), &length) : nullptr;
  if (utf8 == nullptr) {
    PyErr_Clear();
    return fmt::format("<{}>", typeName(value));
  }
  if (length <= kLongest) return {utf8, static_cast<std::size_t>(length)};
  return fmt::format("<{} of {} characters>", typeName(value), length);
}

/// The value as a Python int. Raises TypeError for bool and for what has no __index__.
bp::handle<> toIndex(bp::object const& value, char const* name, char const* allowed) {
  if (PyBool_Check(value.ptr()) != 0 || PyIndex_Check(value.ptr()) == 0) {
    raise(PyExc_TypeError, fmt::format("{} must be {}, not {}", name, allowed, typeName(value)));
  }
  return bp::handle<>(PyNumber_Index(value.ptr()));
}

template <class Choice, std::size_t N>
Choice toChoice(bp::object const& value, char const* name,
                std::array<std::pair<std::string_view, Choice>, N> const& choices) {
  std::string const text = toText(value, name);
  std::string allowed;
  for (auto const& [word, choice] : choices) {
    if (word == text) return choice;
    allowed += fmt::format("{}'{}'", allowed.empty() ? "" : ", ", word);
  }
  raise(PyExc_ValueError, fmt::format("{} is {}; allowed are {}", name, shown(value), allowed));
}

flex::DomainId toDomain(bp::object const& value, char const* name) {
  return static_cast<flex::DomainId>(
      toInteger(value, name, 0, std::numeric_limits<flex::DomainId>::max()));
}

}  // namespace

void raise(PyObject* type, std::string const& text) {
  bp::handle<> const message(bp::allow_null(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace")));
  if (message) PyErr_SetObject(type, message.get());
  bp::throw_error_already_set();
  std::abort();  // not reached
}

std::vector<bp::object> toItems(bp::object const& value, char const* name, char const* allowed) {
  if (PyList_Check(value.ptr()) == 0 && PyTuple_Check(value.ptr()) == 0) {
    raise(PyExc_TypeError, fmt::format("{} must be {}, not {}", name, allowed, typeName(value)));
  }
  std::vector<bp::object> items;
  bp::handle<> const tuple(PySequence_Tuple(value.ptr()));  // the list may change while we look
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple.get()); ++i) {
    items.emplace_back(bp::handle<>(bp::borrowed(PyTuple_GET_ITEM(tuple.get(), i))));
  }
  return items;
}

std::uint64_t toBytes(bp::object const& value, char const* name, std::uint64_t least) {
  std::uint64_t nbytes = 0;
  if (PyUnicode_Check(value.ptr()) != 0) {
    try {
      nbytes = flex::parseBytes(toText(value, name));
    } catch (std::overflow_error const& error) {
      raise(PyExc_OverflowError, fmt::format("{}: {}", name, error.what()));
    } catch (std::invalid_argument const& error) {
      raise(PyExc_ValueError, fmt::format("{}: {}", name, error.what()));
    }
  } else {
    bp::handle<> const index = toIndex(value, name, "an int (bytes) or a str such as '64MiB'");
    int overflow = 0;
    long long const small = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
    if (small == -1 && PyErr_Occurred() != nullptr) bp::throw_error_already_set();
    if (overflow < 0 || (overflow == 0 && small < 0)) {
      raise(PyExc_ValueError,
            fmt::format("{} is {}; allowed are {} and more", name, shown(value), least));
    }
    nbytes = static_cast<std::uint64_t>(small);
    if (overflow > 0) {
      nbytes = PyLong_AsUnsignedLongLong(index.get());
      if (PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        raise(PyExc_OverflowError,
              fmt::format("{} is {}; it must fit 64 bits", name, shown(value)));
      }
    }
  }
  if (nbytes < least) {
    raise(PyExc_ValueError,
          fmt::format("{} is {}; allowed are {} and more", name, shown(value), least));
  }
  return nbytes;
}

std::int64_t toInteger(bp::object const& value, char const* name, std::int64_t least,
                       std::int64_t most) {
  bp::handle<> const index = toIndex(value, name, "an int");
  int overflow = 0;
  long long const number = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
  if (overflow != 0 || number < least || number > most) {
    raise(PyExc_ValueError,
          fmt::format("{} is {}; allowed are {} to {}", name, shown(value), least, most));
  }
  return number;
}

double toSeconds(bp::object const& value, char const* name, double least, double most) {
  bool const number = PyBool_Check(value.ptr()) == 0 &&
                      (PyFloat_Check(value.ptr()) != 0 || PyIndex_Check(value.ptr()) != 0);
  if (!number) {
    raise(PyExc_TypeError, fmt::format("{} must be a number, not {}", name, typeName(value)));
  }
  double const seconds = PyFloat_AsDouble(value.ptr());
  if (PyErr_Occurred() != nullptr) {
    if (PyErr_ExceptionMatches(PyExc_OverflowError) == 0) bp::throw_error_already_set();
    PyErr_Clear();
  }
  if (!(seconds >= least && seconds <= most)) {
    raise(PyExc_ValueError,
          fmt::format("{} is {}; allowed are {} to {}", name, shown(value), least, most));
  }
  return seconds;
}

flex::Duration toDuration(bp::object const& value, char const* name, double least, double most) {
  using Seconds = std::chrono::duration<double>;
  return std::chrono::duration_cast<flex::Duration>(Seconds(toSeconds(value, name, least, most)));
}

std::optional<flex::Duration> toMaxWait(bp::object const& value) {
  if (value.is_none()) return std::nullopt;
  return toDuration(value, "max_wait", 0.0, kLongestSeconds);
}

bool toBool(bp::object const& value, char const* name) {
  if (PyBool_Check(value.ptr()) == 0) {
    raise(PyExc_TypeError, fmt::format("{} must be True or False, not {}", name, typeName(value)));
  }
  return value.ptr() == Py_True;
}

std::string toText(bp::object const& value, char const* name) {
  if (PyUnicode_Check(value.ptr()) == 0) {
    raise(PyExc_TypeError, fmt::format("{} must be a str, not {}", name, typeName(value)));
  }
  Py_ssize_t length = 0;
  char const* const utf8 = PyUnicode_AsUTF8AndSize(value.ptr(), &length);
  if (utf8 == nullptr) {  // lone surrogates
    PyErr_Clear();
    raise(PyExc_ValueError, fmt::format("{} is {}, which is no valid text", name, shown(value)));
  }
  return {utf8, static_cast<std::size_t>(length)};
}

flex::AllocationDirective toDirective(bp::object const& domain, bp::object const& near,
                                      bp::object const& policy, bp::object const& memory_type) {
  using flex::MemoryType;
  using flex::PlacementPolicy;
  static constexpr std::array<std::pair<std::string_view, PlacementPolicy>, 3> kPolicies{{
      {"bind", PlacementPolicy::bind},
      {"interleave", PlacementPolicy::interleave},
      {"scatter", PlacementPolicy::scatter},
  }};
  static constexpr std::array<std::pair<std::string_view, MemoryType>, 2> kTypes{{
      {"tensor", MemoryType::tensor},
      {"program", MemoryType::program},
  }};
  flex::AllocationDirective directive;
  if (!policy.is_none()) directive.policy = toChoice(policy, "policy", kPolicies);
  if (!memory_type.is_none()) directive.memory_type = toChoice(memory_type, "memory_type", kTypes);
  if (!near.is_none()) directive.near = toDomain(near, "near");
  if (PyIndex_Check(domain.ptr()) != 0) {
    directive.domain_ids.push_back(toDomain(domain, "domain"));
  } else if (!domain.is_none()) {
    for (bp::object const& item :
         toItems(domain, "domain", "an int, a list or tuple of ints, or None")) {
      directive.domain_ids.push_back(toDomain(item, "domain"));
    }
  }
  return directive;
}

}  // namespace spyre_alloc

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Makes instances of Boost.Python classes visible to the cyclic garbage collector.

#include <boost/python.hpp>
#include <boost/python/object/find_instance.hpp>

#include "gil.hpp"

namespace spyre_alloc {

/// Boost.Python's instances have a __dict__ that the inherited tp_traverse does not visit, so
/// `buffer.me = buffer` would never be collected. Gives the class a traverse and a clear that do,
/// and that also ask T for references it holds in C++, if it has
///   int traverse(visitproc visit, void* arg) const;   void clearReferences() noexcept;
/// Both are called attached. Call once, when the class is complete.
template <class T>
void makeCollectable(boost::python::object const& type) {
  namespace bp = boost::python;
  struct Slots {
    static PyObject*& dictOf(PyObject* self) noexcept {
      return reinterpret_cast<bp::objects::instance<>*>(self)->dict;
    }
    // Null while an instance has no C++ part: its __init__ has not run, or failed.
    static T* partOf(PyObject* self) noexcept {
      return static_cast<T*>(bp::objects::find_instance_impl(self, bp::type_id<T>()));
    }
    static int traverse(PyObject* self, visitproc visit, void* arg) {
      Py_VISIT(Py_TYPE(self));
      Py_VISIT(dictOf(self));
      if constexpr (requires(T const& part) { part.traverse(visit, arg); }) {
        if (T const* const part = partOf(self)) return part->traverse(visit, arg);
      }
      return 0;
    }
    static int clear(PyObject* self) {
      return parkingIfEnded([self] {
        Py_CLEAR(dictOf(self));
        if constexpr (requires(T & part) { part.clearReferences(); }) {
          if (T* const part = partOf(self)) part->clearReferences();
        }
        return 0;
      });
    }
  };
  auto* const slots = reinterpret_cast<PyTypeObject*>(type.ptr());
  slots->tp_traverse = &Slots::traverse;
  slots->tp_clear = &Slots::clear;
  PyType_Modified(slots);
}

}  // namespace spyre_alloc

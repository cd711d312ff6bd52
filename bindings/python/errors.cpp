// SPDX-License-Identifier: Apache-2.0
#include "errors.hpp"

#include <string>

#include <flex/bytes.hpp>

#include "gil.hpp"

namespace spyre_alloc {
namespace bp = boost::python;

namespace {

PyObject* out_of_memory_type = nullptr;

/// The exception that a callback threw, as a Python exception; new reference or null.
PyObject* asPythonException(std::exception_ptr const& cause) {
  try {
    std::rethrow_exception(cause);
  } catch (PythonError const& error) {
    return bp::incref(error.value());
  } catch (std::exception const& error) {
    return PyObject_CallFunction(PyExc_RuntimeError, "s", error.what());
  } catch (...) {
    return PyObject_CallFunction(PyExc_RuntimeError, "s", "a C++ callback threw");
  }
}

}  // namespace

/// Dropped on whatever thread the last C++ copy dies; attaches for it, or leaks at the very end.
struct PythonError::Holder {
  explicit Holder(PyObject* exception) noexcept : value(exception) {}
  Holder(Holder const&) = delete;
  Holder& operator=(Holder const&) = delete;
  ~Holder() {
    Attached const attached;
    if (attached.ok()) Py_DECREF(value);
  }
  PyObject* value;
};

PythonError PythonError::capture() {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback != nullptr) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  PythonError error;
  error.holder_ = std::make_shared<Holder>(value);
  return error;
}

void PythonError::throwCurrent() {
  if (PyErr_ExceptionMatches(PyExc_Exception) == 0) throw PythonAbort::capture();
  throw capture();
}

PyObject* PythonError::value() const noexcept { return holder_->value; }

void PythonError::restore() const noexcept {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(holder_->value)), holder_->value);
}

namespace {

void raiseOutOfMemory(flex::OutOfMemoryError const& error) {
  flex::OutOfMemoryInfo const& info = error.info();
  bp::object const type{bp::handle<>(bp::borrowed(out_of_memory_type))};
  bp::object instance = type(error.what());
  instance.attr("requested") = info.requested;
  instance.attr("free") = info.free;
  instance.attr("largest_free") = info.largest_free;
  instance.attr("total") = info.total;
  instance.attr("domain") = info.domain ? bp::object(*info.domain) : bp::object();
  instance.attr("memory_type") = std::string(flex::toString(info.memory_type));
  instance.attr("reclaims") = info.reclaims;
  instance.attr("bytes_reclaimed") = info.bytes_reclaimed;
  instance.attr("waited_ms") = info.waited_ms;
  instance.attr("reason") = std::string(flex::toString(info.reason));
  if (error.cause() != nullptr) {
    PyObject* const cause = asPythonException(error.cause());
    if (cause != nullptr) PyException_SetCause(instance.ptr(), cause);  // steals the reference
  }
  PyErr_SetObject(type.ptr(), instance.ptr());
}

}  // namespace

void setOutOfMemoryError(flex::OutOfMemoryError const& error) {
  parkingIfEnded([&] { raiseOutOfMemory(error); });
}

void exposeErrors() {
  // A class statement in C: a true exception type, so that `except MemoryError` catches it, with
  // defaults for users who raise it themselves.
  bp::dict fields;
  for (char const* const name :
       {"requested", "free", "largest_free", "total", "reclaims", "bytes_reclaimed"}) {
    fields[name] = 0;
  }
  fields["waited_ms"] = 0.0;
  fields["domain"] = bp::object();
  fields["memory_type"] = "tensor";
  fields["reason"] = "exhausted";
  fields["__module__"] = "spyre_alloc";
  out_of_memory_type = PyErr_NewExceptionWithDoc(
      "spyre_alloc.OutOfMemoryError",
      "No device memory for a request; nothing was changed.\n\n"
      "Attributes\n----------\n"
      "requested, free, largest_free, total : int\n"
      "    Bytes; the last three of the wanted domains and memory type when the request failed.\n"
      "domain : int or None\n    Set where the request named just one.\n"
      "memory_type : str\n    ``'tensor'`` or ``'program'``.\n"
      "reason : str\n"
      "    ``'exhausted'``, ``'fragmented'``, ``'larger-than-any-region'``, ``'timed-out'``,\n"
      "    ``'inside-callback'``, ``'inside-finalizer'``, ``'must-not-wait'``,\n"
      "    ``'callback-failed'``, ``'interpreter-finalizing'`` or ``'closed'``.\n"
      "reclaims : int\n    Chains of pressure callbacks that the request ran itself.\n"
      "bytes_reclaimed : int\n    Bytes that came back while they ran.\n"
      "waited_ms : float\n    Milliseconds asleep.",
      PyExc_MemoryError, fields.ptr());
  if (out_of_memory_type == nullptr) bp::throw_error_already_set();
  bp::scope().attr("OutOfMemoryError") = bp::handle<>(bp::borrowed(out_of_memory_type));

  bp::register_exception_translator<flex::OutOfMemoryError>(&setOutOfMemoryError);
  bp::register_exception_translator<PythonError>([](PythonError const& error) { error.restore(); });
  bp::register_exception_translator<flex::DeviceError>(
      [](flex::DeviceError const& error) { PyErr_SetString(PyExc_RuntimeError, error.what()); });
  bp::register_exception_translator<flex::InvariantViolation>(
      [](flex::InvariantViolation const& error) {
        PyErr_SetString(PyExc_AssertionError, error.what());
      });
}

}  // namespace spyre_alloc

// SPDX-License-Identifier: Apache-2.0
#pragma once
// C++ exceptions as Python exceptions, and back.

#include <exception>
#include <memory>

#include <boost/python.hpp>

#include <flex/error.hpp>
#include <flex/pressure.hpp>
#include <spyre/foreign_error.hpp>

namespace spyre_alloc {

/// A Python exception on its way through C++ code that may be detached. Take the error with
/// capture(), attached; it is restored, attached, as a cause or as itself.
class PythonError : public std::exception, public spyre::ForeignError {
 public:
  /// Takes the current Python error. Requires: attached, an error is set.
  [[nodiscard]] static PythonError capture();

  /// Throws the current Python error: as PythonAbort if it is no `Exception` (KeyboardInterrupt,
  /// SystemExit), else as PythonError. Requires: attached, an error is set.
  [[noreturn]] static void throwCurrent();

  [[nodiscard]] char const* what() const noexcept override { return "Python exception"; }
  /// The exception instance, borrowed. Requires: attached.
  [[nodiscard]] PyObject* value() const noexcept;
  /// Makes it the current Python error again. Requires: attached.
  void restore() const noexcept override;

 private:
  struct Holder;
  std::shared_ptr<Holder> holder_;
};

/// One that ends the request it happens in, whatever else could be done for it.
class PythonAbort : public PythonError, public flex::AbortRequest {
 public:
  /// As PythonError::capture.
  [[nodiscard]] static PythonAbort capture() { return PythonAbort(PythonError::capture()); }

 private:
  explicit PythonAbort(PythonError const& error) : PythonError(error) {}
};

/// Raises spyre_alloc.OutOfMemoryError for `error`, its cause included. Requires: attached.
void setOutOfMemoryError(flex::OutOfMemoryError const& error);

/// Creates OutOfMemoryError in the current scope and registers the translators.
void exposeErrors();

}  // namespace spyre_alloc

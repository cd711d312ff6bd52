// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a binding needs to carry an error of another language through C++ code.

namespace spyre {

/// A base of an exception that stands for an error of another language (a Python exception that a
/// callback raised, say). Whoever catches it at the border to that language restores the error.
class ForeignError {
 public:
  ForeignError() = default;
  ForeignError(ForeignError const&) = default;
  ForeignError& operator=(ForeignError const&) = default;
  virtual ~ForeignError() = default;

  /// Makes the error the current one of this thread. Requires what the language does (Python:
  /// attached).
  virtual void restore() const noexcept = 0;
};

}  // namespace spyre

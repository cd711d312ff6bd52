// SPDX-License-Identifier: Apache-2.0
#pragma once
// An owning pointer to device memory in the form that frameworks pass around.

#include <utility>

namespace spyre {

/// Frees the memory behind a DataPtr, given its context.
using Deleter = void (*)(void* context);

/// A device address, what is needed to free it, and the function that does. Move-only. An empty one
/// has no address and frees nothing.
///
/// Thread-compatible: concurrent use of one object needs external locking.
class DataPtr {
 public:
  DataPtr() noexcept = default;
  DataPtr(void* address, void* owner, Deleter free_owner) noexcept
      : data_(address), context_(owner), deleter_(free_owner) {}
  DataPtr(DataPtr const&) = delete;
  DataPtr& operator=(DataPtr const&) = delete;
  DataPtr(DataPtr&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        context_(std::exchange(other.context_, nullptr)),
        deleter_(std::exchange(other.deleter_, nullptr)) {}
  DataPtr& operator=(DataPtr&& other) noexcept {
    if (this != &other) {
      clear();
      data_ = std::exchange(other.data_, nullptr);
      context_ = std::exchange(other.context_, nullptr);
      deleter_ = std::exchange(other.deleter_, nullptr);
    }
    return *this;
  }
  ~DataPtr() { clear(); }

  /// Frees now. Never blocks.
  void clear() noexcept {
    data_ = nullptr;
    if (void* const context = std::exchange(context_, nullptr)) deleter_(context);
  }

  /// Gives up ownership: the caller passes the context to deleter() later, once.
  [[nodiscard]] void* releaseContext() noexcept { return std::exchange(context_, nullptr); }

  [[nodiscard]] void* get() const noexcept { return data_; }
  [[nodiscard]] void* context() const noexcept { return context_; }
  [[nodiscard]] Deleter deleter() const noexcept { return deleter_; }
  [[nodiscard]] explicit operator bool() const noexcept { return data_ != nullptr; }

 private:
  void* data_ = nullptr;
  void* context_ = nullptr;
  Deleter deleter_ = nullptr;
};

}  // namespace spyre

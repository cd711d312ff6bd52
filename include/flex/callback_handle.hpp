// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ownership of a registration.

#include <memory>
#include <utility>

#include <flex/detail/callback_chain.hpp>

namespace flex {

/// Keeps a memory-pressure callback registered; unregisters it when destroyed. Move-only. May
/// outlive the allocator, whose destruction unregisters everything.
///
/// Thread-compatible: concurrent use of one object needs external locking.
class CallbackHandle {
 public:
  CallbackHandle() noexcept = default;
  CallbackHandle(std::shared_ptr<detail::CallbackChain> chain,
                 detail::CallbackChain::EntryPointer entry) noexcept
      : chain_(std::move(chain)), entry_(std::move(entry)) {}
  CallbackHandle(CallbackHandle const&) = delete;
  CallbackHandle& operator=(CallbackHandle const&) = delete;
  CallbackHandle(CallbackHandle&&) noexcept = default;
  CallbackHandle& operator=(CallbackHandle&& other) noexcept {
    if (this != &other) {
      reset();
      chain_ = std::move(other.chain_);
      entry_ = std::move(other.entry_);
    }
    return *this;
  }
  CallbackHandle& operator=(std::nullptr_t) noexcept {
    reset();
    return *this;
  }
  ~CallbackHandle() { reset(); }

  /// As reset(), but keeps the handle, so that several threads may call it: each returns when no
  /// other thread is inside the callback.
  void unregister() const noexcept {
    if (entry_ != nullptr) chain_->remove(entry_);
  }

  /// Unregisters; afterwards this is empty. Returns when no other thread is inside the callback,
  /// and blocks until then; from inside the callback itself it returns at once.
  void reset() noexcept {
    if (entry_ == nullptr) return;
    chain_->remove(entry_);
    entry_.reset();
    chain_.reset();
  }

  [[nodiscard]] explicit operator bool() const noexcept { return entry_ != nullptr; }

 private:
  std::shared_ptr<detail::CallbackChain> chain_;
  detail::CallbackChain::EntryPointer entry_;
};

}  // namespace flex

// SPDX-License-Identifier: Apache-2.0
#pragma once
// One request on its way through exhaustion.

#include <exception>
#include <optional>
#include <vector>

#include <flex/detail/callback_chain.hpp>
#include <flex/detail/engine.hpp>
#include <flex/pressure_request.hpp>

namespace flex::detail {

/// Lives on the requesting thread's stack for the length of a slow allocation.
class Request final : public PressureRequest {
 public:
  Request(Engine& engine, Placement const& placement, RequestOptions const& options);
  /// Gives back what the request was served but its thread never took (it was interrupted).
  ~Request();

  /// The whole slow path. Throws OutOfMemoryError, std::bad_alloc, boost::thread_interrupted, and
  /// what callbacks and polls throw.
  [[nodiscard]] CompositeAddress run();
  /// Without waiting or callbacks; empty if nothing fits or others have precedence.
  [[nodiscard]] CompositeAddress tryRun();

  [[nodiscard]] bool tryServe() noexcept override;
  [[nodiscard]] bool fits() const noexcept override;
  [[nodiscard]] bool grow(Lock& lock) override;
  Generation beginReclaim() override;
  [[nodiscard]] bool runNextCallback(Lock& lock, CallbackLock mode) override;
  [[nodiscard]] bool reclaimComplete() const noexcept override {
    return next_callback_ == chain_->size() && chain_did_its_work_;
  }
  [[nodiscard]] WaitEnd wait(Lock& lock, sync::Parker& parker,
                             Duration at_most = kLongestWait) override;

 private:
  class Inside;

  [[nodiscard]] bool searchOrGrow(Lock& lock);
  [[nodiscard]] bool askDevice(Lock& lock);
  [[nodiscard]] PressureEvent describeEvent() const noexcept;
  void noteEvent() noexcept;
  void noteResult(ReclaimResult&& result);
  [[nodiscard]] CompositeAddress take() noexcept;
  [[nodiscard]] FailureReason reasonFor(Verdict verdict, FreeSpace const& space) const noexcept;
  [[noreturn]] void fail(FailureReason reason);

  Engine& engine_;
  Placement const& placement_;
  RequestOptions const& options_;
  BlockList blocks_;
  bool taken_ = false;

  bool met_exhaustion_ = false;
  std::uint32_t failed_searches_ = 0;
  std::uint32_t reclaims_ = 0;
  std::uint64_t bytes_reclaimed_ = 0;

  CallbackChain::Snapshot chain_;
  std::size_t next_callback_ = 0;
  Generation own_generation_ = 0;
  bool chain_did_its_work_ = true;
  std::vector<std::exception_ptr> callback_errors_;
  std::optional<std::uint64_t> exchanged_at_;  ///< MemoryPool::timesEmptied() at the last exchange
  std::optional<std::uint64_t> refused_at_;    ///< Engine::releases_ when the device last refused
  std::optional<FailureReason> callback_reason_;
  std::string callback_note_;

  Duration const max_wait_;
  Duration slept_{0};
  bool has_slept_ = false;
};

}  // namespace flex::detail

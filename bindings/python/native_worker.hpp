// SPDX-License-Identifier: Apache-2.0
#pragma once
// A C++ thread that never sees Python and allocates from the same allocator as Python does.

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include <boost/python.hpp>
#include <boost/thread/mutex.hpp>
#include <boost/thread/scoped_thread.hpp>
#include <unistd.h>

#include <spyre/any_allocator.hpp>

namespace spyre_alloc {

/// Allocates blocks of one size and keeps the last few, as fast as it can, until it is stopped.
///
/// Confined to attached threads. stop() and the destructor detach while they wait for the thread.
class NativeWorker {
 public:
  NativeWorker(std::shared_ptr<spyre::AnyAllocator> allocator, std::uint64_t nbytes,
               std::size_t live, std::uint64_t iterations, flex::Duration pause);
  NativeWorker(NativeWorker const&) = delete;
  NativeWorker& operator=(NativeWorker const&) = delete;
  ~NativeWorker();

  /// Asks the thread to end, also where it waits for memory, and waits for that.
  void stop();
  /// Waits for the thread to do all its iterations.
  void join();

  [[nodiscard]] std::uint64_t allocations() const noexcept { return state_->allocations; }
  [[nodiscard]] std::uint64_t outOfMemory() const noexcept { return state_->out_of_memory; }
  [[nodiscard]] std::uint64_t errors() const noexcept { return state_->errors; }
  /// Nanoseconds that each of the last allocations took (at most kMostLatencies of them).
  [[nodiscard]] boost::python::list latencies() const;

 private:
  static constexpr std::size_t kMostLatencies = std::size_t{1} << 20U;

  struct State {
    std::atomic<std::uint64_t> allocations{0};
    std::atomic<std::uint64_t> out_of_memory{0};
    std::atomic<std::uint64_t> errors{0};
    boost::mutex mutex;
    std::vector<std::uint32_t> latencies;
  };
  static void run(State& state, spyre::AnyAllocator& allocator, std::uint64_t nbytes,
                  std::size_t live, std::uint64_t iterations, flex::Duration pause);

  [[nodiscard]] bool onItself() const noexcept;
  void requireThisProcess() const;
  void requireOtherThread() const;

  std::shared_ptr<State> state_ = std::make_shared<State>();
  boost::thread thread_;
  pid_t const process_ = ::getpid();
};

void exposeNativeWorker();

}  // namespace spyre_alloc

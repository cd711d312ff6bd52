// SPDX-License-Identifier: Apache-2.0
#include <new>

#include <pthread.h>

#include <flex/sync/fork_mutex.hpp>

namespace flex::sync {
namespace {

struct Registry {
  RawMutex mutex;
  boost::intrusive::list<ForkMutex> all;
};

// Never destroyed: devices may outlive every static object.
Registry& registry() noexcept {
  static Registry& instance = *new Registry;
  return instance;
}

void prepareFork() noexcept {
  registry().mutex.lock();
  for (ForkMutex& mutex : registry().all) mutex.raw().lock();
}

void afterFork() noexcept {
  for (ForkMutex& mutex : registry().all) mutex.raw().unlock();
  registry().mutex.unlock();
}

}  // namespace

void ForkMutex::installForkHandlers() {
  static int const handlers = ::pthread_atfork(&prepareFork, &afterFork, &afterFork);
  if (handlers != 0) throw std::bad_alloc();
}

ForkMutex::ForkMutex() {
  installForkHandlers();
  RawUniqueLock const lock(registry().mutex);
  registry().all.push_back(*this);
}

ForkMutex::~ForkMutex() {
  RawUniqueLock const lock(registry().mutex);
  registry().all.erase(registry().all.iterator_to(*this));
}

}  // namespace flex::sync

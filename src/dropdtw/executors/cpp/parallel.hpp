// Many tasks on several threads, which Python can watch and interrupt.
#pragma once
#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

namespace dropdtw {

namespace nb = nanobind;

// Runs task(k) for k < count on several threads, while this one watches for signals and reports how much of `total` is
// done; a task returns its share, and may look at a flag that says when to stop.
template <class Task>
void parallel(std::int64_t count, int threads, nb::object progress, std::int64_t total, const Task& task) {
  std::atomic<std::int64_t> next{0}, done{0};
  std::atomic<int> running{threads};
  std::atomic<bool> stop{false}, failed{false};
  std::mutex mutex;
  std::condition_variable idle;
  const auto work = [&] {
    try {
      for (std::int64_t k; !stop && (k = next++) < count;) done += task(k, stop);
    } catch (const std::bad_alloc&) {
      failed = stop = true;
    }
    const std::lock_guard lock(mutex);
    --running;
    idle.notify_one();
  };
  std::vector<std::thread> pool;
  for (int k = 0; k < threads; ++k) pool.emplace_back(work);
  bool error = false;
  for (bool finished = false; !finished;) {
    {
      nb::gil_scoped_release free;
      std::unique_lock lock(mutex);
      finished = idle.wait_for(lock, std::chrono::milliseconds(100), [&] { return running == 0; });
    }
    if (!error && PyErr_CheckSignals() != 0) error = stop = true;
    if (!error && !progress.is_none()) {
      try {
        progress(std::int64_t(done), total);
      } catch (nb::python_error& e) {
        e.restore();
        error = stop = true;
      }
    }
  }
  for (auto& thread : pool) thread.join();
  if (error) throw nb::python_error();
  if (failed) throw std::bad_alloc();
}

}  // namespace dropdtw

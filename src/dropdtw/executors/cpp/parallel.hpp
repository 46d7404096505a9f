// Runs tasks on several threads, which Python can watch and interrupt.
#pragma once
#include <nanobind/nanobind.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>
#ifdef __linux__
#include <dlfcn.h>
#include <unistd.h>
#endif

namespace dropdtw {

namespace nb = nanobind;

// A callback that tasks poll, in the form that kernels take; false means stop.
struct Alive {
  bool (*tick)(void* self);
  void* self;
  bool operator()() const { return tick(self); }
};

// How many threads work, and whose. PyTorch's threads spin for milliseconds while they wait for their next task, so
// threads of our own would have to share cores with them. We use PyTorch's, unless there are more of them than cores.
struct Threads {
  Threads(int count) : count(count) {}
  static Threads of_torch(int count) {
    Threads found(count);
    found.torch = count > 1 && unsigned(count) <= std::thread::hardware_concurrency();
    return found;
  }
  int count;
  bool torch = false;
};

// Runs a body on PyTorch's threads. Null if PyTorch is not loaded, has no threads of OpenMP, or lost them in a fork.
using Team = void (*)(void (*body)(void*), void* data, unsigned threads, unsigned flags);
#ifdef __linux__
inline const pid_t loaded_in = getpid();
inline Team team() {
  return getpid() == loaded_in ? reinterpret_cast<Team>(dlsym(RTLD_DEFAULT, "GOMP_parallel")) : nullptr;
}
#else
inline Team team() { return nullptr; }
#endif

// Runs tasks 0, 1, … below `count`, each once, on the calling thread and on workers.
template <class Task>
class Work {
 public:
  Work(std::int64_t count, nb::object progress, std::int64_t total, const Task& task)
      : count_(count), progress_(std::move(progress)), total_(total), task_(task) {}
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  ~Work() {  // destroying a thread that is not joined would end the program
    stop_ = true;
    for (auto& thread : pool_) thread.join();
  }

  // Works in this thread and in up to threads − 1 others, fewer if the system refuses. Returns when all of them have
  // finished.
  void in_threads(int threads) {
    const auto most = std::size_t(std::min<std::int64_t>(threads, count_));
    pool_.reserve(most);
    left_.reserve(most);
    while (pool_.size() + 1 < most && start()) continue;
    {
      nb::gil_scoped_release free;
      take(watched());
    }
    for (bool finished = false; !finished;) {
      {
        nb::gil_scoped_release free;
        std::unique_lock lock(mutex_);
        finished = idle_.wait_for(lock, pause, [&] { return running_ == 0; });
      }
      if (!finished) attend();
    }
    for (auto& thread : pool_) thread.join();
    pool_.clear();
  }

  // The same with the threads of a team. Always wakes all of them: those left out would end and need a
  // restart.
  void in_team(Team team, int threads) {
    caller_ = std::this_thread::get_id();
    left_.reserve(std::size_t(threads));
    nb::gil_scoped_release free;
    team(
        [](void* self) {
          Work& work = *static_cast<Work*>(self);
          work.take(std::this_thread::get_id() == work.caller_ ? work.watched() : work.unwatched());
        },
        this, unsigned(threads), 0);
  }

  // Runs the remaining tasks on this thread: those that ran out of memory while others were running, and what follows.
  void here() {
    nb::gil_scoped_release free;
    const Alive alive = watched();
    for (; alive() && !left_.empty(); left_.pop_back()) done_ += task_(left_.back(), alive);
    for (std::int64_t k; alive() && (k = next_++) < count_;) done_ += task_(k, alive);
  }

  // Checks for signals and reports progress, with the GIL held. A Python error stops all work.
  void attend() {
    if (!error_ && PyErr_CheckSignals() != 0) error_ = stop_ = true;
    if (error_ || progress_.is_none()) return;
    try {
      progress_(std::int64_t(done_), total_);
    } catch (nb::python_error& e) {
      e.restore();
      error_ = stop_ = true;
    }
  }

  bool error() const { return error_; }

 private:
  static constexpr std::chrono::milliseconds pause{100};

  bool start() {
    {
      const std::lock_guard lock(mutex_);
      ++running_;
    }
    try {
      pool_.emplace_back([this] { run(); });
      return true;
    } catch (const std::system_error&) {  // the system refuses more threads
    } catch (const std::bad_alloc&) {
    }
    const std::lock_guard lock(mutex_);
    --running_;
    return false;
  }

  // For tasks on the thread that called: checks for signals, too.
  Alive watched() {
    return {[](void* self) { return static_cast<Work*>(self)->attend_now_and_then(); }, this};
  }

  Alive unwatched() {
    return {[](void* self) { return !static_cast<Work*>(self)->stop_; }, this};
  }

  // A worker thread.
  void run() {
    take(unwatched());
    const std::lock_guard lock(mutex_);
    --running_;
    idle_.notify_one();
  }

  // Takes tasks until none are left, or until one runs out of memory.
  void take(const Alive& alive) {
    std::int64_t k = 0;
    bool kept = false;  // whether task k is unfinished
    try {
      while (alive() && (k = next_++) < count_) {
        kept = true;
        done_ += task_(k, alive);
        kept = false;
      }
    } catch (const std::bad_alloc&) {
    }
    if (!kept) return;
    const std::lock_guard lock(mutex_);
    left_.push_back(k);
  }

  bool attend_now_and_then() {
    const auto now = std::chrono::steady_clock::now();
    if (!stop_ && now - attended_ >= pause) {
      nb::gil_scoped_acquire gil;
      attend();
      attended_ = now;
    }
    return !stop_;
  }

  const std::int64_t count_;
  const nb::object progress_;
  const std::int64_t total_;
  const Task& task_;
  std::atomic<std::int64_t> next_{0}, done_{0};
  std::atomic<bool> stop_{false};
  bool error_ = false;
  std::chrono::steady_clock::time_point attended_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable idle_;
  int running_ = 0;
  std::vector<std::int64_t> left_;
  std::vector<std::thread> pool_;
  std::thread::id caller_;
};

// Runs task(k, alive) for k < count on several threads, of which this is one. Between its tasks, and when one of them
// asks whether to go on, this thread also checks for signals and reports how much of `total` is done; a task returns
// its share. If the system refuses threads, fewer run.
template <class Task>
void parallel(std::int64_t count, Threads threads, nb::object progress, std::int64_t total, const Task& task) {
  Work<Task> work(count, std::move(progress), total, task);
  const Team found = threads.torch && count > 1 ? team() : nullptr;
  if (found != nullptr)
    work.in_team(found, threads.count);
  else
    work.in_threads(threads.count);
  work.here();
  work.attend();
  if (work.error()) throw nb::python_error();
}

}  // namespace dropdtw

// The host's parallel-for with every kind of pool: bits equal those of the library's own threads. Also the default number of threads.
#include <sched.h>
#include <cstdlib>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "small_run.h"

namespace {

using namespace st::test;

/// A host's parallel-for, made of any function that runs n tasks.
class Pool {
 public:
  using Run = std::function<void(int64_t n, const std::function<void(int64_t)>& task)>;
  explicit Pool(Run run) : run_(std::move(run)) {}
  st_context_options options() {
    auto made = filled(st_context_options_init);
    made.threads = 4;
    made.parallel_user = this;
    made.parallel = [](void* user, int64_t n, st_task_fn task, void* arg) {
      auto& pool = *static_cast<Pool*>(user);
      ++pool.calls_;
      pool.run_(n, [&](int64_t i) { task(arg, i); });
    };
    return made;
  }
  int64_t calls() const { return calls_; }

 private:
  Run run_;
  std::atomic<int64_t> calls_{0};
};

std::string trained_digest(const st_context_options* options) {
  SmallRun run({}, options);
  TokenBatch batch(6, 5);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(works(st_trainer_step(run.trainer, 2, batch.views(), nullptr)));
  return run.digest();
}

void expect_the_same_bits(Pool pool) {
  const auto options = pool.options();
  EXPECT_EQ(trained_digest(&options), trained_digest(nullptr));
  EXPECT_GT(pool.calls(), 10) << "the pool was never asked";
}

TEST(HostPools, OfOneThreadMakeTheSameBits) {
  expect_the_same_bits(Pool([](int64_t n, const auto& task) {
    for (int64_t i = 0; i < n; ++i) task(i);
  }));
}

TEST(HostPools, ThatRunBackwardsMakeTheSameBits) {
  expect_the_same_bits(Pool([](int64_t n, const auto& task) {
    for (int64_t i = n - 1; i >= 0; --i) task(i);
  }));
}

TEST(HostPools, WithAThreadForEachTaskMakeTheSameBits) {
  expect_the_same_bits(Pool([](int64_t n, const auto& task) {
    std::vector<std::thread> threads;
    for (int64_t i = 0; i < n; ++i) threads.emplace_back(task, i);
    for (std::thread& thread : threads) thread.join();
  }));
}

/// A queue and permanent threads, as an application has.
class ThreadPool {
 public:
  explicit ThreadPool(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~ThreadPool() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  void run(int64_t n, const std::function<void(int64_t)>& task) {
    std::unique_lock lock(mutex_);
    task_ = &task;
    next_ = 0;
    count_ = left_ = n;
    wake_.notify_all();
    done_.wait(lock, [&] { return left_ == 0; });
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return ending_ || next_ < count_; });
      if (ending_) return;
      const int64_t i = next_++;
      lock.unlock();
      (*task_)(i);
      lock.lock();
      if (--left_ == 0) done_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(int64_t)>* task_ = nullptr;
  int64_t next_ = 0, count_ = 0, left_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

TEST(HostPools, OfThreadsThatStayMakeTheSameBits) {
  ThreadPool threads(3);
  expect_the_same_bits(Pool([&](int64_t n, const auto& task) { threads.run(n, task); }));
}

TEST(HostPools, ALoggerMayCallTheLibraryOnOtherHandles) {
  struct Seen {
    st_model* model = nullptr;
    int64_t records = 0, counts = 0, parameters = 0;
  } seen;
  auto options = filled(st_context_options_init);
  options.log_user = &seen;
  options.log = [](void* user, int32_t, const char*, const char* text) {
    auto& s = *static_cast<Seen*>(user);
    ++s.records;
    EXPECT_EQ(std::string(text).find('\n'), std::string::npos);
    int64_t live = 0;
    s.counts += st_live_handles(nullptr, &live) == ST_OK && live > 0;
    st_recipe* recipe = nullptr;
    EXPECT_TRUE(works(st_recipe_create(nullptr, &recipe)));
    EXPECT_TRUE(works(st_recipe_destroy(recipe)));
  };
  SmallRun run({}, &options);
  EXPECT_GT(seen.records, 0);
  EXPECT_EQ(seen.counts, seen.records);
}

std::set<std::string> threads_of_this_process() {
  std::set<std::string> ids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) ids.insert(entry.path().filename().string());
  return ids;
}

/// Threads that a trainer has started and keeps. Compares thread ids, since a thread of an earlier test may still be ending.
int threads_of_a_trainer(int threads) {
  std::thread([] {}).join();  // ThreadSanitizer starts a thread of its own with a process's first thread
  const auto before = threads_of_this_process();
  auto options = filled(st_context_options_init);
  options.threads = threads;
  SmallRun run({}, &options);
  TokenBatch batch(6, 5);
  EXPECT_TRUE(works(st_trainer_step(run.trainer, 2, batch.views(), nullptr)));
  int started = 0;
  for (const std::string& id : threads_of_this_process()) started += !before.contains(id);
  return started;
}

/// The number of cores that the library reports.
int cores_in_features() {
  const std::string features = text_of(st_features);
  const std::string text = features, key = "\"cores\":";
  const size_t at = text.find(key);
  EXPECT_NE(at, std::string::npos) << text.substr(0, 2000);
  return at == std::string::npos ? -1 : std::stoi(text.substr(at + key.size()));
}

// The calling thread is one of them.
TEST(HostPools, OfTheLibraryAreOfTheThreadsAskedForOrOneACore) {
  unsetenv("SCALETRAIN_THREADS");
  EXPECT_EQ(threads_of_a_trainer(1), 0);
  EXPECT_EQ(threads_of_a_trainer(5), 4);
  EXPECT_EQ(threads_of_a_trainer(0), cores_in_features() - 1);
}

TEST(HostPools, OfTheLibraryTakeTheCoresOfTheAffinityMask) {
  unsetenv("SCALETRAIN_THREADS");
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (size_t core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core)
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const int cores = cores_in_features(), started = threads_of_a_trainer(0), asked_for = threads_of_a_trainer(3);
  EXPECT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(cores, 1);
  EXPECT_EQ(started, 0);
  EXPECT_EQ(asked_for, 2) << "the host's number takes precedence";
}

}  // namespace

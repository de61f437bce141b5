// The library as a plug-in: loaded by name, unloaded, in several copies at once, and in a child of a process that never used it.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <scaletrain/scaletrain.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "dlpack_of_others.h"

namespace {

namespace fs = std::filesystem;

/// One loaded copy.
class Library {
 public:
  explicit Library(const std::string& path) : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(handle_, nullptr) << dlerror();
  }
  ~Library() {
    if (handle_ != nullptr) {
      EXPECT_EQ(dlclose(handle_), 0);
    }
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  template <class Function>
  Function* find(const char* name) const {
    auto* found = reinterpret_cast<Function*>(dlsym(handle_, name));
    EXPECT_NE(found, nullptr) << name;
    return found;
  }

 private:
  void* handle_;
};

#define FIND(library, name) (library).find<decltype(name)>(#name)

/// A trainer on a context with its own threads.
st_trainer* make_trainer(const Library& library, std::vector<std::function<st_status()>>& destroys) {
  const auto destroy_later = [&](auto* destroy, auto* handle) { destroys.push_back([=] { return destroy(handle); }); };
  st_context* context = nullptr;
  st_model* model = nullptr;
  st_recipe* recipe = nullptr;
  st_trainer* trainer = nullptr;
  st_context_options options;
  EXPECT_EQ(FIND(library, st_context_options_init)(&options, sizeof options), ST_OK);
  options.threads = 3;
  EXPECT_EQ(FIND(library, st_context_create)(&options, &context), ST_OK);
  destroy_later(FIND(library, st_context_destroy), context);
  EXPECT_EQ(FIND(library, st_model_builtin)(context, "mlp", R"({"hidden": [256, 256]})", 1, &model), ST_OK);
  destroy_later(FIND(library, st_model_destroy), model);
  EXPECT_EQ(FIND(library, st_recipe_create)(R"({"batch": 64, "warmup": 0})", &recipe), ST_OK);
  destroy_later(FIND(library, st_recipe_destroy), recipe);
  EXPECT_EQ(FIND(library, st_trainer_create)(model, recipe, nullptr, &trainer), ST_OK);
  destroy_later(FIND(library, st_trainer_destroy), trainer);
  return trainer;
}

/// Trains a small net with the library's own threads and makes a call fail; returns the digest.
std::string trained_digest(const Library& library) {
  std::vector<std::function<st_status()>> destroys;
  st_trainer* const trainer = make_trainer(library, destroys);
  std::vector<float> x(64), y(64);
  for (size_t i = 0; i < x.size(); ++i) y[i] = std::sin(x[i] = static_cast<float>(i) / 10);
  const int64_t dims[] = {64, 1};
  const st_named_view batch[] = {{"x", {ST_F32, 2, dims, nullptr, x.data(), 256}}, {"y", {ST_F32, 2, dims, nullptr, y.data(), 256}}};
  for (int i = 0; i < 2; ++i) EXPECT_EQ(FIND(library, st_trainer_step)(trainer, 2, batch, nullptr), ST_OK);
  const char *hex = "", *features = "";
  EXPECT_EQ(FIND(library, st_trainer_digest)(trainer, &hex), ST_OK);
  const std::string digest = hex;
  EXPECT_EQ(FIND(library, st_features)(&features), ST_OK);
  EXPECT_EQ(FIND(library, st_require)(99, 0), ST_UNSUPPORTED);
  EXPECT_NE(std::string(FIND(library, st_last_error)()).find("99"), std::string::npos);
  for (const auto& destroy : destroys) EXPECT_EQ(destroy(), ST_OK);
  return digest;
}

int64_t entries_in(const char* folder) { return std::distance(fs::directory_iterator(folder), fs::directory_iterator()); }

struct Footprint {
  int64_t mappings = 0, threads = 0, files = 0, resident = 0;
};

Footprint footprint() {
  Footprint now;
  std::ifstream maps("/proc/self/maps"), statm("/proc/self/statm");
  for (std::string line; std::getline(maps, line);) ++now.mappings;
  int64_t pages = 0;
  statm >> pages >> now.resident;
  now.resident *= sysconf(_SC_PAGESIZE);
  now.threads = entries_in("/proc/self/task");
  now.files = entries_in("/proc/self/fd");
  return now;
}

bool is_loaded(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (handle != nullptr) dlclose(handle);
  return handle != nullptr;
}

TEST(Loading, AHundredTimesLeavesNothingBehind) {
  const auto use = [] {
    const Library library(SCALETRAIN_LIBRARY);
    trained_digest(library);
    std::vector<st_recipe*> many(300);  // more than the table's first chunk holds
    for (st_recipe*& recipe : many) EXPECT_EQ(FIND(library, st_recipe_create)(nullptr, &recipe), ST_OK);
    for (st_recipe* recipe : many) EXPECT_EQ(FIND(library, st_recipe_destroy)(recipe), ST_OK);
  };
  for (int i = 0; i < 10; ++i) use();  // lets the allocator and the loader reach their final sizes
  ASSERT_FALSE(is_loaded(SCALETRAIN_LIBRARY)) << "it stays loaded after dlclose()";
  const Footprint before = footprint();
  for (int i = 0; i < 100; ++i) use();
  const Footprint after = footprint();
  EXPECT_FALSE(is_loaded(SCALETRAIN_LIBRARY));
  EXPECT_LE(after.mappings, before.mappings + 2) << "malloc's own";
  EXPECT_EQ(after.threads, before.threads);
  EXPECT_EQ(after.files, before.files);
  EXPECT_LE(after.resident, before.resident + (int64_t{2} << 20));
}

TEST(Loading, StaysForALiveHandleAndGoesWithTheLastOne) {
  auto library = std::make_unique<Library>(SCALETRAIN_LIBRARY);
  auto* const digest_of = FIND(*library, st_trainer_digest);
  std::vector<std::function<st_status()>> destroys;
  st_trainer* const trainer = make_trainer(*library, destroys);
  library.reset();
  EXPECT_TRUE(is_loaded(SCALETRAIN_LIBRARY));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // meanwhile its threads look for work
  const char* hex = "";
  EXPECT_EQ(digest_of(trainer, &hex), ST_OK);
  for (const auto& destroy : destroys) {
    EXPECT_TRUE(is_loaded(SCALETRAIN_LIBRARY));
    EXPECT_EQ(destroy(), ST_OK);
  }
  EXPECT_FALSE(is_loaded(SCALETRAIN_LIBRARY));
}

TEST(Loading, GoesWithTheLastOfHandlesThatThreadsDestroy) {
  for (int round = 0; round < 50; ++round) {
    auto library = std::make_unique<Library>(SCALETRAIN_LIBRARY);
    auto* const destroy = FIND(*library, st_recipe_destroy);
    std::vector<st_recipe*> recipes(4);
    for (st_recipe*& recipe : recipes) EXPECT_EQ(FIND(*library, st_recipe_create)(nullptr, &recipe), ST_OK);
    library.reset();
    std::vector<std::thread> threads;
    for (st_recipe* recipe : recipes) threads.emplace_back([=] { EXPECT_EQ(destroy(recipe), ST_OK); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_FALSE(is_loaded(SCALETRAIN_LIBRARY));
  }
}

TEST(Loading, StaysForADlpackOfItsMemory) {
  auto library = std::make_unique<Library>(SCALETRAIN_LIBRARY);
  st_context* context = nullptr;
  st_tensor* tensor = nullptr;
  DLManagedTensor* managed = nullptr;
  const int64_t dims[] = {4};
  EXPECT_EQ(FIND(*library, st_context_create)(nullptr, &context), ST_OK);
  EXPECT_EQ(FIND(*library, st_tensor_create)(context, ST_F32, 1, dims, &tensor), ST_OK);
  EXPECT_EQ(FIND(*library, st_tensor_to_dlpack)(tensor, &managed), ST_OK);
  EXPECT_EQ(FIND(*library, st_tensor_destroy)(tensor), ST_OK);
  EXPECT_EQ(FIND(*library, st_context_destroy)(context), ST_OK);
  library.reset();
  EXPECT_TRUE(is_loaded(SCALETRAIN_LIBRARY));
  managed->deleter(managed);
  EXPECT_FALSE(is_loaded(SCALETRAIN_LIBRARY));
}

TEST(Loading, AThreadThatOutlivesTheLibraryEndsWell) {
  for (int i = 0; i < 20; ++i) {
    std::thread thread;
    std::atomic<bool> called{false}, closed{false};
    {
      const Library library(SCALETRAIN_LIBRARY);
      thread = std::thread([&] {
        trained_digest(library);
        called = true;
        called.notify_one();
        closed.wait(false);
      });
      called.wait(false);
    }
    EXPECT_FALSE(is_loaded(SCALETRAIN_LIBRARY)) << "a thread that called it keeps it loaded";
    closed = true;
    closed.notify_one();
    thread.join();
  }
}

TEST(Loading, TwoCopiesInOneProcessDoNotMeet) {
  const std::string other = testing::TempDir() + "another_scaletrain_" + std::to_string(getpid()) + ".so";
  fs::copy_file(SCALETRAIN_LIBRARY, other, fs::copy_options::overwrite_existing);
  {
    const Library first(SCALETRAIN_LIBRARY), second(other);
    ASSERT_NE(reinterpret_cast<void*>(FIND(first, st_context_create)), reinterpret_cast<void*>(FIND(second, st_context_create)));
    st_recipe* recipe = nullptr;
    ASSERT_EQ(FIND(first, st_recipe_create)(nullptr, &recipe), ST_OK);
    int64_t live = -1;
    EXPECT_EQ(FIND(second, st_live_handles)(nullptr, &live), ST_OK);
    EXPECT_EQ(live, 0);
    EXPECT_EQ(FIND(second, st_recipe_destroy)(recipe), ST_INVALID_HANDLE) << "a handle belongs to its own copy";
    std::string digests[2];
    std::thread side([&] { digests[1] = trained_digest(second); });
    digests[0] = trained_digest(first);
    side.join();
    EXPECT_EQ(digests[0], digests[1]);
    EXPECT_EQ(FIND(first, st_recipe_destroy)(recipe), ST_OK);
  }
  EXPECT_FALSE(is_loaded(other));
  fs::remove(other);
}

TEST(Loading, AChildForkedBeforeTheFirstHandleTrainsByItself) {
  const Library library(SCALETRAIN_LIBRARY);
  int64_t live = -1;
  ASSERT_EQ(FIND(library, st_live_handles)(nullptr, &live), ST_OK);  // a call that creates no handle does not bind the library to a process
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(60);
    _exit(trained_digest(library).size() == 32 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(trained_digest(library).size(), 32U) << "and so does the parent";
}

}  // namespace

// C# objects in C++: references that any thread may drop, calls into the runtime until it ends, and exceptions that pass through the
// library unchanged.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <new>
#include <scaletrain/error.hpp>
#include <string>
#include <thread>

#include "array.hpp"
#include "record.hpp"

namespace scaletrain::csharp {

/// C#'s functions, set once before any other call; ScaleTrain/Bridge.cs has the same table. Functions that run code of the program return
/// null, or a GCHandle of the exception that it threw, which native code must release.
struct Table {
  void (*release)(void* handle);
  void (*fail)(int32_t status, const void* record);  // this thread's call failed: message, op, tensor, ...
  void (*rethrow)(void* thrown);                     // this thread's call throws this exception when it returns
  void* (*step)(void* user, const void* report, int32_t* goes_on);
  void* (*token)(void* user, int32_t token, int32_t* goes_on);
  void* (*rate)(void* user, int64_t step, double* rate);
  void* (*log)(void* user, int32_t level, const char* area, const char* text);
  void* (*parallel)(void* user, int64_t n, const void* task);
  void* (*write)(void* user, const void* bytes, int64_t count);
  void* (*read)(void* user, void* bytes, int64_t room, int64_t* count);
  void* (*write_to)(void* user, int32_t to, const void* bytes, int64_t count, int64_t* taken, void* reason, int32_t room);
  void* (*read_from)(void* user, int32_t from, void* bytes, int64_t count, int64_t* given, void* reason, int32_t room);
  void* (*fill)(void* user, int64_t count, const int64_t* rows, int64_t n, const RawView* views);
  void* (*shape)(void* user, int64_t n, const RawView* inputs, int64_t m, RawView* outputs);
  void* (*forward)(void* user, int64_t n, const RawView* inputs, int64_t m, const RawView* outputs);
  void* (*backward)(void* user, int64_t n, const RawView* inputs, int64_t m, const RawView* outputs, const RawView* d_outputs,
                    const RawView* d_inputs);
  void* (*stage)(void* user, int32_t phase, int32_t part, int32_t chunk, int32_t micro_batch,
                 const RawView* views);  // input, output, gradients
};

inline Table& table() {
  static Table given{};
  return given;
}

/// State of the runtime's end. After it, a library thread must not call into the runtime any more.
struct Ending {
  std::atomic<bool> begun{false};
  std::atomic<int> inside{0};
  static Ending& here() {
    static Ending ending;
    return ending;
  }
  /// Depth of this thread's calls into the runtime, so that a thread that ends the program from a callback does not wait for itself.
  static int& mine() {
    thread_local int depth = 0;
    return depth;
  }
};

/// Whether C# has made a call on this thread, which is then a thread of the program.
inline bool& is_of_csharp() {
  thread_local bool is = false;
  return is;
}

/// Number of live library threads that have called into the runtime. Mono has registered them and waits for them at the end of the program.
inline std::atomic<int>& guests() {
  static std::atomic<int> count{0};
  return count;
}
inline void be_guest() {
  struct Guest {
    Guest() { guests().fetch_add(1); }
    Guest(const Guest&) = delete;
    Guest& operator=(const Guest&) = delete;
    ~Guest() { guests().fetch_sub(1); }
  };
  thread_local const Guest guest;
}

/// Guards each call into the runtime. The constructor throws Error if the program is ending.
class Inside {
 public:
  Inside() {
    Ending::here().inside.fetch_add(1);
    if (Ending::here().begun.load()) {
      Ending::here().inside.fetch_sub(1);
      throw Error(Status::cancelled, "the program is ending; its callbacks are no longer called");
    }
    ++Ending::mine();
    if (!is_of_csharp()) be_guest();
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() {
    --Ending::mine();
    Ending::here().inside.fetch_sub(1);
  }
};

/// Called at the end of the program: forbids new calls into the runtime and waits until other threads have left it. Waits for at most a
/// second, since a callback may never return: the one that ended the program, if the runtime ends it on another thread.
inline void end_of_runtime() {
  Ending::here().begun.store(true);
  for (int i = 0; i < 1000 && Ending::here().inside.load() > Ending::mine(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// A GCHandle that is freed with its last copy, except when the program is ending.
class Managed {
 public:
  Managed() = default;
  explicit Managed(void* handle) : handle_(handle, release) {}
  void* get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return handle_ != nullptr; }
  void reset() noexcept { handle_.reset(); }

 private:
  static void release(void* handle) {
    if (handle == nullptr) return;
    try {
      const Inside inside;
      table().release(handle);
    } catch (const Error&) {  // the program is ending; the runtime frees the object
    }
  }

  std::shared_ptr<void> handle_;
};

/// Carries a C# exception through the library.
struct Raised {
  Managed exception;
};

/// Calls one of the table's functions that may throw.
template <class... Parameters, class... Arguments>
void call(void* (*function)(Parameters...), const Arguments&... arguments) {
  const Inside inside;
  void* const thrown = function(arguments...);
  if (thrown != nullptr) throw Raised{Managed(thrown)};
}

inline void fail(Status status, const char* message, const ErrorInfo& info) {
  Record record;
  record.add(std::string(message)).add(info.op).add(info.tensor).add(info.file).add(info.host).add(info.collective);
  record.add(info.offset).add(info.step).add(static_cast<int64_t>(info.rank));
  table().fail(static_cast<int32_t>(status), record.done());
}

/// To be called in a catch (...): the C++ exception is thrown in C# when this thread's call has returned there.
inline void set_current_error() noexcept {
  try {
    throw;
  } catch (const Raised& raised) {
    table().rethrow(raised.exception.get());
  } catch (const Error& error) {
    fail(error.status(), error.what(), error.info());
  } catch (const std::bad_alloc&) {
    fail(Status::out_of_memory, "out of memory", ErrorInfo());
  } catch (const std::exception& error) {
    fail(Status::internal, error.what(), ErrorInfo());
  } catch (...) {
    fail(Status::internal, "a C++ exception of an unknown type", ErrorInfo());
  }
}

}  // namespace scaletrain::csharp

// Handles: what the C ABI gives out instead of pointers. A handle is a slot and a generation, looked up and never dereferenced, so a stale
// or foreign one is an error and not a crash.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "base/heap.h"

namespace st::capi {

enum class Kind : int32_t { context, graph, model, data, recipe, trainer, predictor, tensor, pending, gemm, packed };
constexpr int32_t kKinds = 11;
std::string_view name_of(Kind kind);

/// What a handle stands for. Children hold their parents by shared_ptr, so any order of destruction is right.
class Object {
 public:
  Object() = default;
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  Heap* const heap = Heap::current();  // of the context that it is made for; null: of none
  std::string answer;                  // text owned by the handle until its next call

  /// One call at a time: false while another is inside, or while another thread's run is on.
  bool enter();
  void leave();
  /// A run is many calls: between them this thread may enter (the callback), others may not. False while a call or a run is on.
  bool begin_run();
  void end_run();
  bool is_busy();

  /// For calls that may be many at once: they count, so that the handle is not destroyed under one.
  std::atomic<int64_t> users{0};

 private:
  std::mutex mutex_;
  bool inside_ = false;
  std::thread::id runner_;  // none: no run
};

/// Puts an object in the table; the value is what the host sees as a pointer.
void* add(Kind kind, std::shared_ptr<Object> object);
/// The object, or ST_INVALID_HANDLE saying what is wrong with the handle. Its context's memory serves from then on.
std::shared_ptr<Object> look_up(Kind kind, const void* handle);
/// Takes the object out; BUSY while a call is inside.
void remove(Kind kind, const void* handle);
int64_t live(Kind kind);

/// A call among any number at once; while one lives, destroying the handle is BUSY.
template <class T>
class Use {
 public:
  explicit Use(std::shared_ptr<T> object) : object_(std::move(object)) { object_->users.fetch_add(1); }
  ~Use() { object_->users.fetch_sub(1); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  T* operator->() const { return object_.get(); }

 private:
  std::shared_ptr<T> object_;
};

struct Entry;

/// The object behind a handle for calls that a signal handler may make: no lock, no memory, no message. remove() waits for it, so it is
/// held for a store or two and never around anything that waits.
class Pin {
 public:
  Pin(Kind kind, const void* handle) noexcept;
  ~Pin();
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;

  /// Null: the code says why.
  Object* object() const noexcept { return object_; }
  Code code() const noexcept { return code_; }

 private:
  Kind kind_;
  Entry* entry_ = nullptr;
  Object* object_ = nullptr;
  Code code_ = Code::invalid_handle;
};

/// One call at a time on an object: BUSY for a second one.
template <class T>
class Lease {
 public:
  Lease(Kind kind, std::shared_ptr<T> object) : object_(std::move(object)) {
    require(object_->enter(), Code::busy, name_of(kind), ": another call on this handle is running; use one handle per thread, or wait");
  }
  ~Lease() {
    if (object_) object_->leave();
  }
  Lease(Lease&& other) noexcept : object_(std::move(other.object_)) {}
  Lease& operator=(Lease&&) = delete;
  Lease(const Lease&) = delete;

  T* operator->() const { return object_.get(); }
  T& operator*() const { return *object_; }
  const std::shared_ptr<T>& shared() const { return object_; }

 private:
  std::shared_ptr<T> object_;
};

}  // namespace st::capi

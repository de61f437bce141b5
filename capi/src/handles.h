// Handles: what the C ABI gives out instead of pointers. A handle is a slot and a generation, looked up and never dereferenced, so a stale
// or foreign one is an error and not a crash.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/heap.h"
#include "library_hold.h"

namespace st::capi {

enum class Kind : int32_t {
  context,
  graph,
  model,
  data,
  recipe,
  trainer,
  predictor,
  tensor,
  pending,
  gemm,
  packed,
  schedule,
  loss_scaler,
  optimizer,
  accumulator,
  checkpoint,
  communicator,
  distributed_sampler,
  data_parallel,
  sharded_optimizer
};
constexpr int32_t kKinds = 20;
std::string_view name_of(Kind kind);

struct Entry;

/// What a handle stands for. Children hold their parents by shared_ptr, so any order of destruction is right.
class Object {
 public:
  Object() = default;
  virtual ~Object();  // gives its slot back
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  Heap* const heap = Heap::current();  // of the context that it is made for; null: of none
  std::string answer;                  // text owned by the handle until its next call

  /// One call at a time: false while another is inside, or while another thread's run is on, and before add() is through.
  bool enter();
  void leave();
  /// A run is many calls: between them this thread may enter (the callback), others may not. False while a call or a run is on.
  bool begin_run();
  void end_run();
  /// Whether this thread is in a callback of such a run.
  bool is_run_here() const { return runner_.load() == std::this_thread::get_id(); }

  /// For calls that may be many at once: they count, so that the handle is not destroyed under one.
  std::atomic<int64_t> users{0};

 private:
  friend void* add(Kind kind, std::shared_ptr<Object> object);

  std::optional<LibraryHold> hold_;  // once it has a handle
  Kind kind_{};
  uint32_t slot_ = 0;
  std::atomic<Entry*> entry_ = nullptr;  // of its slot, which no other object has while this one lives, though its handle may be gone
  std::atomic<std::thread::id> runner_;  // none: no run
};

/// Puts an object in the table; the value is what the host sees as a pointer.
void* add(Kind kind, std::shared_ptr<Object> object);
/// The object, or ST_INVALID_HANDLE saying what is wrong with the handle. Its context's memory serves from then on.
std::shared_ptr<Object> look_up(Kind kind, const void* handle);
/// The same with enter() at once, without a lock and without a share of the object, which lives until its leave(). Null: not at once;
/// look_up() and enter() say why, or do it.
Object* enter_at_once(Kind kind, const void* handle) noexcept;
/// Takes the object out; BUSY while a call is inside.
void remove(Kind kind, const void* handle);
/// The same as all of a call, for leave(): with the object its hold on the library goes.
Parting destroyed(Kind kind, const void* handle, const char* call) noexcept;
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
  Lease(Kind kind, const void* handle) : object_(static_cast<T*>(enter_at_once(kind, handle))) {
    if (object_ == nullptr) enter(kind, std::static_pointer_cast<T>(look_up(kind, handle)));
  }
  Lease(Kind kind, std::shared_ptr<T> object) { enter(kind, std::move(object)); }
  ~Lease() {
    if (object_) object_->leave();
  }
  Lease(Lease&& other) noexcept : kept_(std::move(other.kept_)), object_(std::exchange(other.object_, nullptr)) {}
  Lease& operator=(Lease&&) = delete;
  Lease(const Lease&) = delete;

  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }

 private:
  void enter(Kind kind, std::shared_ptr<T> object) {
    require(object->enter(), Code::busy, name_of(kind), ": another call on this handle is running; use one handle per thread, or wait");
    kept_ = std::move(object);
    object_ = kept_.get();
  }

  std::shared_ptr<T> kept_;  // null: its handle keeps it, and cannot be destroyed meanwhile
  T* object_ = nullptr;
};

}  // namespace st::capi

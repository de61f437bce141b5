// Handles: the C ABI gives them out instead of pointers. A handle is a slot and a generation; it is looked up and never dereferenced, so a
// stale or foreign handle is an error, not a crash.
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
  sharded_optimizer,
  pipeline,
  plan
};
constexpr int32_t kKinds = 22;
std::string_view name_of(Kind kind);

struct Entry;

/// The object of a handle. Children hold their parents by shared_ptr, so any order of destruction works.
class Object {
 public:
  Object() = default;
  virtual ~Object();  // frees its slot
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  Heap* const heap = Heap::current();  // of the context that it is made for; null if there is none
  std::string answer;                  // text that the handle owns until its next call

  /// Admits one call at a time. False while another call is inside, while another thread's run is active, and before add() has finished.
  bool enter();
  void leave();
  /// A run is a sequence of calls: between them this thread may enter (its callback), other threads may not. False while a call or a run is
  /// active.
  bool begin_run();
  void end_run();
  /// Whether this thread is in a callback of such a run.
  bool is_run_here() const { return runner_.load() == std::this_thread::get_id(); }

  /// Counts calls that may run concurrently, so that the handle is not destroyed during one.
  std::atomic<int64_t> users{0};

 private:
  friend void* add(Kind kind, std::shared_ptr<Object> object);

  std::optional<LibraryHold> hold_;  // set once the object has a handle
  Kind kind_{};
  uint32_t slot_ = 0;
  std::atomic<Entry*> entry_ = nullptr;  // its slot's; no other object uses the slot while this one is alive, even if its handle is gone
  std::atomic<std::thread::id> runner_;  // default: no run
};

/// Adds an object to the table; the host sees the result as a pointer.
void* add(Kind kind, std::shared_ptr<Object> object);
/// Returns the object; throws ST_INVALID_HANDLE with the reason if there is none. From then on allocations use its context's memory.
std::shared_ptr<Object> look_up(Kind kind, const void* handle);
/// look_up() and enter() in one step, without a lock or a shared_ptr; the object stays alive until its leave(). Null if that fails: then
/// call look_up() and enter(), which succeed or give the reason.
Object* enter_at_once(Kind kind, const void* handle) noexcept;
/// Removes the object from the table; throws BUSY while a call is inside.
void remove(Kind kind, const void* handle);
/// remove() as a whole call, for leave(): the object releases its hold on the library.
Parting destroyed(Kind kind, const void* handle, const char* call) noexcept;
int64_t live(Kind kind);

/// One of any number of concurrent calls; while one exists, destroying the handle is BUSY.
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

/// The object of a handle for calls from signal handlers: no lock, no allocation, no message. remove() waits for it, so hold it for a store
/// or two and never around anything that waits.
class Pin {
 public:
  Pin(Kind kind, const void* handle) noexcept;
  ~Pin();
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;

  /// If null, code() has the reason.
  Object* object() const noexcept { return object_; }
  Code code() const noexcept { return code_; }

 private:
  Kind kind_;
  Entry* entry_ = nullptr;
  Object* object_ = nullptr;
  Code code_ = Code::invalid_handle;
};

/// Exclusive use of an object for one call; a second one throws BUSY.
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

  std::shared_ptr<T> kept_;  // null: the handle keeps the object alive and cannot be destroyed meanwhile
  T* object_ = nullptr;
};

}  // namespace st::capi

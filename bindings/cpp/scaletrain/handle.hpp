// What every noun is made of: an owned handle, and exceptions of the host's callbacks carried over the C boundary.
#pragma once

#include <scaletrain/context.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <scaletrain/error.hpp>
#include <scaletrain/leftover.hpp>
#include <utility>

namespace scaletrain {

struct HostOp;

namespace detail {

struct Access;

/// The first exception out of a callback. It must not unwind through C, so it waits here until the call has returned.
class Fault {
 public:
  void keep() noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!first_) first_ = std::current_exception();
    raised_ = true;
  }
  bool raised() const noexcept { return raised_; }
  void rethrow() {
    if (!raised_) return;
    std::exception_ptr taken;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      std::swap(taken, first_);
      raised_ = false;
    }
    if (taken) std::rethrow_exception(taken);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
  std::atomic<bool> raised_{false};
};

/// Runs a callback's body; an exception is kept and becomes a status, and its text the reason: also who cannot get the exception itself,
/// as another rank, sees why.
template <class Body>
st_status shielded(Fault& fault, Body&& body) noexcept {
  try {
    body();
    return ST_OK;
  } catch (const std::exception& error) {
    fault.keep();
    st_callback_error(error.what());
  } catch (...) {
    fault.keep();
  }
  return ST_CALLBACK;
}

/// What a context borrows from the host. Every object of the context holds it, since the library may use it as long as one lives.
struct Host {
  std::function<void(int32_t, const char*, const char*)> log;
  std::function<void(int64_t, const std::function<void(int64_t)>&)> parallel;
  std::function<void*(size_t, size_t)> alloc;
  std::function<void(void*)> free;
  std::deque<std::shared_ptr<HostOp>> ops;
  std::mutex ops_mutex;
  Fault callback;  // of an op or the allocator: the call that ran it fails
  st_context* context = nullptr;
  Fault service;  // of the logger or the parallel-for: the call goes on, and throws when it is done
};

/// The outcome of a call: the callback's own exception before the library's word for it.
inline void conclude(st_status status, Host* host, Fault* own) {
  if (status == ST_OK) {
    if (host != nullptr) host->service.rethrow();
    return;
  }
  Error error = last_error(static_cast<Status>(status));
  if (status == ST_CALLBACK && own != nullptr) own->rethrow();
  if ((status == ST_CALLBACK || status == ST_OUT_OF_MEMORY) && host != nullptr) host->callback.rethrow();
  throw error;
}

/// The name of T*, st_trainer, stands at the end of this function's own.
template <class T>
Error closed_error() {
  const std::string name = __PRETTY_FUNCTION__;
  const size_t begin = name.find("T = st_") + 7;
  const std::string kind = name.substr(begin, name.find_first_of("];", begin) - begin);
  return Error(Status::invalid_handle, kind + ": this object is closed; make another one, or close it after its last call");
}

/// A handle with one owner. close() destroys and throws; the destructor destroys and does not.
template <class T, st_status (*destroy)(T*)>
class Handle {
 public:
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  /// The raw handle, for the C ABI. Throws invalid_handle after close() or a move.
  T* get() const {
    T* const open = handle_.load(std::memory_order_relaxed);
    if (open == nullptr) throw closed_error<T>();
    return open;
  }

  /// Destroys now. What was made of it keeps what it needs. Closing twice is fine.
  void close() {
    end();
    host_.reset();
  }

 protected:
  friend struct Access;
  Handle() = default;
  explicit Handle(std::shared_ptr<Host> host) : host_(std::move(host)) {}
  Handle(Handle&& other) noexcept : host_(std::move(other.host_)), handle_(other.handle_.exchange(nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      drop();
      host_ = std::move(other.host_);
      handle_ = other.handle_.exchange(nullptr);
    }
    return *this;
  }
  ~Handle() { drop(); }

  /// Where a call puts a new handle; it is this object's when the call has returned.
  class Out {
   public:
    explicit Out(std::atomic<T*>& to) noexcept : to_(to) {}
    Out(const Out&) = delete;
    Out& operator=(const Out&) = delete;
    ~Out() { to_ = made_; }
    operator T**() noexcept { return &made_; }

   private:
    std::atomic<T*>& to_;
    T* made_ = nullptr;
  };
  Out out() noexcept { return Out(handle_); }
  const std::shared_ptr<Host>& host() const noexcept { return host_; }
  /// For const char* getters and the like: the handle's outcome of a call.
  void done(st_status status) const { conclude(status, host_.get(), nullptr); }
  void done(st_status status, Fault* own) const { conclude(status, host_.get(), own); }
  /// read() makes a call and copies texts that are the library's until its next one: meanwhile other texts and close() are Busy.
  template <class Read>
  auto reading(const Read& read) const {
    const Reading reading(reader_);
    return read();
  }
  template <class Call>
  std::string text(Call call) const {
    return reading([&] {
      const char* found = "";
      done(call(get(), &found));
      return std::string(found);
    });
  }

 private:
  /// close() where a garbage collector ends the object: a thread that is inside of a call of it finds the host's functions there, and a
  /// call that comes later a handle that is over.
  void end() {
    const Reading reading(reader_);
    conclude(destroy(handle_), host_.get(), nullptr);
    handle_ = nullptr;
  }
  void drop() noexcept {
    Leftover::end();
    const st_status status = destroy(handle_);
    if (status == ST_BUSY)
      Leftover::keep(
          handle_, [](void* handle) { return destroy(static_cast<T*>(handle)); }, host_);
    else if (status != ST_OK && host_)
      new (std::nothrow) std::shared_ptr<Host>(host_);  // the handle stays, as in the child of a fork, and so do the host's functions
    handle_ = nullptr;
    host_.reset();
  }

  class Reading {
   public:
    explicit Reading(std::atomic<pid_t>& reader) : reader_(reader) {
      pid_t before = 0;
      const pid_t here = getpid();
      // In the child of a fork who read stayed in the parent: the call goes on, to the library's own word for it.
      if (!reader.compare_exchange_strong(before, here) && before == here)
        throw Error(Status::busy, "another thread is in a call of this object, or ends it; call again when it has returned");
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    ~Reading() { reader_ = 0; }

   private:
    std::atomic<pid_t>& reader_;
  };

  std::shared_ptr<Host> host_;
  std::atomic<T*> handle_{nullptr};
  mutable std::atomic<pid_t> reader_{0};  // the process of the thread that is reading
};

/// How the nouns see each other's hosts, and the bindings the end of a handle.
struct Access {
  template <class Noun>
  static void end(Noun& noun) {
    noun.end();
  }
  template <class Noun>
  static bool is_closed(const Noun& noun) noexcept {
    return noun.handle_.load() == nullptr;
  }
  template <class Noun>
  static const std::shared_ptr<Host>& host(const Noun& noun) noexcept {
    return noun.host();
  }
  /// To cancel what the noun is doing; null when it is closed.
  template <class Noun>
  static st_context* context(const Noun& noun) noexcept {
    return noun.host() ? noun.host()->context : nullptr;
  }
};

}  // namespace detail
}  // namespace scaletrain

// The base of every noun: an owned handle, and exceptions of host callbacks carried across the C boundary.
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

/// Keeps the first exception of a callback until the call has returned, since it must not unwind through C.
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

/// Runs a callback's body; keeps an exception, and turns it into a status with its text as the reason, for those whom the exception itself
/// does not reach, such as other ranks.
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

/// The host's functions that a context uses. Every object of the context holds it, since the library may call them while one lives.
struct Host {
  std::function<void(int32_t, const char*, const char*)> log;
  std::function<void(int64_t, const std::function<void(int64_t)>&)> parallel;
  std::function<void*(size_t, size_t)> alloc;
  std::function<void(void*)> free;
  std::deque<std::shared_ptr<HostOp>> ops;
  std::mutex ops_mutex;
  Fault callback;  // of an op or the allocator: the call that ran it fails
  st_context* context = nullptr;
  Fault service;  // of the logger or the parallel-for: the call continues, and throws at its end
};

/// Throws a call's failure: the callback's own exception if there is one, else the library's error.
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

/// The name of T*, such as st_trainer, taken from the end of this function's own name.
template <class T>
Error closed_error() {
  const std::string name = __PRETTY_FUNCTION__;
  const size_t begin = name.find("T = st_") + 7;
  const std::string kind = name.substr(begin, name.find_first_of("];", begin) - begin);
  return Error(Status::invalid_handle, kind + ": this object is closed; make another one, or close it after its last call");
}

/// A handle with one owner. close() destroys and throws; the destructor destroys and does not throw.
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

  /// Destroys now. Objects made from this one keep what they need. Closing twice is allowed.
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

  /// Receives a new handle from a call; this object owns it when the call has returned.
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
  /// Makes a call on the handle and throws its failure; for getters of const char* and the like.
  void done(st_status status) const { conclude(status, host_.get(), nullptr); }
  void done(st_status status, Fault* own) const { conclude(status, host_.get(), own); }
  /// read() makes a call and copies texts that the library owns until its next call; meanwhile other texts and close() are Busy.
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
  /// close() for a garbage collector's end of the object: a thread that is inside a call still finds the host's functions, and a later call
  /// an invalid handle.
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
      new (std::nothrow) std::shared_ptr<Host>(host_);  // leaked on purpose: the handle stays, as in a forked child, and may use the host's
                                                        // functions
    handle_ = nullptr;
    host_.reset();
  }

  class Reading {
   public:
    explicit Reading(std::atomic<pid_t>& reader) : reader_(reader) {
      pid_t before = 0;
      const pid_t here = getpid();
      // In a forked child the reading thread exists only in the parent: make the call, and let the library refuse it.
      if (!reader.compare_exchange_strong(before, here) && before == here)
        throw Error(Status::busy, "another thread is in a call of this object, or closes it; call again when it has returned");
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    ~Reading() { reader_ = 0; }

   private:
    std::atomic<pid_t>& reader_;
  };

  std::shared_ptr<Host> host_;
  std::atomic<T*> handle_{nullptr};
  mutable std::atomic<pid_t> reader_{0};  // process of the thread that is reading
};

/// Gives nouns access to each other's hosts, and bindings to the end of a handle.
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
  /// For cancelling what the noun is doing; null when it is closed.
  template <class Noun>
  static st_context* context(const Noun& noun) noexcept {
    return noun.host() ? noun.host()->context : nullptr;
  }
};

}  // namespace detail
}  // namespace scaletrain

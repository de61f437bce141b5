#include "comm/plugins/callback_pipes.h"

#include <utility>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/text.h"

namespace st {
namespace {

class CallbackPipes final : public Pipes {
 public:
  CallbackPipes(std::string name, int rank, int size, const st_transport_callbacks& callbacks, void* user, std::shared_ptr<void> kept)
      : kept_(std::move(kept)), name_(std::move(name)), rank_(rank), size_(size), callbacks_(callbacks), user_(user) {}
  ~CallbackPipes() override {
    if (callbacks_.release != nullptr) call_host(callbacks_.release, user_);
  }
  CallbackPipes(const CallbackPipes&) = delete;
  CallbackPipes& operator=(const CallbackPipes&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string_view name() const override { return name_; }

  int64_t write(int to, std::span<const std::byte> bytes) override {
    int64_t taken = 0;
    answer(call_host(callbacks_.write, user_, to, static_cast<const void*>(bytes.data()), std::ssize(bytes), &taken));
    return checked("write", taken, std::ssize(bytes));
  }
  int64_t read(int from, std::span<std::byte> bytes) override {
    int64_t given = 0;
    answer(call_host(callbacks_.read, user_, from, static_cast<void*>(bytes.data()), std::ssize(bytes), &given));
    return checked("read", given, std::ssize(bytes));
  }

 private:
  void answer(st_status status) const {
    if (status == ST_OK) return;
    const char* reason = callbacks_.reason == nullptr ? nullptr : call_host(callbacks_.reason, user_);
    fail(Code::rank_failed,
         reason == nullptr || *reason == '\0' ? text("the transport returned status ", status, " without a reason") : std::string(reason));
  }
  int64_t checked(const char* call, int64_t bytes, int64_t most) const {
    require(bytes >= 0 && bytes <= most, Code::callback, name_, ": the callback ", call, " must report 0 to ", most, " bytes, got ", bytes);
    return bytes;
  }

  const std::shared_ptr<void> kept_;
  const std::string name_;
  const int rank_, size_;
  const st_transport_callbacks callbacks_;
  void* const user_;
};

/// Calls release unless the callbacks were taken over.
struct Unclaimed {
  const st_transport_callbacks& callbacks;
  void* user;
  bool is_claimed = false;
  ~Unclaimed() {
    if (!is_claimed && callbacks.release != nullptr) call_host(callbacks.release, user);
  }
};

}  // namespace

std::unique_ptr<Pipes> make_callback_pipes(std::string name, int rank, int size, const st_transport_callbacks& callbacks, void* user,
                                           std::shared_ptr<void> kept) {
  Unclaimed unclaimed{callbacks, user};
  check(callbacks.write != nullptr && callbacks.read != nullptr, name, ": the callback ", callbacks.write == nullptr ? "write" : "read",
        " is NULL");
  auto pipes = std::make_unique<CallbackPipes>(std::move(name), rank, size, callbacks, user, std::move(kept));
  unclaimed.is_claimed = true;
  return pipes;
}

}  // namespace st

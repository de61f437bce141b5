#include <algorithm>
#include <array>
#include <exception>
#include <string_view>

#include "base/callback_reason.h"
#include "guard.h"

namespace st::capi {
namespace {

// A thread's last error, in memory of the thread itself: it works when memory has run out. It has no destructor, which would keep the
// library from being unloaded while a thread that called it is alive. "None" is all zeros, so the library file stores no image of it.
class LastError {
 public:
  void keep(Code code, std::string_view call, std::string_view message, const ErrorPlace& place) noexcept {
    used_ = 0;
    status = static_cast<st_status>(code);
    op = store(place.op, 256);
    tensor = store(place.tensor, 1024);
    file = store(place.file, 4096);
    host = store(place.host, 256);
    collective = store(place.collective, 256);
    offset = place.offset;
    step = place.step;
    rank = place.rank;
    message_ = used_;
    append(call, call.size());
    append(call.empty() ? "" : ": ", 2);
    append(message, room());
    bytes_[used_] = '\0';
  }
  const char* message() const noexcept { return bytes_.data() + message_; }
  const char* text(size_t behind) const noexcept { return behind == 0 ? nullptr : bytes_.data() + behind - 1; }

  st_status status = ST_OK;
  size_t op = 0, tensor = 0, file = 0, host = 0, collective = 0;  // byte after which each text starts; 0: unknown
  int64_t offset = 0, step = 0;                                   // -1: unknown
  int32_t rank = 0;

 private:
  size_t room() const { return bytes_.size() - 1 - used_; }

  size_t store(const std::string& text, size_t most) noexcept {
    if (text.empty()) return 0;
    const size_t at = used_;
    append(text, most);
    bytes_[used_++] = '\0';
    return at + 1;
  }

  /// If a text is too long for a message (a host name of ten thousand letters), cuts its middle: the request is at the beginning and the
  /// way out at the end.
  void append(std::string_view text, size_t most) noexcept {
    most = std::min(most, room());
    constexpr std::string_view kGap = " [...] ";
    if (text.size() <= most || most < kGap.size()) return copy(text.substr(0, most));
    const size_t half = (most - kGap.size()) / 2;
    copy(text.substr(0, half));
    copy(kGap);
    copy(text.substr(text.size() - half));
  }

  void copy(std::string_view text) noexcept {
    std::ranges::copy(text, bytes_.data() + used_);
    used_ += text.size();
  }

  size_t message_ = 0, used_ = 0;
  std::array<char, 16384> bytes_{};
};

static_assert(std::is_trivially_destructible_v<LastError>);
constinit thread_local LastError last;

constexpr const char* kInternal = "internal error, please report it";

}  // namespace

void remember(const Error& error) noexcept { last.keep(error.code(), {}, error.message(), error.place); }

st_status remember_current(const char* call) noexcept {
  try {
    throw;
  } catch (const Error& error) {
    // Errors of handles come from the table, which does not know the call.
    const bool of_handle = error.code() == Code::invalid_handle || error.code() == Code::busy;
    const bool named = !of_handle || error.message().starts_with(call);
    last.keep(error.code(), named ? std::string_view() : call, error.message(), error.place);
  } catch (const HostMemoryError& error) {
    last.keep(error.code(), call, error.what(), {});
  } catch (const std::bad_alloc&) {
    last.keep(Code::out_of_memory, call, "out of memory", {});
  } catch (const std::exception& error) {
    last.keep(Code::internal, kInternal, error.what(), {});
  } catch (...) {
    last.keep(Code::internal, kInternal, "an exception of an unknown kind", {});
  }
  return last.status;
}

}  // namespace st::capi

st_status st_callback_error(const char* text) {
  st::keep_callback_reason(text);
  return ST_OK;
}

const char* st_last_error(void) { return st::capi::last.message(); }

st_status st_error_info_init(st_error_info* info, size_t size) {
  st_error_info defaults{};
  defaults.offset = defaults.step = defaults.rank = -1;
  return st::capi::init(info, size, defaults);
}

st_status st_last_error_info(st_error_info* info) {
  using namespace st::capi;
  const LastError& e = last;
  const bool is_none = e.status == ST_OK;
  const st_error_info ours = {.struct_size = sizeof(st_error_info),
                              .status = e.status,
                              .op = e.text(e.op),
                              .tensor = e.text(e.tensor),
                              .file = e.text(e.file),
                              .host = e.text(e.host),
                              .collective = e.text(e.collective),
                              .offset = is_none ? -1 : e.offset,
                              .step = is_none ? -1 : e.step,
                              .rank = is_none ? -1 : e.rank,
                              .reserved = 0};
  return guard([&] { give(info, ours, "st_last_error_info: info"); });
}

#include <exception>

#include "guard.h"

namespace st::capi {
namespace {

thread_local Error last(Code::ok, "");

/// Errors of handles come from the table, which does not know whom it serves.
Error in_call(const Error& error, const char* call) noexcept {
  try {
    return {error.code(), text(call, ": ", error.message())};
  } catch (...) {
    return {error.code(), ""};
  }
}

Error internal_error(const char* what) noexcept {
  try {
    return {Code::internal, text("internal error, please report it: ", what)};
  } catch (...) {
    return {Code::internal, ""};
  }
}

const char* text_or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

}  // namespace

void remember(const Error& error) noexcept {
  try {
    last = error;
  } catch (...) {
    last = Error(error.code(), "");  // no memory for the message: the status still tells
  }
}

st_status remember_current(const char* call) noexcept {
  try {
    throw;
  } catch (const Error& error) {
    const bool of_handle = error.code() == Code::invalid_handle || error.code() == Code::busy;
    if (of_handle)
      remember(in_call(error, call));
    else
      remember(error);
  } catch (const std::bad_alloc&) {
    remember(Error(Code::out_of_memory, "out of memory"));
  } catch (const std::exception& error) {
    remember(internal_error(error.what()));
  } catch (...) {
    remember(internal_error("an exception of an unknown kind"));
  }
  return static_cast<st_status>(last.code());
}

}  // namespace st::capi

const char* st_last_error(void) { return st::capi::last.what(); }

st_status st_error_info_init(st_error_info* info, size_t size) {
  st_error_info defaults{};
  defaults.offset = defaults.step = defaults.rank = -1;
  return st::capi::init(info, size, defaults);
}

st_status st_last_error_info(st_error_info* info) {
  using namespace st::capi;
  const st::Error& e = last;
  const st_error_info ours = {.struct_size = sizeof(st_error_info),
                              .status = static_cast<st_status>(e.code()),
                              .op = text_or_null(e.place.op),
                              .tensor = text_or_null(e.place.tensor),
                              .file = text_or_null(e.place.file),
                              .host = text_or_null(e.place.host),
                              .collective = text_or_null(e.place.collective),
                              .offset = e.place.offset,
                              .step = e.place.step,
                              .rank = e.place.rank,
                              .reserved = 0};
  return guard([&] { give(info, ours, "st_last_error_info: info"); });
}
